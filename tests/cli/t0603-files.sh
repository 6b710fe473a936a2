#!/bin/sh
# Databases and plans that are broken, cut off or of someone else: a clear error, status 1, and the
# file stays as it is.
. "$(dirname "$0")/lib.sh"

# usage: refuses FILE TEXT VERB ARGS...: status 1 (125 for a launcher), says FILE and TEXT
refuses()
{
	file=$1 words=$2
	shift 2
	sum=$(md5sum <"$file")
	case $1 in
	replay) want=125 ;;
	*) want=1 ;;
	esac
	"$NUMAPGO" "$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	cat "$tmp/err"
	[ $got = $want ] || { echo "status $got, not $want"; return 1; }
	grep -qF "$(basename "$file")" "$tmp/err" || { echo "does not name the file"; return 1; }
	grep -qEi -e "$words" "$tmp/err" || { echo "does not say: $words"; return 1; }
	[ "$sum" = "$(md5sum <"$file")" ] || { echo "the file was changed"; return 1; }
}

# usage: readers SENTENCE FILE TEXT: every verb that reads a database refuses FILE
readers()
{
	ok "report: $1" refuses "$2" "$3" report "$2"
	ok "analyze: $1" refuses "$2" "$3" analyze -o "$tmp/x.plan" "$2"
	ok "sql: $1" refuses "$2" "$3" sql "$2" 'SELECT count(*) FROM meta'
}

work="$B/workloads/serial_init 16 2 60"
ok 'a recording' "$NUMAPGO" record -q -o "$tmp/good.db" -- $work
ok 'a plan' "$NUMAPGO" analyze -q --machine 4-small -o "$tmp/good.plan" "$tmp/good.db"

: >"$tmp/empty.db"
echo 'this is not a database, but a text' >"$tmp/text.db"
sqlite3 "$tmp/other.db" 'PRAGMA application_id = 252006675; CREATE TABLE meta (key, value); CREATE TABLE t (a);'
cp "$tmp/good.db" "$tmp/newer.db" && sqlite3 "$tmp/newer.db" 'PRAGMA user_version = 99'
readers 'empty file' "$tmp/empty.db" 'empty|not a recording|not a numapgo'
readers 'a text file' "$tmp/text.db" 'not a database|not a recording|not a numapgo'
readers 'the database of another application' "$tmp/other.db" 'another application|not a recording|not a numapgo'
readers 'a recording of a later version' "$tmp/newer.db" 'newer'
readers 'a plan in the place of a database' "$tmp/good.plan" 'not a database|not a recording|not a numapgo'
size=$(stat -c %s "$tmp/good.db")
for percent in 1 30 70 99; do
	head -c $((size * percent / 100)) "$tmp/good.db" >"$tmp/cut.db"
	readers "a recording cut at $percent %" "$tmp/cut.db" 'malformed|truncated|damaged|not a database|cut'
done

missing()
{
	says "$1" status "$2" "$NUMAPGO" $3
}
ok 'report: no such file' missing 'nowhere\.db' 1 "report $tmp/nowhere.db"
ok 'analyze: no such file' missing 'nowhere\.db' 1 "analyze -o $tmp/x.plan $tmp/nowhere.db"
ok 'plan: no such file' missing 'nowhere\.plan' 1 "plan show $tmp/nowhere.plan"
ok 'replay: no such plan' missing 'nowhere\.plan' 125 "replay --plan $tmp/nowhere.plan -- true"

# A database of somebody is never overwritten by record without being kept
kept()
{
	cp "$tmp/other.db" "$tmp/mine.db"
	"$NUMAPGO" record -q -o "$tmp/mine.db" -- true
	cmp "$tmp/other.db" "$tmp/mine.db.old" || cmp "$tmp/other.db" "$tmp/mine.db"
}
ok 'record keeps what its output file was' kept

echo '{"format": "numapgo-plan", "version": 1' >"$tmp/cut.plan"
echo '[1, 2, 3]' >"$tmp/list.plan"
echo '{}' >"$tmp/none.plan"
head -c 4096 /dev/urandom >"$tmp/noise.plan"
for name in cut list none noise; do
	ok "plan show: $name" refuses "$tmp/$name.plan" '' plan show "$tmp/$name.plan"
	ok "replay: $name" refuses "$tmp/$name.plan" '' replay --plan "$tmp/$name.plan" -- true
done
ok 'plan show: a database in the place of a plan' refuses "$tmp/good.db" '' plan show "$tmp/good.db"

other_program()
{
	"$NUMAPGO" replay --plan "$tmp/good.plan" -- "$B/workloads/csr_spmv" 8 2 3 >"$tmp/out" 2>"$tmp/err"
	got=$?
	cat "$tmp/out" "$tmp/err"
	[ $got = 0 ] && grep -q 'csr_spmv: ok' "$tmp/out" &&
		grep -qEi 'serial_init|another program|no match|matches nothing|0 of [0-9]+' "$tmp/err"
}
ok 'the plan of another program: said, the program runs' other_program
ok '--strict refuses it' status 125 "$NUMAPGO" replay --strict --plan "$tmp/good.plan" -- \
	"$B/workloads/csr_spmv" 8 2 3
finish
