#!/bin/sh
# Run one test program, read its TAP, and show what failed.
# usage: run.sh [-p] [-l SECONDS] [-d DIR] NAME COMMAND [ARGS...]
#   -p  COMMAND prints no TAP: its exit status is one test
#   -l  time limit, default 300
#   -d  keep the output as DIR/NAME.log and append "PASSED FAILED SKIPPED" to DIR/counts
# Prints one line and, if something failed, the output. Status 0 only if nothing failed.
# Under NUMAPGO_CI=1 a skip whose reason is not in tests/ci-skips.txt is a failure.
set -u
limit=300 dir=. plain=
while getopts pl:d: option; do
	case $option in
	p) plain=1 ;;
	l) limit=$OPTARG ;;
	d) dir=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
name=$1
shift
log=$dir/$(echo "$name" | tr / _).log
here=$(dirname "$0")

start=$(date +%s)
timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null
status=$?
seconds=$(($(date +%s) - start))
if [ -n "$plain" ]; then
	[ $status = 0 ] && ok=ok || ok='not ok'
	printf '1..1\n%s 1 - %s (status %s)\n' "$ok" "$name" $status >>"$log"
fi

counts=$(awk -v status=$status -v plain="$plain" -v limit="$limit" -v ci="${NUMAPGO_CI:-}" \
	-v allowed="$here/ci-skips.txt" '
	BEGIN { while (ci && (getline line < allowed) > 0) if (line !~ /^(#|$)/) allow[line] }
	/^1\.\.[0-9]+/ { plan = substr($1, 4); planned = 1 }
	/^1\.\.0 *# *SKIP/ || /^(not )?ok .*# *SKIP/ {
		seen += !/^1\.\./
		reason = $0
		sub(/.*# *SKIP */, "", reason)
		fine = !ci
		for (pattern in allow) if (reason ~ pattern) fine = 1
		if (fine) { skipped++; print "skip: " reason > "/dev/stderr" }
		else { failed++; print "failed: skipped, but must run here: " reason > "/dev/stderr" }
		next
	}
	/^ok/ { seen++; passed++ }
	/^not ok/ { seen++; failed++; print "failed: " $0 > "/dev/stderr" }
	END {
		if (status == 124 || status == 137) { failed++; print "failed: not done after " limit " s" > "/dev/stderr" }
		else if (status != 0 && !failed) { failed++; print "failed: ended with status " status > "/dev/stderr" }
		else if (!planned || seen != plan) {
			if (!failed) print "failed: planned " (planned ? plan : "nothing") ", ran " seen + 0 > "/dev/stderr"
			failed += !failed
		}
		print passed + 0, failed + 0, skipped + 0
	}' "$log" 2>"$log.notes")

set -- $counts
{
	echo "$counts" >>"$dir/counts"
	[ "$2" = 0 ] && word=ok || word=FAILED
	[ "$3" != 0 ] && skips=", $3 skipped" || skips=
	printf '%-6s %-34s %3d tests%s, %d s\n' $word "$name" $(($1 + $2)) "$skips" $seconds
	sed 's/^/       /' "$log.notes"
	[ "$2" = 0 ] || tail -n 60 "$log" | sed 's/^/     | /'
} >"$log.report"
cat "$log.report" # one write: programs run in parallel
[ "$2" = 0 ]
