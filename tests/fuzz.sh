#!/bin/sh
# Run every fuzzer for a while. usage: fuzz.sh BUILD-DIRECTORY SECONDS
# New inputs are kept in BUILD-DIRECTORY/corpus; tests/fuzz/corpus/X holds the first ones, if any.
set -u
[ -d "$1/fuzz" ] || exit 0
for fuzzer in "$1"/fuzz/fuzz_*; do
	[ -x "$fuzzer" ] || continue
	name=$(basename "$fuzzer")
	seeds=tests/fuzz/corpus/${name#fuzz_}
	[ -d "$seeds" ] || seeds=
	mkdir -p "$1/corpus/$name"
	"$fuzzer" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="$1/$name-" "$1/corpus/$name" $seeds >"$1/$name.log" 2>&1 || {
		echo "$name found an input:"
		tail -n 40 "$1/$name.log"
		exit 1
	}
	echo "$name: $(grep number_of_executed_units "$1/$name.log" | tr -dc 0-9) inputs"
done
