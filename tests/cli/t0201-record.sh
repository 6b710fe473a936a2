#!/bin/sh
# record: what it stores, its options, and that it leaves no traces on the machine
. "$(dirname "$0")/lib.sh"

app=$B/workloads/serial_init
balancing=/proc/sys/kernel/numa_balancing

matched() # DB: at least 95 % of its samples belong to an object
{
	[ "$(query "$1" 'SELECT count(object_id) >= 0.95 * count(*) AND count(*) > 0 FROM sample')" = 1 ]
}

gives() # TEXT DB SQL
{
	answer=$(query "$2" "$3")
	[ "$answer" = "$1" ] || {
		echo "not $1 but $answer: $3"
		return 1
	}
}

ok 'a program is recorded' says 'matched to objects' "$NUMAPGO" record -o "$tmp/a.db" -- "$app" 32 2 100
ok 'the file says that it is complete' gives 1 "$tmp/a.db" "SELECT value FROM meta WHERE key = 'complete'"
ok 'at least 95 % of the samples match an object' matched "$tmp/a.db"
ok 'threads have their creation paths' \
	gives 0,0.0,0.1 "$tmp/a.db" "SELECT group_concat(path) FROM (SELECT path FROM thread ORDER BY path)"
ok 'the heap array is one object, named after the function that made it' \
	gives 1 "$tmp/a.db" "SELECT count(*) FROM v_object WHERE kind = 'heap' AND size_bytes >= 32 << 20 AND name IS NOT NULL"
ok 'each thread used its own half of it' gives 1 "$tmp/a.db" \
	"SELECT max(CASE path WHEN '0.0' THEN o END) < min(CASE path WHEN '0.1' THEN o END) + 4096 * 64 FROM
	 (SELECT t.path, avg(s.address - o.start_address) AS o FROM sample s JOIN thread t ON t.id = s.thread_id
	  JOIN source c ON c.id = s.source_id AND c.name = 'clock'
	  JOIN object o ON o.id = s.object_id AND o.size_bytes >= 32 << 20 GROUP BY t.path)"
ok 'the run has its command and exit status' gives "$app 32 2 100|0" "$tmp/a.db" \
	'SELECT text, exit_status FROM run JOIN string ON string.id = command_id'
ok 'every source is there, used or with the reason why not' gives 5 "$tmp/a.db" \
	"SELECT count(*) FROM source WHERE state = 'used' OR reason <> ''"
ok 'weights of clock samples are its period' gives 1 "$tmp/a.db" \
	"SELECT min(weight) = max(weight) FROM sample JOIN source ON source.id = source_id AND name = 'clock'"

ok 'a second recording keeps the first as .old' "$NUMAPGO" record -q -o "$tmp/a.db" -- true
ok '... which is still the first' gives "$app" "$tmp/a.db.old" \
	"SELECT substr(text, 1, length('$app')) FROM run JOIN string ON string.id = command_id"
ok 'patterns in the name' "$NUMAPGO" record -q -o "$tmp/%e-%q{LC_ALL}-%%.db" -- true
ok '... are replaced' [ -s "$tmp/true-C-%.db" ]
ok '--json is the last line' says '^\{"file":".*"complete":true,' "$NUMAPGO" record --json -o "$tmp/j.db" -- true
ok '-q says nothing' [ -z "$("$NUMAPGO" record -q -o "$tmp/j.db" -- true 2>&1)" ]

ok 'children are followed' "$NUMAPGO" record -q -o "$tmp/c.db" -- sh -c '/bin/true; /bin/true; :'
ok '... each image of each process is a row' gives 1 "$tmp/c.db" \
	"SELECT count(*) >= 3 FROM v_process WHERE exe LIKE '%/true' OR exe LIKE '%/dash' OR exe LIKE '%/bash'"
ok 'children are left alone' "$NUMAPGO" record -q --children leave -o "$tmp/c.db" -- sh -c '/bin/true; /bin/true; :'
ok '... and have no rows' gives 1 "$tmp/c.db" 'SELECT count(DISTINCT pid) FROM process'

ok 'counts instead of samples' "$NUMAPGO" record -q --keep counts -o "$tmp/n.db" -- "$app" 16 2 100
ok '... one row per page, thread and source' gives '1|0' "$tmp/n.db" \
	'SELECT count(*) > 0, (SELECT count(*) FROM sample) FROM page_count'
ok '... with names as for samples' gives 1 "$tmp/n.db" \
	"SELECT count(*) > 0 FROM v_page_count p JOIN object o ON o.id = p.object_id WHERE o.kind = 'heap'"
ok 'only the sources that were named' "$NUMAPGO" record -q --source fault -o "$tmp/f.db" -- "$app" 16 2 1
ok '... are used' gives 'clock:not asked,fault:used' "$tmp/f.db" \
	"SELECT group_concat(name || ':' || state) FROM (SELECT * FROM source WHERE name IN ('clock', 'fault') ORDER BY name)"
ok 'a period in ns is taken as it is' "$NUMAPGO" record -q --period 2000003 -o "$tmp/p.db" -- "$app" 16 2 100
ok '... and stored' gives 2000003 "$tmp/p.db" "SELECT period FROM source WHERE name = 'clock'"

"$app" 32 2 100000 >/dev/null &
app_pid=$!
cleanup()
{
	kill $app_pid 2>/dev/null
}
sleep 0.3
ok 'a running process is watched' says 'matched to objects' \
	"$NUMAPGO" record --pid $app_pid --duration 1.5 -o "$tmp/w.db"
ok '... with its threads' gives 3 "$tmp/w.db" 'SELECT count(*) FROM thread'
ok '... and nearly all samples match' matched "$tmp/w.db"
ok '... and it goes on' kill -0 $app_pid
kill $app_pid
wait $app_pid 2>/dev/null
ok 'a process that is not there' status 1 "$NUMAPGO" record --pid 4194304 -o "$tmp/w.db"

if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --clear-groups test -x "$NUMAPGO"; then
	mkdir -m 777 "$tmp/user" && chmod 755 "$tmp"
	ok 'without privileges' setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$NUMAPGO" record -q -o "$tmp/user/u.db" -- "$app" 16 2 100
	ok '... nearly all samples match' matched "$tmp/user/u.db"
else
	skip 'without privileges' 'not root, or the build is not readable for others'
fi

if [ -w $balancing ] && [ "$(cat $balancing)" = 0 ]; then
	hints() # SIGNAL STATUS
	{
		"$NUMAPGO" record -q --source hint -o "$tmp/h.db" -- sleep 4 &
		recorder=$!
		until [ "$(cat $balancing)" = 1 ]; do
			kill -0 $recorder || return 1
			sleep 0.05
		done
		sleep 0.5 # the program runs by now
		kill -"$1" $recorder
		wait $recorder
		[ $? = "$2" ] || return 1
		[ "$1" != KILL ] || return 0
		[ "$(cat $balancing)" = 0 ]
	}
	ok 'NUMA balancing is on only while recording, and off after SIGTERM' hints TERM 143
	ok 'a killed recorder cannot put it back' hints KILL 137
	ok '... but the next one does, and says so' says 'it is 0 again' "$NUMAPGO" record -o "$tmp/h.db" -- true
	ok '... really' [ "$(cat $balancing)" = 0 ]
else
	skip 'NUMA balancing is put back' 'not root, or kernel.numa_balancing is not 0'
fi
finish
