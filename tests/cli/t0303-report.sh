#!/bin/sh
# report: before and after analyze, incomplete and empty recordings, JSON.
. "$(dirname "$0")/lib.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$tmp" || exit 1

is_json() # COMMAND...
{
	"$@" >out.json || return 1
	[ "$(sqlite3 :memory: "SELECT json_valid(readfile('out.json'))")" = 1 ]
}

has_json() # PATH VALUE: of out.json
{
	[ "$(sqlite3 :memory: "SELECT json_extract(readfile('out.json'), '$1') $2")" = 1 ]
}

fits() # COLUMNS COMMAND...
{
	columns=$1
	shift
	COLUMNS=$columns "$@" >out.txt || return 1
	! grep -E ".{$((columns + 1))}" out.txt
}

for f in schemas/recording.sql schemas/analysis.sql datasets/recordings/many_objects.sql; do
	sqlite3 r.db <"$top/$f"
done
report="$NUMAPGO report"

ok "a report needs no analyze" says 'On 4-small, [0-9.]+ % of [0-9]+ sampled' \
	$report --machine 4-small r.db
ok "it says what to do next" says '^next: numapgo analyze r.db' $report --machine 4-small r.db
ok "the unmatched share is always said" says '100\.0 % of [0-9]+ address samples' $report r.db
ok "without a machine there is still a report" says '^clock +[0-9]+' $report r.db
ok "unavailable sources give their reason" says '^loads +unavailable: ' $report r.db
"$NUMAPGO" analyze -q --machine 4-small -o r.plan r.db
ok "after analyze it is about the machine that was planned for" says 'On 4-small, ' $report r.db
ok "the next step is then replay" says '^next: numapgo replay -- ./many_objects' $report r.db
ok "allocations of a site are one row" says 'private 1 each .*main \(heap 0x[0-9a-f]+ x[0-9]+\)' \
	$report r.db
ok "it fits 80 columns" fits 80 $report r.db
ok "it fits 100 columns" fits 100 $report r.db
ok "no colours in a file" sh -c "! $report r.db | grep -q '$(printf '\033')'"
ok "--json is JSON" is_json $report --json r.db
ok "the JSON has the matched share" has_json '$.summary.matched_share' '= 1.0'
ok "the JSON has all objects" has_json '$.objects[0].nr_allocations' '> 400'
ok "first touch is 20 to 35 % local in it" has_json '$.predictions[0].lar' 'BETWEEN 0.2 AND 0.35'
cp r.db empty.db
sqlite3 empty.db "DELETE FROM sample; UPDATE meta SET value = 0 WHERE key = 'complete'"
ok "a recording without samples is reported" says 'no address sample' status 0 $report empty.db
ok "and as JSON" is_json $report --json empty.db
ok "it is called incomplete" says 'incomplete recording' $report empty.db
head -c 20000 r.db >cut.db
ok "a truncated file is an error, not a crash" status 1 $report cut.db
ok "a missing file is an error" says 'nothing.db' status 1 $report nothing.db
finish
