#!/bin/sh
# The preload objects: exactly the symbols of their version script, the C library only, thread-local
# storage that never calls malloc.
cd "$(dirname "$0")/.." || exit 1
B=${B:-build}
n=0

verdict() # SENTENCE OFFENDING-LINES
{
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		echo "$2" | sed 's/^/# /'
	fi
}

# the names between global: and local: of a version script
exported()
{
	sed 's://.*::; s:/\*.*\*/::' "$1" | tr ';{}' '\n\n\n' |
		awk '/global:/ { on = 1; sub(/.*global:/, "") } /local:/ { on = 0 }
			on { gsub(/[ \t]/, ""); if ($0 != "") print }' | sort
}

for pair in record:profiler/preload/record.map replay:replayer/preload/replay.map; do
	object=$B/libnumapgo-${pair%%:*}.so
	exported "${pair#*:}" >"$B/exports.want"
	nm -D --defined-only "$object" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
		sort >"$B/exports.have"
	verdict "$object exports what its version script lists" \
		"$(diff "$B/exports.want" "$B/exports.have")"
	verdict "$object needs the C library only" \
		"$(readelf -d "$object" | grep NEEDED | grep -vE '\[(libc\.so\.6|ld-linux-.*)\]')"
	verdict "$object has no dynamic thread-local storage" \
		"$(readelf -rW "$object" | grep -E 'DTPMOD|TLSDESC')"
	verdict "$object calls no stdio" \
		"$(nm -D --undefined-only "$object" | awk '{ sub(/@.*/, "", $2); print $2 }' |
			grep -E '^_*(v?(f|s|sn|d|as)?printf(_chk)?|fopen(64)?|fputs|puts|fwrite|perror|popen|system)$')"
done
rm -f "$B/exports.want" "$B/exports.have"
echo "1..$n"
