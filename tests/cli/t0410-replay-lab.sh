#!/bin/sh
# Pages, page-table pages and threads on a real kernel with several nodes, in the lab.
. "$(dirname "$0")/lib.sh"
lab=$PWD/tests/lab/lab

cat >"$tmp/guest.sh" <<'END'
echo madvise >/sys/kernel/mm/transparent_hugepage/enabled
echo '== planned'
./numapgo replay --plan lab.plan -- ./placement 4 2>&1
echo '== one CPU'
taskset 1 ./numapgo replay --plan lab.plan -- ./placement 4 2>&1
echo '== no page tables'
./numapgo replay --page-tables off --plan lab.plan -- ./placement 1 2>&1
echo '== strict'
./numapgo replay --strict --plan lab.plan -- ./placement 4 2>&1
echo always >/sys/kernel/mm/transparent_hugepage/enabled
echo '== huge pages'
./numapgo replay --plan lab.plan -- ./placement 4 2>&1
END
# usage: part NAME: lines of one run
part()
{
	sed -n "/^== $1\$/,/^== /p" "$tmp/out"
}
# usage: shows NAME LINE: as an extended regular expression
shows()
{
	part "$1"
	part "$1" | grep -qE -e "$2"
}
# usage: has_tables NAME NODE MIN MAX: page-table pages that the program added on a node
has_tables()
{
	part "$1" | grep '^page tables'
	nr=$(part "$1" | sed -n "s/^page tables:.* $2=\(-*[0-9]*\).*/\1/p")
	[ "$nr" -ge "$3" ] && [ "$nr" -le "$4" ]
}
# usage: in_guest MACHINE SCRIPT
in_guest()
{
	"$lab" run --machine "$1" --timeout 200 --files "$NUMAPGO" --files "$B/libnumapgo-replay.so" \
		--files "$tmp/lab.plan" --files "$B/targets/placement" --files "$2" -- \
		sh "$(basename "$2")" >"$tmp/out" 2>"$tmp/err"
}

"$NUMAPGO" record -q -o "$tmp/lab.db" -- "$B/targets/placement" 4 >/dev/null
python3 tests/helpers/make_plan.py "$tmp/lab.db" "$tmp/lab.plan" 4 heap:64=0,1,2,3/3 mmap:32=3,0/1 \
	static:16=2,1/ heap:8=@
if ! in_guest 4-small "$tmp/guest.sh"; then
	skip 'four nodes' "no lab: $(tail -n 1 "$tmp/err")"
	finish
	exit
fi
ok 'heap pages where planned' shows planned '^heap: 0=4096 1=4096 2=4096 3=4096$'
ok 'mapped pages where planned' shows planned '^map: 0=4096 3=4096$'
ok 'static pages where planned' shows planned '^static: 1=2048 2=2048$'
ok 'page tables of the heap apart from their data' has_tables planned 3 32 48
ok 'page tables of the mapping apart from their data' has_tables planned 1 16 30
ok 'and nowhere else' has_tables planned 2 -2 12
for n in 0 1 2 3; do
	ok "the own block of thread $n" shows planned "^thread $n: $n=2048\$"
	ok "thread $n is on its node" shows planned "^CPUs of thread $n: 2\$"
done
ok 'a child that it forks is not pinned' shows planned '^CPUs of a forked child: 8$'
ok 'nor is a program that it starts' shows planned '^CPUs of a program: 0-7$'
ok 'the summary' shows planned 'replayed \(4 nodes as planned\): .*100\.0 % of .* 5 threads pinned$'
ok 'a mask from outside: the threads stay in it' shows 'one CPU' '^CPUs of thread 3: 1$'
ok 'and the memory is placed' shows 'one CPU' '^heap: 0=4096 1=4096 2=4096 3=4096$'
ok '--page-tables off' has_tables 'no page tables' 3 -2 64
ok 'says nothing of page tables' sh -c "! sed -n '/^== no page/,/^== strict/p' '$tmp/out' | grep 'page-table pages placed'"
ok '--strict' shows strict '^heap: 0=4096 1=4096 2=4096 3=4096$'
ok 'huge pages: data as planned' shows 'huge pages' '^heap: 0=4096 1=4096 2=4096 3=4096$'
ok 'huge pages: said' shows 'huge pages' 'page tables are left: transparent huge pages'

cat >"$tmp/fold.sh" <<'END'
echo '== folded'
./numapgo replay --plan lab.plan -- ./placement 4 2>&1
./numapgo replay --strict --plan lab.plan -- ./placement 4 2>&1
echo "status $?"
END
in_guest 2-small "$tmp/fold.sh"
ok 'fewer nodes: said' shows folded 'fewer nodes here than planned: nodes 0->'
ok 'fewer nodes: spread over those here' shows folded '^heap: 0=8192 1=8192$'
ok 'fewer nodes: --strict refuses' shows folded '^status 125$'
finish
