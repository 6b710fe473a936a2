#!/bin/sh
# The workloads give the right result under both compilers, and bad arguments are told.
. "$(dirname "$0")/lib.sh"

# usage: agrees NAME OPTIONS...: gcc's and clang's program print the same line of success
agrees()
{
	name=$1
	shift
	"$B/workloads/$name" "$@" >"$tmp/gcc" && "$B/clang/workloads/$name" "$@" >"$tmp/clang" || return 1
	cat "$tmp/gcc"
	grep -q "^$name: ok, sum [0-9a-fA-F]*$" "$tmp/gcc" && diff "$tmp/gcc" "$tmp/clang"
}

explains()
{
	"$1" --help >"$tmp/help" && grep -q '^defaults: SIZE_MIB' "$tmp/help" &&
		status 2 "$1" 0 && status 2 "$1" 8 2 2 2 && status 2 "$1" eight
}

for file in datasets/workloads/*.c datasets/workloads/*.f90; do
	name=$(basename "${file%.*}")
	if [ -x "$B/clang/workloads/$name" ]; then
		ok "$name gives the right result under both compilers" agrees "$name" 8 3 5
	else
		skip "$name gives the right result under both compilers" "no build by clang in $B/clang"
	fi
	ok "$name explains itself and refuses bad arguments" explains "$B/workloads/$name"
done
for name in table_random btree_lookup; do
	ok "$name --own gives the right result" "$B/workloads/$name" --own 8 3 2
done
finish
