#!/bin/sh
# The recording object inside programs, with the smallest recorder (tests/helpers) instead of
# numapgo record: what it reports, and that nothing changes for the program.
. "$(dirname "$0")/lib.sh"
holder=$PWD/$B/channel_holder
object=$PWD/$B/libnumapgo-record.so
targets=$PWD/$B/targets

# the records of a run as "TYPE ADDRESS SIZE"; frees have no size. A thread's creation is told when
# it has succeeded, so what the new thread tells may come first: those lines are put at the end.
events()
{
	awk '$1 ~ /^(alloc|free|mmap|munmap|mremap|shmat|shmdt|brk|thread-create)$/ {
		sub("address=", "", $4); sub("size=", "", $5); print $1, ($4 == "0" ? "0" : $4), $5 }' "$1" |
		creations_last
}

creations_last()
{
	awk '$1 == "thread-create" { last = last $0 "\n"; next } { print } END { printf "%s", last }'
}

every_call_is_reported()
{
	"$holder" -m 10000 -o "$tmp/records" -- "$targets/alloc_calls" >"$tmp/calls" &&
		creations_last <"$tmp/calls" >"$tmp/want" &&
		events "$tmp/records" >"$tmp/have" &&
		diff "$tmp/want" "$tmp/have"
}

every_report_has_a_stack()
{
	! grep -E '^(alloc|mmap|mremap|shmat|brk|thread-create) .* frames=0$' "$tmp/records" &&
		grep -q '^stats records=[0-9]* lost=0 holes=0 malformed=0 faults=0$' "$tmp/records"
}

thread_is_reported()
{
	test "$(grep -cE '^thread-start .* value2=0 ' "$tmp/records")" = 1 &&
		test "$(grep -c '^thread-exit' "$tmp/records")" = 1
}

# OPERATOR COUNT FLAGS...: starts announced by a shell with a forked child, one that execs, and a
# last program in its place: 4 if followed, 5 if the shell uses fork instead of vfork to start it
announced()
{
	operator=$1
	want=$2
	shift 2
	"$holder" "$@" -o "$tmp/records" -- /bin/sh -c '(:); /bin/true; exec /bin/true'
	grep '^process-start' "$tmp/records"
	test "$(grep -c '^process-start' "$tmp/records")" "$operator" "$want"
}

# the environment of what a program execs: nothing of ours is left
environment_is_clean()
{
	"$holder" -- /bin/sh -c env >"$tmp/env" && ! grep -E '^(NUMAPGO_RECORD|NUMAPGO_REPLAY|LD_PRELOAD)=' "$tmp/env"
}

user_preload_stays()
{
	LD_PRELOAD=/no/such/users.so "$holder" -- /bin/sh -c env 2>/dev/null |
		grep '^LD_PRELOAD' | tee /dev/stderr | grep -qx 'LD_PRELOAD=/no/such/users.so'
}

silent_without_a_recorder()
{
	for variable in A=b NUMAPGO_RECORD= NUMAPGO_RECORD=1:0 NUMAPGO_RECORD=999999999:3 \
		NUMAPGO_RECORD=x NUMAPGO_RECORD="$$:0"; do
		test "$(env "$variable" LD_PRELOAD="$object" /bin/echo fine 2>&1 </dev/null)" = fine ||
			return 1
	done
}

thread_storage_is_small()
{
	size=$(readelf -lW "$object" | awk '$1 == "TLS" { print $6 }')
	echo "TLS $size"
	test $((size)) -le 64
}

# the recorder is killed: the program goes on and ends as it would have
program_survives_the_recorder()
{
	"$holder" -f -- /bin/sh -c 'kill -9 $PPID; sleep 0.1; /bin/ls / >/dev/null && echo fine' \
		>"$tmp/out" 2>/dev/null
	i=0
	while [ ! -s "$tmp/out" ] && [ $i -lt 100 ]; do
		sleep 0.1
		i=$((i + 1))
	done
	grep -qx fine "$tmp/out"
}

ok 'each hooked call is reported with its address and size, in order' every_call_is_reported
ok 'with the stack of its caller, and nothing is lost' every_report_has_a_stack
ok 'a thread is reported at creation, start and exit' thread_is_reported
ok 'children are announced but not followed unless asked for' announced -le 3
ok 'children are followed across fork and exec when asked for' announced -ge 4 -f
ok 'programs exec-ed by the program find nothing of ours in their environment' environment_is_clean
ok 'a preload of the user stays in the environment' user_preload_stays
ok 'the object is inactive and silent without a recorder' silent_without_a_recorder
ok 'thread-local storage is at most 64 bytes' thread_storage_is_small
ok 'the program survives the end of the recorder' program_survives_the_recorder
ok 'statuses 127, 126 and of a signal are passed on' sh -c '
	'"$holder"' -- /no/such/program 2>/dev/null; test $? = 127 || exit 1
	'"$holder"' -- / 2>/dev/null; test $? = 126 || exit 1
	'"$holder"' -- /bin/sh -c "kill -TERM \$\$"; test $? = 143'
for follow in '' -f; do
	ok "all programs of tests/cases behave the same with the hooks active ${follow:-without -f}" \
		sh tests/cases/run-all.sh "$holder" $follow --
done
finish
