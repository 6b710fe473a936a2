# For the scripts that run real programs; after lib.sh.
#
# A program is a shell function program() that is given the output directory and a prefix to put in
# front of the real command, and leaves everything that it prints or makes in that directory.

# usage: run_bare; run_recorded; run_replayed: the status goes to file status
run_as() # DIRECTORY, prefix
{
	out=$tmp/$1
	shift
	mkdir -p "$out"
	program "$out" "$@" >"$out/stdout" 2>"$out/stderr"
	echo $? >"$out/status"
}

unchanged() # DIRECTORY
{
	diff -r -x stderr "$tmp/bare" "$tmp/$1" || {
		tail -n 5 "$tmp/$1/stderr"
		return 1
	}
}

# At least 95 % of the address samples belong to an object, and there are enough to say so.
matched() # DB, least number of samples
{
	query "$1" "SELECT name, state, nr_records, nr_samples, nr_unmatched, nr_lost FROM source"
	set -- "$1" "$2" $(query -separator ' ' "$1" \
		"SELECT ifnull(sum(nr_samples), 0), ifnull(sum(nr_unmatched), 0) FROM source")
	[ "$3" -ge "$2" ] || {
		echo "only $3 samples, not $2"
		return 1
	}
	echo "$4 of $3 samples in no object"
	[ $(($4 * 100)) -le $(($3 * 5)) ]
}

sound() # DB
{
	[ "$(query "$1" 'PRAGMA integrity_check')" = ok ] &&
		[ "$(query "$1" "SELECT value FROM meta WHERE key = 'complete'")" = 1 ]
}

# usage: record_and_replay WHAT LEAST-SAMPLES: the whole pipeline on program()
record_and_replay()
{
	run_as bare
	ok "$1: runs without numapgo" [ "$(cat "$tmp/bare/status")" = 0 ]
	run_as recorded "$NUMAPGO" record -q -o "$tmp/r.db" --
	ok "$1: status and output unchanged when recorded" unchanged recorded
	ok "$1: the recording is complete and sound" sound "$tmp/r.db"
	ok "$1: 95 % of the samples match an object" matched "$tmp/r.db" "$2"
	ok "$1: report reads it" "$NUMAPGO" report "$tmp/r.db"
	ok "$1: analyze plans for four nodes" \
		"$NUMAPGO" analyze -q --machine "${MACHINE:-4-small}" -o "$tmp/p.plan" "$tmp/r.db"
	run_as replayed "$NUMAPGO" replay -q --plan "$tmp/p.plan" --
	ok "$1: status and output unchanged when replayed" unchanged replayed
}
