#!/bin/sh
# The lab's own tests and everything that numapgo claims about placement, counted (TAP).
# Environment: B build directory. Called by make lab; about 20 minutes on two cores.
# Arguments: names of parts (see the end of this file); all without.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
lab=tests/lab/lab
quiet='--thp never --autonuma off'
serial="$B/workloads/serial_init 8 4 100"

cleanup()
{
	[ -z "${LAB_KEEP:-}" ] || cp -r "$tmp" "$LAB_KEEP"
}

# The number after "accesses:" in a report of counts, in tenths of a percent
local_permille() # REPORT
{
	sed -n 's/^accesses: \([0-9]*\)\.\([0-9]\).*/\1\2/p' "$1"
}

between() # LOW NUMBER HIGH
{
	echo "$2 (wanted $1 to $3)"
	[ -n "$2" ] && [ "$2" -ge "$1" ] && [ "$2" -le "$3" ]
}

# --- the tool ---

runs_a_command()
{
	$lab run -m 2-small --boot-time --out "$tmp/back" -- sh -c \
		'echo to stdout; echo to stderr >&2; mkdir d; echo content >"d/a file"; exit 7' \
		>"$tmp/stdout" 2>"$tmp/stderr"
	[ $? -eq 7 ] && [ "$(cat "$tmp/stdout")" = 'to stdout' ] &&
		grep -q 'to stderr' "$tmp/stderr" && [ "$(cat "$tmp/back/d/a file")" = content ]
}

settings_apply()
{
	$lab run -m 2-small --thp "$1" --autonuma "$2" -- \
		cat /sys/kernel/mm/transparent_hugepage/enabled /proc/sys/kernel/numa_balancing \
		>"$tmp/settings"
	cat "$tmp/settings"
	grep -q "\[$1\]" "$tmp/settings" && tail -n 1 "$tmp/settings" | grep -qx "$3"
}

kills_a_hung_guest()
{
	$lab run -m 2-small --timeout 8 -- sleep 1000 2>"$tmp/stderr"
	[ $? -eq 124 ] || return 1
	console=$(sed -n 's/.*its console: //p' "$tmp/stderr")
	[ -s "$console" ] && rm -f "$console"
}

no_qemu()
{
	mkdir -p "$tmp/bin"
	PATH=$tmp/bin status 125 /usr/bin/python3 $lab run -m 2-small -- true 2>"$tmp/stderr"
	grep -q 'apt-get install qemu-system-x86' "$tmp/stderr"
}

no_kernel()
{
	NUMAPGO_LAB_KERNEL=/nonexistent status 125 $lab run -m 2-small -- true 2>"$tmp/stderr"
	grep -q NUMAPGO_LAB_KERNEL "$tmp/stderr"
}

part_tool()
{
	ok 'a command: exit status, both outputs and files come back' runs_a_command
	sed -n 's/^boot to command/# &/p' "$tmp/stderr"
	ok 'huge pages always, AutoNUMA on' settings_apply always on 1
	ok 'huge pages never, AutoNUMA off' settings_apply never off 0
	ok 'a command that is not there: 127' status 127 $lab run -m 2-small -- /nonexistent
	ok 'a signal: 128 + its number' status 139 $lab run -m 2-small -- sh -c 'kill -SEGV $$'
	ok 'a hung guest is killed and its console kept' kills_a_hung_guest
	ok 'without QEMU it says what to install' no_qemu
	ok 'without a kernel it says what to set' no_kernel
	ok 'an unknown machine: the names are listed' says '4-small' $lab run -m nosuch -- true
	ok 'machines are listed' says '^8-small .*8 nodes' $lab machines
}

# --- counting ---

counts_exactly() # MACHINE
{
	$lab run -m "$1" $quiet --no-caches --counts-to "$tmp/counts" -- "$B/lab/exact" \
		>"$tmp/wanted" 2>"$tmp/report" || return 1
	grep -c . "$tmp/wanted"
	sort "$tmp/wanted" >"$tmp/wanted.sorted"
	sed -n 's/^\(access [0-9]* [0-9]* [0-9]* [0-9]*\) .*/\1/p' "$tmp/counts" | grep -v ' 0 0$' |
		sort | diff "$tmp/wanted.sorted" -
}

