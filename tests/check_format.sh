#!/bin/sh
# clang-format has nothing to change in any C file of ours.
cd "$(dirname "$0")/.." || exit 1
find cli lib profiler analyzer replayer schemas tests datasets -name '*.[ch]' |
	xargs clang-format --dry-run -Werror && ok=ok || ok='not ok'
echo "1..1"
echo "$ok 1 - clang-format agrees with every file"
