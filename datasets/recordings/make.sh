#!/bin/sh
# Make a small recording for the tests: usage: make.sh RECORDING.db NTH >NAME.sql
# Keeps every NTH sample of the clock and nothing that tells where it was recorded. The result is
# read back by: sqlite3 NEW.db <schemas/recording.sql; sqlite3 NEW.db <schemas/analysis.sql;
# sqlite3 NEW.db <NAME.sql
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$1" "$work/r.db"
sqlite3 "$work/r.db" "
	DELETE FROM sample WHERE rowid % $2 <> 0 AND source_id IN (SELECT id FROM source WHERE name = 'clock');
	UPDATE source SET nr_samples = (SELECT count(*) FROM sample WHERE source_id = source.id)
		WHERE state = 'used';
	UPDATE run SET host_id = NULL, kernel_id = NULL, cpu_model_id = NULL, started_unix_ns = NULL;
	UPDATE machine SET hwloc_xml = NULL, fingerprint = 'not kept';
	DELETE FROM mapping; DELETE FROM cpu; DELETE FROM node; DELETE FROM node_distance;
	DELETE FROM note; DELETE FROM gap;
	DELETE FROM string WHERE id NOT IN (SELECT command_id FROM run UNION SELECT exe_id FROM process
		UNION SELECT coalesce(comm_id, 0) FROM process UNION SELECT coalesce(name_id, 0) FROM thread
		UNION SELECT path_id FROM module UNION SELECT coalesce(function_id, 0) FROM frame
		UNION SELECT coalesce(name_id, 0) FROM object);
	UPDATE string SET text = '/opt/' || replace(text, rtrim(text, replace(text, '/', '')), '')
		WHERE text LIKE '/%' AND text NOT LIKE '/usr/lib/%' AND text NOT LIKE '/lib%';
	UPDATE string SET text = './' || replace(text, rtrim(text, replace(text, '/', '')), '')
		WHERE text LIKE './%';"
for table in meta string run machine process module thread frame callsite callsite_frame object \
	small_site source sample; do
	sqlite3 "$work/r.db" ".mode insert $table" "SELECT * FROM $table"
done
