#!/bin/sh
# Everything that must hold before a change lands; called by make check. Prints what each step
# does and takes, and ends with one line: "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C CMOCKA_MESSAGE_OUTPUT=TAP B="${B:-build}"
MAKE=${MAKE:-make}
results=$B/check
jobs=$(nproc)
rm -rf "$results"
mkdir -p "$results"
began=$(date +%s)

# run.sh's arguments, one call
run()
{
	sh tests/run.sh -d "$results" "$@"
}

# run.sh's arguments, one call a line on standard input; as many at once as there are processors
run_parallel()
{
	xargs -P "$jobs" -I '{}' sh -c "sh tests/run.sh -d '$results' {}"
}

step()
{
	echo "== $* ($(($(date +%s) - began)) s)"
}

# Names of the unit tests, as run.sh lines; $1: build directory, $2...: files
unit_lines()
{
	under=$1
	shift
	for file; do
		test=$(basename "$file" .c)
		[ ! -f "$file" ] || echo "$under/$test $under/unit/$test"
	done
}

build() # NAME, make arguments
{
	name=$1
	shift
	run -p -l 600 "$name" $MAKE --no-print-directory -j "$jobs" "$@"
}

step 'build: gcc, clang, sanitizers'
build build/gcc CC=gcc B="$B" all workloads targets unit-programs || exit 1
build build/clang CC=clang B="$B/clang" all workloads unit-programs
build build/asan CC=gcc B="$B/asan" SAN=address,undefined all unit-programs
threaded=$(grep -l pthread tests/unit/test_*.c 2>/dev/null)
[ -z "$threaded" ] || build build/tsan CC=gcc B="$B/tsan" SAN=thread unit-programs

step 'the sources themselves'
run_parallel <<-END
	layers sh tests/check_layers.sh
	docs sh tests/check_docs.sh
	format sh tests/check_format.sh
	preload-objects sh tests/check_preload.sh
END

step 'unit tests'
{
	unit_lines "$B" tests/unit/test_*.c
	unit_lines "$B/asan" tests/unit/test_*.c
} | run_parallel
# ThreadSanitizer of gcc 12 cannot place its shadow under the address layouts of newer kernels
unit_lines "$B/tsan" $threaded | sed 's/ / setarch -R /' | run_parallel

step 'fuzzers, a few seconds each'
run -p -l 600 fuzz $MAKE --no-print-directory -j "$jobs" B="$B" FUZZ_SECONDS=5 fuzz

step 'command line'
NUMAPGO=$PWD/$B/numapgo
export NUMAPGO
for script in tests/cli/t*.sh; do
	echo "-l 600 cli/$(basename "$script" .sh) sh $script"
done | run_parallel

step 'command line, sanitized: other machines, queries, decisions, bad input'
for script in tests/cli/t01*.sh tests/cli/t03*.sh tests/cli/t060[1-4]*.sh; do
	[ ! -f "$script" ] || echo "-l 600 asan/$(basename "$script" .sh)" \
		"env NUMAPGO=$PWD/$B/asan/numapgo sh $script"
done | run_parallel

step 'programs that are hard on a preload object'
# replay here under the plan of another program; tests/cli has them under plans of their own
"$NUMAPGO" record -q -o "$results/cases.db" -- "$B/workloads/serial_init" 16 2 50 >/dev/null &&
	"$NUMAPGO" analyze -q --machine 4-small -o "$results/cases.plan" "$results/cases.db" >/dev/null
run_parallel <<-END
	-l 900 cases/record sh tests/cases/run-all.sh $NUMAPGO record -q -o $PWD/$results/case.db --
	-l 900 cases/replay sh tests/cases/run-all.sh $NUMAPGO replay -q --plan $PWD/$results/cases.plan --
END

step 'result'
awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 }' \
	"$results/counts"
