#!/bin/sh
# Run every fuzzer for a while, as many at once as there are processors.
# usage: fuzz.sh BUILD-DIRECTORY SECONDS
# New inputs are kept in BUILD-DIRECTORY/corpus; tests/fuzz/corpus/X holds the first ones, if any.
if [ $# = 2 ]; then
	[ -d "$1/fuzz" ] || exit 0
	find "$1/fuzz" -name 'fuzz_*' -perm -100 -type f | sort |
		xargs -P "$(nproc)" -I '{}' sh "$0" "$1" "$2" '{}'
	exit
fi
build=$1 seconds=$2 fuzzer=$3
name=$(basename "$fuzzer")
seeds=tests/fuzz/corpus/${name#fuzz_}
[ -d "$seeds" ] || seeds=
mkdir -p "$build/corpus/$name"
"$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
	-artifact_prefix="$build/$name-" "$build/corpus/$name" $seeds >"$build/$name.log" 2>&1 || {
	echo "$name found an input:"
	tail -n 40 "$build/$name.log"
	exit 1
}
echo "$name: $(grep number_of_executed_units "$build/$name.log" | tr -dc 0-9) inputs"
