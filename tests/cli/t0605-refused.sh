#!/bin/sh
# The kernel refuses perf events, memory policies or processors: said, and the program runs.
. "$(dirname "$0")/lib.sh"
work="$B/workloads/serial_init 32 4 100"
deny=$PWD/$B/targets/deny

if "$deny" mbind true; [ $? = 77 ]; then
	skip 'refused system calls' 'no seccomp filters'
	finish
	exit
fi

# usage: still_records CALLS TEXT
still_records()
{
	"$deny" "$1" "$NUMAPGO" record -o "$tmp/r.db" -- $work >"$tmp/out" 2>"$tmp/err"
	got=$?
	cat "$tmp/out" "$tmp/err"
	query "$tmp/r.db" "SELECT name, state, reason FROM source"
	[ $got = 0 ] && grep -q 'serial_init: ok' "$tmp/out" && grep -qEi -e "$2" "$tmp/err"
}
still_replays()
{
	"$deny" "$1" "$NUMAPGO" replay --plan "$tmp/a.plan" -- $work >"$tmp/out" 2>"$tmp/err"
	got=$?
	cat "$tmp/out" "$tmp/err"
	[ $got = 0 ] && grep -q 'serial_init: ok' "$tmp/out" && grep -qEi -e "$2" "$tmp/err"
}
doctor_tells()
{
	says "$2" "$deny" "$1" "$NUMAPGO" doctor
}

ok 'a plan' sh -c "'$NUMAPGO' record -q -o '$tmp/a.db' -- $work &&
	'$NUMAPGO' analyze -q --machine 4-small -o '$tmp/a.plan' '$tmp/a.db'"
ok 'record without perf_event_open' still_records perf_event_open 'perf_event|paranoid'
ok 'the recording says why there are no samples' [ "$(query "$tmp/r.db" \
	"SELECT count(*) FROM source WHERE name = 'clock' AND state = 'unavailable' AND reason <> ''")" = 1 ]
ok 'analyze and report cope with it' sh -c \
	"'$NUMAPGO' report '$tmp/r.db'; [ \$? -le 1 ] && { '$NUMAPGO' analyze -o '$tmp/x.plan' '$tmp/r.db'; [ \$? -le 1 ]; }"
ok 'doctor without perf_event_open' doctor_tells perf_event_open 'paranoid|perf_event_open'
ok 'record without mbind and set_mempolicy' still_records mbind,set_mempolicy,get_mempolicy,move_pages ''
ok 'record without memfd_create' still_records memfd_create ''
ok 'record without process_vm_readv and ptrace' still_records process_vm_readv,ptrace ''
ok 'replay without mbind' still_replays mbind,set_mempolicy,get_mempolicy,move_pages \
	'not permitted|EPERM|refused|seccomp'
ok 'replay without sched_setaffinity' still_replays sched_setaffinity ''
ok '--strict refuses' status 125 "$deny" mbind,set_mempolicy,get_mempolicy,move_pages \
	"$NUMAPGO" replay --strict --plan "$tmp/a.plan" -- $work

if [ "$(id -u)" = 0 ]; then
	chmod 777 "$tmp"
	unprivileged="setpriv --reuid nobody --regid nogroup --clear-groups --no-new-privs"
	ok 'an unprivileged user records' $unprivileged "$NUMAPGO" record -q -o "$tmp/u.db" -- $work
	if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
		ok 'with samples' [ "$(query "$tmp/u.db" 'SELECT count(*) FROM sample')" -gt 50 ]
	else
		ok 'and is told why not all' [ "$(query "$tmp/u.db" \
			"SELECT count(*) FROM source WHERE reason LIKE '%paranoid%'")" -gt 0 ]
	fi
	ok 'an unprivileged user replays' $unprivileged "$NUMAPGO" replay -q --plan "$tmp/a.plan" -- $work
else
	skip 'an unprivileged user' 'is one already'
fi

one_cpu() # VERB AND ITS OPTIONS
{
	taskset -c 0 "$NUMAPGO" "$@" -- sh -c "$work; taskset -p \$\$" >"$tmp/out" 2>"$tmp/err"
	got=$?
	cat "$tmp/out" "$tmp/err"
	[ $got = 0 ] && grep -q 'serial_init: ok' "$tmp/out" && grep -q 'affinity mask: 1$' "$tmp/out"
}
ok 'record on one allowed CPU' one_cpu record -o "$tmp/one.db"
ok 'replay on one allowed CPU' one_cpu replay --plan "$tmp/a.plan"
few_files()
{
	(ulimit -n 24 && "$NUMAPGO" record -o "$tmp/few.db" -- $work) >"$tmp/out" 2>&1 &&
		grep -q 'serial_init: ok' "$tmp/out"
	got=$?
	cat "$tmp/out"
	return $got
}
ok 'record with 24 file descriptors' few_files

# cpuset and memory limit, of either version of cgroups
group=
if mkdir "/sys/fs/cgroup/memory/numapgo-$$" 2>/dev/null; then
	group=/sys/fs/cgroup/memory/numapgo-$$ limit=memory.limit_in_bytes
elif [ -w /sys/fs/cgroup/cgroup.subtree_control ] && mkdir "/sys/fs/cgroup/numapgo-$$" 2>/dev/null; then
	group=/sys/fs/cgroup/numapgo-$$ limit=memory.max
fi
cleanup()
{
	[ -z "$group" ] || rmdir "$group" 2>/dev/null
}
in_group() # COMMAND...
{
	echo 100663296 >"$group/$limit" &&
		sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' - "$group" "$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	cat "$tmp/out" "$tmp/err"
	[ $got = 0 ] && grep -q 'serial_init: ok' "$tmp/out"
}
if [ -n "$group" ] && [ -w "$group/$limit" ]; then
	ok 'record in 96 MiB of memory' in_group "$NUMAPGO" record -o "$tmp/small.db" -- $work
	ok 'replay in 96 MiB of memory' in_group "$NUMAPGO" replay --plan "$tmp/a.plan" -- $work
else
	skip 'a memory limit' 'cgroup memory limits cannot be set'
fi
if mkdir "/sys/fs/cgroup/cpuset/numapgo-$$" 2>/dev/null; then
	set_=/sys/fs/cgroup/cpuset/numapgo-$$
	echo 0 >$set_/cpuset.cpus && echo 0 >$set_/cpuset.mems
	in_set()
	{
		sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' - "$set_" "$@"
	}
	ok 'record in a cpuset of one CPU' in_set "$NUMAPGO" record -q -o "$tmp/set.db" -- $work
	ok 'replay in a cpuset of one CPU' in_set "$NUMAPGO" replay -q --plan "$tmp/a.plan" -- $work
	rmdir $set_
else
	skip 'a cpuset' 'cgroup cpusets cannot be made'
fi
finish
