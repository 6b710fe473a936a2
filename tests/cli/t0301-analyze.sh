#!/bin/sh
# analyze: decisions on recordings with a known best placement, options, errors.
. "$(dirname "$0")/lib.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$tmp" || exit 1

load() # NAME: a recording of datasets/recordings as NAME.db
{
	for f in schemas/recording.sql schemas/analysis.sql "datasets/recordings/$1.sql"; do
		sqlite3 "$1.db" <"$top/$f" || return 1
	done
}

holds() # DB SQL: the query's answer is 1
{
	answer=$(query "$1" "$2")
	[ "$answer" = 1 ] || {
		echo "answer '$answer': $2"
		return 1
	}
}

unchanged() # FILE1 FILE2
{
	cmp "$1" "$2"
}

for name in serial_init many_objects producer_consumer; do
	load $name
done
analyze="$NUMAPGO analyze --machine 4-small"

ok "a serially initialised array is analysed" \
	says 'next: numapgo replay --plan s.plan -- ./serial_init' $analyze -o s.plan serial_init.db
ok "its first touch is 25 +- 5 % local" holds serial_init.db \
	"SELECT lar BETWEEN 0.20 AND 0.30 FROM prediction WHERE placement = 'first touch'"
ok "its plan is at least 95 % local on held-out samples" holds serial_init.db \
	"SELECT lar >= 0.95 FROM prediction WHERE placement = 'plan'"
ok "its four blocks are found, borders within one percent" holds serial_init.db \
	"SELECT count(*) = 4 AND max(abs(first_page - 8192 * ((first_page + 4096) / 8192))) < 82
	 FROM v_decision WHERE pattern = 'blocks'"
ok "each block is on the node of the thread that uses it" holds serial_init.db \
	"SELECT count(*) = 4 FROM v_decision d JOIN thread_decision t
	 ON t.path = '0.' || ((d.first_page + 4096) / 8192) AND t.node = d.node"
ok "page tables are planned with the blocks" holds serial_init.db \
	"SELECT count(*) = 4 AND min(nr_regions) BETWEEN 15 AND 17 FROM table_decision"

ok "many objects of few call sites are analysed" $analyze -o m.plan many_objects.db
ok "at least 95 % of the private ones with samples are with their thread" holds many_objects.db \
	"SELECT avg(t.node = d.node) >= 0.95 AND count(*) > 250
	 FROM v_decision d JOIN thread_decision t ON t.path = '0.' || (d.ordinal % 4)
	 WHERE d.size_bytes = 196608 AND d.nr_samples > 0"
ok "the shared ones are interleaved" holds many_objects.db \
	"SELECT avg(policy = 'interleave') >= 0.95 FROM v_decision WHERE size_bytes = 327680"
ok "the shared ones are one entry of the plan" \
	says '^1$' grep -c '"size_bytes": 327680' m.plan
ok "threads that share buffers come together" $analyze -o p.plan producer_consumer.db
ok "producer and consumer are on one node" holds producer_consumer.db \
	"SELECT count(*) = 2 FROM thread_decision a JOIN thread_decision b USING (node)
	 WHERE (a.path, b.path) IN (('0.0', '0.1'), ('0.2', '0.3'))"

cp s.plan first.plan
ok "analysing again keeps the old plan" $analyze -q -o s.plan serial_init.db
ok "the old plan is the first one" unchanged s.plan.old first.plan
ok "the same recording gives the same plan" unchanged s.plan first.plan
ok "-o takes patterns" $analyze -q -o '%e-%%.plan' serial_init.db
ok "the pattern was filled in" test -s 'serial_init-%.plan'
ok "--json is JSON" sh -c "$analyze --json -o j.plan serial_init.db >j.json &&
	[ \$(sqlite3 :memory: \"SELECT json_valid(readfile('j.json'))\") = 1 ]"
ok "--max-nodes is obeyed" $analyze -q --machine 4-nodes --max-nodes 1 -o n.plan serial_init.db
ok "one node is used then" holds serial_init.db \
	"SELECT count(DISTINCT node) = 1 FROM thread_decision"
ok "--page-tables off plans none" $analyze -q --page-tables off -o t.plan serial_init.db
ok "no page table is planned then" holds serial_init.db "SELECT count(*) = 0 FROM table_decision"
ok "--objective makespan works" says 'slowest thread' $analyze --objective makespan -o k.plan \
	serial_init.db
ok "a machine with one node is left as it is" says 'leave everything as it is' \
	$analyze --machine 1-node -o l.plan serial_init.db

sqlite3 serial_init.db "UPDATE meta SET value = 0 WHERE key = 'complete'"
ok "an incomplete recording is analysed, with a warning" \
	says 'warning: serial_init.db: the recording is incomplete' $analyze -o i.plan serial_init.db
ok "a recording without machine asks for one" \
	says 'name one with --machine' status 1 "$NUMAPGO" analyze serial_init.db
ok "a machine that is not there is named" \
	says 'no-such' status 1 $analyze --machine no-such serial_init.db
ok "a process that was not recorded is named" \
	says 'no process 77 was recorded' status 1 $analyze --process 77 serial_init.db
cp serial_init.db empty.db
sqlite3 empty.db "DELETE FROM sample"
ok "without samples it says what to try" \
	says 'no address sample of .*numapgo doctor' status 1 $analyze -o e.plan empty.db
ok "no plan is written then" test ! -e e.plan
sqlite3 other.db "CREATE TABLE t (a)"
ok "a database of another application is refused" status 1 $analyze other.db
ok "a missing recording is an error" says 'nothing.db' status 1 $analyze nothing.db
ok "two recordings are a usage error" status 2 $analyze serial_init.db many_objects.db
ok "a plan that cannot be written is an error" \
	says 'no/such/place' status 1 $analyze -o no/such/place/x.plan serial_init.db
finish
