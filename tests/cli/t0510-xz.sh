#!/bin/sh
# xz with two threads on a file of 200 MB.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/real.sh"

program() # OUTPUT-DIRECTORY PREFIX...
{
	shift
	"$@" xz -T2 -2 -c "$tmp/input" | md5sum
}

seq 1 30000000 | head -c 200000000 >"$tmp/input"
record_and_replay 'xz -T2 on 200 MB' 500
finish
