#!/bin/sh
# A program built with AddressSanitizer is started by a recorded one: it must run and give its own
# verdict, although the recording object is loaded before its runtime.
. "$(dirname "$0")/lib.sh"

cat >"$tmp/heap.c" <<'C'
#include <stdlib.h>
int main(int argc, char **argv)
{
	volatile char *p = malloc(100000);

	(void)argv;
	p[argc > 1 ? 100000 : 5] = 1;
	free((void *)p);
	return 0;
}
C
record()
{
	"$NUMAPGO" record -q -o "$tmp/a.db" "$@"
}
verdict()
{
	record -- sh -c "$tmp/gcc wrong; exit \$?" 2>&1 | grep -q heap-buffer-overflow
}
gcc -fsanitize=address -o "$tmp/gcc" "$tmp/heap.c"
clang -fsanitize=address -o "$tmp/clang" "$tmp/heap.c"
ok "a sound child built by gcc runs" record -- sh -c "$tmp/gcc; exit \$?"
ok "a sound child built by clang runs" record -- sh -c "$tmp/clang; exit \$?"
ok "a faulty child gets its verdict" verdict
ok "the user's ASAN_OPTIONS stay" says '^log_path=x:' \
	env ASAN_OPTIONS=log_path=x "$NUMAPGO" record -q -o "$tmp/a.db" -- \
	sh -c 'echo "$ASAN_OPTIONS"'
ok "children that are left see nothing of it" says '^-unset-$' \
	"$NUMAPGO" record -q --children leave -o "$tmp/a.db" -- \
	sh -c 'exec sh -c "echo -\${ASAN_OPTIONS:-unset}-"'
finish
