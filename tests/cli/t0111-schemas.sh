#!/bin/sh
# schemas/README.md: every example runs in the stock shell, on an empty and on a real recording.
. "$(dirname "$0")/lib.sh"

awk -v tmp="$tmp" '/^```sql/ { n++; inside = 1; next } /^```/ { inside = 0 }
	inside { print > (tmp "/example-" n ".sql") }' schemas/README.md

columns() # DB FILE: the query runs, and is one
{
	sqlite3 -readonly -bail -header "$1" <"$2"
}

all_examples() # DB TITLE
{
	for file in "$tmp"/example-*.sql; do
		ok "$2: $(basename "$file" .sql) runs" columns "$1" "$file"
	done
}

ok 'there are examples' [ "$(ls "$tmp"/example-*.sql | wc -l)" -ge 10 ]
sqlite3 "$tmp/empty.db" <schemas/recording.sql
sqlite3 "$tmp/empty.db" <schemas/analysis.sql
all_examples "$tmp/empty.db" 'empty recording'

ok 'a recording' "$NUMAPGO" record -q -o "$tmp/a.db" -- "$B/workloads/serial_init" 16 2 60
ok 'its analysis' "$NUMAPGO" analyze -q --machine 4-small -o "$tmp/a.plan" "$tmp/a.db"
all_examples "$tmp/a.db" 'real recording'
for n in 1 2 3 9; do
	ok "example $n has rows there" [ "$(columns "$tmp/a.db" "$tmp/example-$n.sql" | wc -l)" -gt 1 ]
done
ok 'the stock shell finds it sound' [ "$(query "$tmp/a.db" 'PRAGMA integrity_check')" = ok ]

every_view()
{
	for view in $(query "$1" "SELECT name FROM sqlite_schema WHERE type = 'view'"); do
		query "$1" "SELECT * FROM $view" >/dev/null || return 1
	done
}
ok 'every view can be read' every_view "$tmp/a.db"
finish
