#!/bin/sh
# Run every case under a command prefix and print TAP.
#
#	tests/cases/run-all.sh [-c CASE]... [WRAP...]
#
#	tests/cases/run-all.sh numapgo record -q -o /dev/shm/t.db --
#
# Without a prefix the cases are only run bare. Exit status 1 if one failed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cases=
while [ "${1:-}" = -c ]; do
	cases="$cases $2"
	shift 2
done
[ -n "$cases" ] || cases=$(cd "$here" && ls -d */ | tr -d /)
case ${1:-} in # the cases change directory
/*) ;;
*/*) set -- "$PWD/$@" ;;
esac
export WRAP="$*"

nr=0 failed=0
for case in $cases; do
	nr=$((nr + 1))
	what=$(sed -n "s/^# $case: //p" "$here/$case/run.sh" | head -n 1)
	output=$(sh "$here/$case/run.sh" 2>&1)
	status=$?
	last=$(printf '%s\n' "$output" | tail -n 1)
	case $status/$last in
	0/PASS*) echo "ok $nr - $case: $what" ;;
	0/SKIP*) echo "ok $nr # SKIP $case: ${last#*: }" ;;
	*)
		failed=1
		echo "not ok $nr - $case: $what"
		printf '%s\n' "$output" | sed 's/^/# /'
		;;
	esac
done
echo "1..$nr"
exit $failed
