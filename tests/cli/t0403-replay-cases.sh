#!/bin/sh
# Programs that break tools like ours, under a plan that really matches what they allocate.
export NUMAPGO="${NUMAPGO:-$PWD/${B:-build}/numapgo}"
for case in affinity_omp alloc_family deepbind_plugin early_alloc exit_paths fork_threads huge_reserve \
	map_surgery own_malloc own_mempolicy shared_maps thread_churn user_preload; do
	set -- "$@" -c $case
done
exec sh tests/cases/run-all.sh "$@" "$PWD/tests/helpers/record_replay.sh"