part_count()
{
	for machine in 2-small 4-small 8-small 4-nodes-cxl 3-nodes-memoryless 4-nodes-unequal; do
		ok "$machine: loads and stores from each CPU to each node are exact" \
			counts_exactly $machine
	done
}

# --- page tables ---

tables_are_where_they_were_put() # MACHINE
{
	$lab run -m "$1" $quiet --walk "$tmp/walk" -- "$B/lab/tables" 8 >"$tmp/ranges" || return 1
	/usr/bin/python3 - "$tmp/walk" "$tmp/ranges" <<-'END'
		import json, sys
		tables = {int(k, 16): v for k, v in json.load(open(sys.argv[1])).items()}
		right = total = 0
		for line in open(sys.argv[2]):
		    _, address, regions, table, data = line.split()
		    for i in range(int(regions)):
		        total += 1
		        found = tables.get(int(address, 16) + (i << 21))
		        right += bool(found) and found['tables'][1:] == [int(table)] * 3 and \
		            found['data'] == {data: 512}
		print('%d of %d regions' % (right, total))
		sys.exit(not (total >= 8 and right == total))
	END
}

tables_per_node() # the same by /proc/kpageflags: the sum over the nodes is what a process adds
{
	$lab run -m 4-small $quiet -f "$B/lab/pgtables" -f "$B/lab/interleave" -- sh -c '
		./pgtables >before
		./interleave sh -c "./pgtables" >during
		cat before; echo; cat during' >"$tmp/frames" || return 1
	cat "$tmp/frames"
	awk '/^node/ { n[FNR > 5] += $3 } END { exit !(n[0] > 20 && n[1] > 20) }' "$tmp/frames"
}

part_tables()
{
	for machine in 2-small 4-small 8-small; do
		ok "$machine: data on node k+1, tables on node k, every k: so the walker reads it" \
			tables_are_where_they_were_put $machine
	done
	ok 'page-table frames per node are counted inside the guest' tables_per_node
}

# --- locality, before and after ---

first_touch()
{
	$lab run -m 4-small $quiet --pin --count --no-caches -- $serial 2>"$tmp/first" || return 1
	between 240 "$(local_permille "$tmp/first")" 260
}

replayed() # PLAN
{
	$lab run -m 4-small $quiet --count --no-caches -f "$1" -- "$NUMAPGO" replay -q \
		--plan "$(basename "$1")" -- $serial 2>"$tmp/after" || { cat "$tmp/after"; return 1; }
	cat "$tmp/after"
	between 980 "$(local_permille "$tmp/after")" 1000
}

recorded_and_replayed() # the program runs longer, for enough samples
{
	$lab run -m 4-small $quiet --pin --out "$tmp" -- "$NUMAPGO" record -q -o run.db -- \
		"$B/workloads/serial_init" 8 4 1500 || return 1
	"$NUMAPGO" analyze -m 4-small -o "$tmp/run.plan" "$tmp/run.db" || return 1
	replayed "$tmp/run.plan"
}

virtual_pmu() # KIND SOURCE: only that kind of record is imported
{
	[ -s "$tmp/vpmu.trace" ] || $lab run -m 4-small $quiet --pin --trace "$tmp/vpmu.trace" \
		--period 100 --out "$tmp" -- "$NUMAPGO" record -q -o vpmu.db -- $serial \
		>"$tmp/vpmu.out" 2>&1 || { cat "$tmp/vpmu.out"; return 1; }
	grep -E "^(numalab-trace|$1) " "$tmp/vpmu.trace" >"$tmp/$2.trace"
	"$NUMAPGO" import --with "$tmp/vpmu.db" -o "$tmp/$2.db" "$tmp/$2.trace" || return 1
	[ "$(query "$tmp/$2.db" "SELECT state FROM source WHERE name = '$2'")" = used ] || return 1
	"$NUMAPGO" analyze -m 4-small -o "$tmp/$2.plan" "$tmp/$2.db" || return 1
	replayed "$tmp/$2.plan"
}

