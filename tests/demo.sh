#!/bin/sh
# The whole way once: record a program whose memory is all on the wrong node, plan for a machine with
# four nodes, run it under the plan. Called by make demo. Status 0 only if every step worked and the
# prediction is what must come out: first touch 25 +- 5 % local, the plan at least 95 %.
set -eu
: "${B:=build}" "${NUMAPGO:=$PWD/$B/numapgo}"
program="$PWD/$B/workloads/serial_init 128 4 1200"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/numapgo-demo.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

step()
{
	printf '\n$ %s\n' "$*"
}

echo 'serial_init: one thread initialises 128 MiB, then four threads use a quarter each.'
step 'numapgo record -- serial_init'
"$NUMAPGO" record -- $program
step 'numapgo analyze --machine 4-small'
"$NUMAPGO" analyze --machine 4-small
step 'numapgo report'
"$NUMAPGO" report
step 'numapgo replay -- serial_init'
"$NUMAPGO" replay -- $program

# local accesses in tenths of a percent, predicted for a placement
local_share()
{
	"$NUMAPGO" analyze --json -q --machine 4-small -o again.plan | awk -v placement="\"$1\"," '
		/"placement":/ { sub(/.*: /, ""); found = $0 == placement }
		found && /"lar":/ { print int($2 * 1000 + 0.5); exit }'
}
first_touch=$(local_share 'first touch') plan=$(local_share plan)
echo
echo "demo: local accesses on four nodes: first touch $((first_touch / 10)).$((first_touch % 10)) %," \
	"plan $((plan / 10)).$((plan % 10)) %"
if [ "$first_touch" -lt 200 ] || [ "$first_touch" -gt 300 ] || [ "$plan" -lt 950 ]; then
	echo 'demo: this is not what must come out: first touch 20 to 30 %, plan at least 95 %' >&2
	exit 1
fi
