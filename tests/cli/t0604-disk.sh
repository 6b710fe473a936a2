#!/bin/sh
# No room and no permission for the recording: the program runs, what existed stays.
. "$(dirname "$0")/lib.sh"
if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
	skip 'disk full' 'needs root and a mount namespace'
	finish
	exit
fi

# usage: on_small_disk KIB COMMAND...: with a tmpfs of that size at $tmp/small
mkdir "$tmp/small"
on_small_disk()
{
	size=$1
	shift
	unshare -m sh -c 'mount -t tmpfs -o size="$1"k none "$2" && shift 2 && "$@"' - \
		"$size" "$tmp/small" "$@"
}

full()
{
	on_small_disk 256 sh -c '
		echo "NPG1 precious" > "$1/small/r.db" # passes for a recording
		"$2" record --overhead 30 -o "$1/small/r.db" -- "$3/workloads/serial_init" 64 4 800 >"$1/out" 2>"$1/err"
		echo $? >"$1/status"
		cat "$1"/small/r.db* | grep -qa precious && echo kept >"$1/kept"
		ls -l "$1/small"' - "$tmp" "$NUMAPGO" "$B"
	cat "$tmp/err"
	grep -q 'serial_init: ok' "$tmp/out" || { echo "the program did not run"; return 1; }
	[ "$(cat "$tmp/status")" = 0 ] || { echo "status $(cat "$tmp/status")"; return 1; }
	grep -qEi 'full|no space' "$tmp/err" || { echo "the reason is not told"; return 1; }
	[ -s "$tmp/kept" ] || { echo "the old file is gone"; return 1; }
}
ok 'the disk gets full while recording' full

no_room_at_all()
{
	on_small_disk 256 sh -c '
		head -c 1M /dev/zero >"$1/small/filler" 2>/dev/null
		"$2" record -o "$1/small/r.db" -- "$3/workloads/serial_init" 8 2 20 >"$1/out" 2>"$1/err"
		echo $? >"$1/status"' - "$tmp" "$NUMAPGO" "$B"
	cat "$tmp/err"
	case $(cat "$tmp/status") in
	125) ! grep -q ok "$tmp/out" ;;
	0) grep -q 'serial_init: ok' "$tmp/out" ;;
	*) false ;;
	esac && grep -qEi 'full|no space' "$tmp/err"
}
ok 'the disk is full before' no_room_at_all

says_where()
{
	says 'nowhere' status 125 "$NUMAPGO" record -o "$tmp/nowhere/r.db" -- true
}
ok 'a directory that does not exist' says_where

plan_kept()
{
	"$NUMAPGO" record -q -o "$tmp/r.db" -- "$B/workloads/serial_init" 8 2 50 &&
		on_small_disk 4 sh -c '
			echo "numapgo-plan precious" >"$1/small/p.plan"
			"$2" analyze --machine 4-small -o "$1/small/p.plan" "$1/r.db" >/dev/null 2>"$1/err"
			echo $? >"$1/status"
			grep -c precious "$1/small/p.plan"' - "$tmp" "$NUMAPGO" >"$tmp/kept"
	cat "$tmp/err"
	[ "$(cat "$tmp/status")" = 0 ] || { [ "$(cat "$tmp/status")" = 1 ] && [ "$(cat "$tmp/kept")" = 1 ] &&
		grep -qEi 'full|no space' "$tmp/err"; }
}
ok 'analyze does not lose an old plan for want of room' plan_kept
finish
