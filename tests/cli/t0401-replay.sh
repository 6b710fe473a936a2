#!/bin/sh
# numapgo replay: what runs, what is refused, what is said.
. "$(dirname "$0")/lib.sh"

cat >"$tmp/app.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char table[5 << 20];
int main(int argc, char **argv)
{
	char *block = malloc(8 << 20);

	memset(table, 1, sizeof(table));
	memset(block, VALUE, 8 << 20);
	printf("%d %s\n", block[5] + table[7], getenv("LD_PRELOAD") ? "preload" : "clean");
	if (argc > 1 && strcmp(argv[1], "env") == 0)
		return system("env | grep -c -e ^NUMAPGO_RE -e libnumapgo");
	if (argc > 1 && strcmp(argv[1], "abort") == 0)
		abort();
	return argc > 1 ? atoi(argv[1]) : 0;
}
END
build()
{
	cc -O1 -DVALUE="$1" -Wl,--build-id -o "$tmp/app" "$tmp/app.c"
}
replay()
{
	"$NUMAPGO" replay --plan "$tmp/app.plan" "$@"
}
echoes()
{
	want=$1
	shift
	got=$("$@" 2>/dev/null)
	[ "$got" = "$want" ] || {
		echo "printed '$got', not '$want'"
		return 1
	}
}
# usage: reports CONDITION: a Python function of the report
reports()
{
	replay --report "$tmp/out.json" -q -- "$tmp/app" >/dev/null
	python3 -c "import json, sys; sys.exit(not ($1)(json.load(open('$tmp/out.json'))))"
}

build 41
"$NUMAPGO" record -q -o "$tmp/app.db" -- "$tmp/app" >/dev/null
ok 'a plan by hand' python3 tests/helpers/make_plan.py "$tmp/app.db" "$tmp/app.plan" 4 \
	heap:8=2,3/ static:5=1/

ok 'the program runs with its output' echoes '42 clean' replay -q -- "$tmp/app"
ok 'its exit status' status 7 replay -q -- "$tmp/app" 7
ok 'its signal' status 134 sh -c "ulimit -c 0; '$NUMAPGO' replay -q --plan '$tmp/app.plan' -- '$tmp/app' abort"
ok 'the summary' says 'replayed .*: 2/2 objects matched, 13\.0 MiB placed' replay -- "$tmp/app"
ok 'quiet' echoes '' sh -c "'$NUMAPGO' replay -q --plan '$tmp/app.plan' -- '$tmp/app' 2>&1 >/dev/null"
ok 'children have a clean environment' says '^0$' replay -q -- "$tmp/app" env
ok 'also with a preload of the user' says '^1$' sh -c \
	"LD_PRELOAD=libc.so.6 '$NUMAPGO' replay -q --plan '$tmp/app.plan' -- sh -c 'env | grep -c LD_PRELOAD=libc.so.6'"
ok 'the report as JSON' reports 'lambda o: o["placed"] and o["matched"] == 2 and
	o["placed_bytes"] >= 13 << 20 and o["sampled_pages"] == o["sampled_pages_on_node"] and
	o["refused"] == []'
ok 'JSON on stderr' sh -c "'$NUMAPGO' replay --json --plan '$tmp/app.plan' -- '$tmp/app' 2>&1 >/dev/null |
	python3 -m json.tool"

ok 'a dry run runs nothing' echoes 'objects:' sh -c \
	"'$NUMAPGO' replay --dry-run --plan '$tmp/app.plan' -- '$tmp/app' 7 | grep -xF -e 42 -e objects:"
ok 'and says what would be done' says 'pages 1024-20[0-9]+: prefer node' replay --dry-run -- "$tmp/app"

cd "$tmp" || exit 1
ok 'no plan' status 125 "$NUMAPGO" replay -- ./app
ok 'no plan: what to do' says 'numapgo.plan: .*numapgo analyze' "$NUMAPGO" replay -- ./app
head -c 300 app.plan >cut.plan
ok 'a broken plan runs nothing' echoes '' "$NUMAPGO" replay --plan cut.plan -- ./app
ok 'a broken plan: where' says 'cut.plan: not a plan: line' "$NUMAPGO" replay --plan cut.plan -- ./app
sed 's/"node": 3/"node": 9/' app.plan >bad.plan
ok 'a wrong value: where' says 'bad.plan: .*objects\[[01]\]\.ranges\[1\]\.node: 9 is not one of' \
	"$NUMAPGO" replay --plan bad.plan -- ./app
sed '0,/{/s//{"leave": true, "leave_reason": "so it is",/' app.plan >leave.plan
ok 'a plan that says leave' says 'replayed nothing: .*so it is' "$NUMAPGO" replay --plan leave.plan -- ./app
ok 'leaves the program alone' echoes '42 clean' "$NUMAPGO" replay --plan leave.plan -- ./app
cd - >/dev/null || exit 1

cc -static -O1 -DVALUE=41 -o "$tmp/static" "$tmp/app.c"
ok 'a static program runs' status 3 replay -q -- "$tmp/static" 3
ok 'and is told apart' says 'replayed nothing: .*static' replay -- "$tmp/static"
ok '--strict refuses it' status 125 replay --strict -- "$tmp/static"
ok '--strict and a machine with fewer nodes' says 'for 4 nodes, 1 may be used|not fit|objects matched' \
	replay --strict -- "$tmp/app"

build 43
ok 'a rebuilt program runs' echoes '44 clean' replay -q -- "$tmp/app"
ok 'and is said to be stale' says '1 of 2 planned objects .* stale: app was built anew' replay -- "$tmp/app"
ok 'its static objects are found by name' says '1/2 objects matched' replay -- "$tmp/app"
ok '--on-stale=ignore' echoes '0' sh -c \
	"'$NUMAPGO' replay --on-stale=ignore --plan '$tmp/app.plan' -- '$tmp/app' 2>&1 | grep -c stale"
ok '--on-stale=error' status 125 replay --on-stale=error -- "$tmp/app"
ok 'another program' says 'made for another program: .*/app' replay -- true
ok 'OpenMP that pins itself is left alone' says 'left to OMP_PROC_BIND' env OMP_PROC_BIND=true \
	"$NUMAPGO" replay --plan "$tmp/app.plan" -- "$tmp/app"
finish
