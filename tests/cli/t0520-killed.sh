#!/bin/sh
# kill -9 of the recorder at ten random moments: what was committed can be read with the stock shell
# and answers the examples of schemas/README.md, the program runs on, and an older recording is kept.
. "$(dirname "$0")/lib.sh"

# The queries of schemas/README.md: its blocks marked sql, one file each
awk -v tmp="$tmp" '
	/^```sql$/ { file = tmp "/example" ++nr ".sql"; next }
	/^```/ { file = "" }
	file != "" { print > file }' schemas/README.md

readable() # DB
{
	"$NUMAPGO" sql "$1" 'SELECT count(*) FROM sample' || return 1
	# not read-only: whoever opens it rolls back what was not committed
	[ "$(sqlite3 "$1" 'PRAGMA integrity_check')" = ok ] || { echo "$1: integrity_check"; return 1; }
	for example in "$tmp"/example*.sql; do
		query "$1" ".read $example" >"$tmp/answer" 2>&1 && ! grep -qi error "$tmp/answer" || {
			cat "$example" "$tmp/answer"
			return 1
		}
	done
}

# usage: killed_after MILLISECONDS
killed_after()
{
	rm -f "$tmp"/run.db*
	cp "$tmp/older.db" "$tmp/run.db"
	"$NUMAPGO" record -q -o "$tmp/run.db" -- "$B/workloads/serial_init" 32 4 800 >"$tmp/printed" 2>&1 &
	recorder=$!
	sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"
	kill -9 $recorder
	wait $recorder 2>/dev/null
	ls -l "$tmp"/run.db*
	for db in "$tmp"/run.db*; do
		case $db in *-journal) continue ;; esac
		readable "$db" || return 1
	done
	for db in "$tmp"/run.db*; do
		cmp -s "$db" "$tmp/older.db" && return 0
	done
	echo "the older recording is gone"
	return 1
}

program_ended_well()
{
	i=0
	until grep -q 'serial_init: ok' "$tmp/printed"; do
		[ $i -lt 300 ] || { cat "$tmp/printed"; return 1; }
		i=$((i + 1))
		sleep 0.1
	done
}

ok 'schemas/README.md has examples' [ -s "$tmp/example1.sql" ]
ok 'a first recording' "$NUMAPGO" record -q -o "$tmp/older.db" -- "$B/workloads/serial_init" 16 2 20
ok 'it answers the examples' readable "$tmp/older.db"
for i in 1 2 3 4 5 6 7 8 9 10; do
	ms=$((50 + $(od -An -N2 -tu2 /dev/urandom) % 1500))
	ok "recorder killed after $ms ms: nothing broken, nothing lost" killed_after $ms
	# killed before it let the program go, there is none
	grep -q . "$tmp/printed" || [ $ms -lt 300 ] || ok 'the program ran on' program_ended_well
done
finish
