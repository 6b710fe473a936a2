#!/bin/sh
# sql: the forms of output, and that nothing but a query gets through.
. "$(dirname "$0")/lib.sh"

sql()
{
	"$NUMAPGO" sql "$@"
}

prints() # TEXT COMMAND...: exactly TEXT on standard output
{
	want=$1
	shift
	"$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
	printf '%b' "$want" >"$tmp/want"
	cat "$tmp/err"
	diff "$tmp/want" "$tmp/out" && [ $status = 0 ]
}

cp tests/cli/lib.sh "$tmp/text"
sqlite3 "$tmp/a.db" <schemas/recording.sql
sqlite3 "$tmp/a.db" <schemas/analysis.sql
sqlite3 "$tmp/a.db" "INSERT INTO meta VALUES ('complete', 1);
	INSERT INTO string VALUES (1, 'a' || char(9) || 'b'), (2, 'line' || char(10) || 'two\\'), (3, 'caf' || char(233));"
db=$tmp/a.db
sum=$(md5sum <"$db")

ok 'tabs between the values' prints 'id\ttext\n1\ta\\tb\n2\tline\\ntwo\\\\\n3\tcaf\0303\0251\n' \
	sql "$db" 'SELECT id, text FROM string'
ok 'NULL is an empty field' prints 'a\tb\tc\n\t1.5\tx'"'"'00ff'"'"'\n' \
	sql "$db" "SELECT NULL AS a, 1.5 AS b, x'00ff' AS c"
ok 'JSON is a list of objects' python3 -c "
import json, subprocess, sys
rows = json.loads(subprocess.run(sys.argv[1:], check=True, capture_output=True).stdout)
assert rows == [{'a': 1, 'b': None, 't': 'a\tb', 'r': 0.5}], rows" \
	"$NUMAPGO" sql --json "$db" 'SELECT 1 AS a, NULL AS b, text AS t, 0.5 AS r FROM string WHERE id = 1'
ok 'no rows are an empty list' prints '[\n]\n' sql --json "$db" 'SELECT 1 AS a WHERE 0'
ok 'equal names are refused for JSON' says 'AS' status 1 sql --json "$db" 'SELECT 1 AS a, 2 AS a'
ok 'columns are aligned on a terminal' \
	says '^id  text' script -qec "'$NUMAPGO' sql '$db' 'SELECT id, text FROM string'" /dev/null
ok 'a comment and a semicolon at the end are no second query' \
	prints 'a\n1\n' sql "$db" '/* one */ SELECT 1 AS a; -- end'
ok 'EXPLAIN and WITH and VALUES pass' sh -c "for q in 'EXPLAIN QUERY PLAN SELECT 1' \
	'WITH q AS (SELECT 1) SELECT * FROM q' 'VALUES (1)'; do '$NUMAPGO' sql '$db' \"\$q\" || exit 1; done"

for query in "DELETE FROM string" "INSERT INTO string VALUES (9, 'x')" 'DROP TABLE gap' \
	"ATTACH '$tmp/b.db' AS b" 'PRAGMA user_version = 5' 'PRAGMA journal_mode = WAL' 'VACUUM' \
	"VACUUM INTO '$tmp/b.db'" 'BEGIN' 'CREATE TEMP TABLE t (a)' \
	"WITH q AS (SELECT 1) DELETE FROM string" 'SELECT 1; DELETE FROM string' '' ';' '-- x' \
	'SELEKT 1' 'SELECT' 'SELECT * FROM nowhere' "SELECT load_extension('x')" \
	"SELECT writefile('$tmp/b.db', 'x')"; do
	ok "refused: '$query'" status 1 sql "$db" "$query"
done
ok 'the recording is as it was' [ "$sum" = "$(md5sum <"$db")" ]
ok 'no file has appeared' [ ! -e "$tmp/b.db" ]
ok 'operands are counted' status 2 sql "$db"
ok 'a missing file is named' says 'none.db' status 1 sql "$tmp/none.db" 'SELECT 1'
ok 'a text is no recording' says 'not a database' status 1 sql "$tmp/text" 'SELECT 1'
ok 'a full disk is noticed' says 'cannot write' \
	status 1 sh -c "'$NUMAPGO' sql '$db' 'SELECT * FROM sqlite_schema' >/dev/full"
finish