part_locality()
{
	ok 'serial initialisation, first touch: 25 +- 1 % local by count' first_touch
	ok 'recorded, analyzed, replayed: at least 98 % local by count' recorded_and_replayed
	ok 'the same from a trace of loads of the virtual PMU' virtual_pmu load loads
	ok 'the same from a trace of page walks' virtual_pmu walk tlb
}

# --- the pipeline inside the guest ---

pipeline() # MACHINE THREADS THP AUTONUMA
{
	cat >"$tmp/pipeline" <<-END
		set -e
		program="./serial_init 8 $2 300"
		\$program >bare
		for source in clock hint clock,fault; do
			./numapgo record -q -s \$source -o \$source.db -- \$program >\$source.out
			./numapgo analyze -m machine.json -o \$source.plan \$source.db
			./numapgo replay --plan \$source.plan -- \$program >\$source.again
			cmp bare \$source.out
			cmp bare \$source.again
			echo "\$source: done"
		done
		# first touches alone tell who initialises, not who uses
		./numapgo record -q -s fault -o fault.db -- \$program >/dev/null
		./numapgo analyze -m machine.json fault.db 2>&1 | grep 'nothing can be decided'
	END
	$lab run -m "$1" --thp "$3" --autonuma "$4" -f "$NUMAPGO=/work/numapgo" \
		-f "$B/workloads/serial_init" -f "datasets/machines/$1.json=/work/machine.json" \
		-f "$tmp/pipeline" -- sh ./pipeline
}

part_pipeline()
{
	for machine in 2-small:2 4-small:4 8-small:8; do
		for thp in never always; do
			for autonuma in off on; do
				ok "${machine%:*}, huge pages $thp, AutoNUMA $autonuma: clock, hint and fault" \
					pipeline ${machine%:*} ${machine#*:} $thp $autonuma
			done
		done
	done
}

# --- compare ---

# OpenMP threads that wait actively make accesses by how long they wait
compare_twice() # WORKLOAD SIZE THREADS ITERATIONS
{
	name=$1
	shift
	for n in 1 2; do
		$lab compare -m 4-small -p first-touch,numapgo --json \
			--env OMP_WAIT_POLICY=passive -- \
			"$B/workloads/$name" "$@" >"$tmp/$name.$n" || return 1
	done
	/usr/bin/python3 - "$tmp/$name.1" "$tmp/$name.2" <<-'END'
		import json, sys
		a, b = (json.load(open(f))['placements'] for f in sys.argv[1:])
		worst = 0
		for x, y in zip(a, b):
		    print(x['name'], *('%.1f' % (100 * r['local_share']) for r in (x, y)))
		    worst = max(worst, abs(x['local_share'] - y['local_share']))
		sys.exit(not (len(a) == 2 and worst <= 0.02))
	END
}

whole_table()
{
	$lab compare -m 4-small -p first-touch,interleave,autonuma,numapgo,exact -- $serial >"$tmp/table"
	cat "$tmp/table"
	[ "$(grep -cE '^(first-touch|interleave|autonuma|numapgo|exact) +[0-9.]+ +[0-9.]+' \
		"$tmp/table")" = 5 ]
}

part_compare()
{
	ok 'lab compare prints a row for each of five placements' whole_table
	sed 's/^/# /' "$tmp/table"
	for workload in 'serial_init 8 4 60' 'csr_spmv 8 4 40' 'stencil3d 8 4 40' 'hash_join 8 4 6' \
		'omp_triad 8 4 60'; do
		ok "lab compare ${workload%% *}: two runs agree within 2 points" compare_twice $workload
	done
}

for part in ${*:-tool count tables locality pipeline compare}; do
	part_$part
done
finish
