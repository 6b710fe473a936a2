#!/bin/sh
# sqlite3 builds a table of a million rows and queries it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/real.sh"

program() # OUTPUT-DIRECTORY PREFIX...
{
	shift
	rm -f "$tmp/million.db"
	"$@" sqlite3 "$tmp/million.db" <"$tmp/script"
}

cat >"$tmp/script" <<'END'
PRAGMA synchronous = OFF;
PRAGMA cache_size = -65536;
CREATE TABLE item (id INTEGER PRIMARY KEY, class INTEGER, weight INTEGER, name TEXT);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)
	INSERT INTO item SELECT i, i * 7919 % 1009, i * 31 % 65537, 'item-' || i FROM n;
CREATE INDEX item_class ON item (class, weight);
SELECT count(*), sum(weight), max(name) FROM item;
SELECT class, count(*), sum(weight) AS total FROM item GROUP BY class ORDER BY total DESC LIMIT 5;
SELECT count(*) FROM item a JOIN item b ON b.id = a.weight WHERE a.class < 50;
PRAGMA integrity_check;
END
record_and_replay 'sqlite3 with 1 M rows' 300
finish
