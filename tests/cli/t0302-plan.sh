#!/bin/sh
# plan: show, explain, diff.
. "$(dirname "$0")/lib.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$tmp" || exit 1

is_json() # COMMAND...
{
	"$@" >out.json || return 1
	[ "$(sqlite3 :memory: "SELECT json_valid(readfile('out.json'))")" = 1 ]
}

for f in schemas/recording.sql schemas/analysis.sql datasets/recordings/serial_init.sql; do
	sqlite3 r.db <"$top/$f"
done
"$NUMAPGO" analyze -q --machine 4-small -o a.plan r.db
cp a.plan same.plan
sed 's/"pages": \[8192, 8192\], "node": [0-9]/"pages": [8192, 8192], "node": 0/' a.plan >moved.plan
plan="$NUMAPGO plan"

ok "show prints threads and ranges" says 'pages 8192-16383: node' $plan show a.plan
ok "show fits 80 columns" sh -c "! COLUMNS=80 $plan show a.plan | grep -qE '.{81}'"
ok "show --json is JSON" is_json $plan show a.plan --json
ok "explain says why" says 'why: .*ranges, each near its users' $plan explain a.plan main
ok "explain gives the counts by node and the costs" says 'node 3 +2[0-9]\.[0-9] %' \
	$plan explain a.plan main
ok "explain names the user of each range" \
	says 'pages 8192-1638[0-9]: node [0-3], thread 0\.1 makes (9[0-9]|100) %' $plan explain a.plan main
ok "explain compares with interleaving" says 'interleaved +[0-9.]+ m?s' $plan explain a.plan
ok "explain --json is JSON" is_json $plan explain --json a.plan
ok "explain works without the recording" sh -c "mkdir away && cp a.plan away && cd away &&
	$plan explain a.plan main | grep -q 'why: '"
ok "explain names an object that is not there" \
	says "no object whose name contains 'nothing'" status 1 $plan explain a.plan nothing
sqlite3 r.db "UPDATE analysis SET program = '/another'"
ok "explain refuses a recording of another program" \
	says 'another program or machine' status 1 $plan explain --db r.db a.plan
ok "diff of equal plans is 0" says '^0 gone, 0 added, 0 moved' status 0 \
	$plan diff --exit-code a.plan same.plan
ok "diff shows what moved" says '^~ object main' status 0 $plan diff a.plan moved.plan
ok "diff --exit-code ends with 1 then" status 1 $plan diff a.plan moved.plan --exit-code
ok "diff --json is JSON" is_json $plan diff --json a.plan moved.plan
"$NUMAPGO" analyze -q --machine 1-node -o leave.plan r.db
ok "diff shows that a plan leaves all" says '^- thread' $plan diff a.plan leave.plan
ok "show says why a plan leaves all" says 'one node' $plan show leave.plan
ok "a plan that is none is refused" says 'r.db' status 1 $plan show r.db
ok "a missing plan is an error" says 'nothing.plan' status 1 $plan show nothing.plan
ok "an unknown word is a usage error" status 2 $plan draw a.plan
ok "diff needs two plans" status 2 $plan diff a.plan
ok "an unknown option is a usage error" status 2 $plan show --colour a.plan
ok "--help after the word works" says '^usage: numapgo plan' $plan show --help
finish
