#!/bin/sh
# An OpenMP program under gcc's and clang's runtimes.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/real.sh"

program() # OUTPUT-DIRECTORY PREFIX...
{
	shift
	OMP_PROC_BIND=$bind "$@" "$build/workloads/omp_triad" 96 4 200
}

for build in "$B" "$B/clang"; do
	for bind in false true; do
		rm -rf "$tmp"/bare "$tmp"/re*
		if [ -x "$build/workloads/omp_triad" ]; then
			record_and_replay "OpenMP program in $build, OMP_PROC_BIND=$bind" 300
		else
			skip "OpenMP program in $build" "not built"
		fi
	done
done
finish
