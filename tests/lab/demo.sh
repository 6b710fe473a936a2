#!/bin/sh
# The part of the demo that a host with one node cannot show: the same workload, smaller, on an
# emulated machine with four nodes, every access counted, before and after. Ends with 0 and says so
# where the lab cannot run.
set -eu
: "${B:=build}"
cd "$(dirname "$0")/../.."
if ! tests/lab/lab run -m 4-small -- true 2>/dev/null; then
	echo 'demo: the part on an emulated machine is left out: qemu-system-x86 and busybox-static' \
		'or a kernel are missing (see tests/lab/README.md)'
	exit 0
fi
set -- tests/lab/lab compare --machine 4-small --placements first-touch,numapgo -- \
	"$B/workloads/serial_init" 8 4 100
printf '\n$ %s\n' "$*"
"$@"
