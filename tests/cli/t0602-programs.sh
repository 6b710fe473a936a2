#!/bin/sh
# Programs that cannot be preloaded, or that end badly, behave as without numapgo.
. "$(dirname "$0")/lib.sh"

# An empty plan: nothing to place, everything to survive
"$NUMAPGO" record -q -o "$tmp/plan.db" -- "$B/workloads/serial_init" 16 2 100 >/dev/null 2>&1
"$NUMAPGO" analyze -q --machine 4-small -o "$tmp/a.plan" "$tmp/plan.db" >/dev/null 2>&1

# usage: same PREFIX-AND-PROGRAM...: output and status are the program's own under both launchers
same()
{
	env "$@" >"$tmp/bare.out" 2>/dev/null
	bare=$?
	for launch in "record -q -o $tmp/s.db" "replay -q --plan $tmp/a.plan"; do
		"$NUMAPGO" $launch -- "$@" >"$tmp/out" 2>"$tmp/err"
		got=$?
		cat "$tmp/err"
		[ $got = $bare ] || { echo "${launch%% *}: status $got, not $bare"; return 1; }
		cmp "$tmp/bare.out" "$tmp/out" || { echo "${launch%% *}: output differs"; return 1; }
	done
}

# usage: tells TEXT PROGRAM...: record says it (without -q), or the recording does
tells()
{
	text=$1
	shift
	"$NUMAPGO" record -o "$tmp/t.db" -- "$@" >/dev/null 2>"$tmp/err"
	query "$tmp/t.db" 'SELECT text FROM note UNION ALL SELECT agent FROM process' >>"$tmp/err"
	cat "$tmp/err"
	grep -qEi -e "$text" "$tmp/err"
}

printf 'echo hello from $1\nexit 3\n' >"$tmp/no-shebang"
printf '#!/bin/sh\necho hello from $1\nexit 4\n' >"$tmp/script"
printf '#!/no/such/interpreter\n' >"$tmp/bad-interpreter"
printf '\177ELF garbage' >"$tmp/bad-elf"
chmod 755 "$tmp/no-shebang" "$tmp/script" "$tmp/bad-interpreter" "$tmp/bad-elf"
cat >"$tmp/work.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	volatile unsigned *v = malloc(1 << 26), sum = 0;
	for (int i = 0; i < 20; i++)
		for (unsigned j = 0; j < 1 << 24; j += 16)
			v[j] += v[j + 1] + j, sum += v[j];
	printf("%u %d\n", sum, geteuid() == getuid());
	return 5;
}
END
gcc -O1 -o "$tmp/dynamic" "$tmp/work.c" && gcc -O1 -static -o "$tmp/static" "$tmp/work.c"

ok 'a script without a shebang' same "$tmp/no-shebang" there
ok 'a script' same "$tmp/script" there
ok 'a script whose interpreter is missing' same "$tmp/bad-interpreter"
ok 'a broken ELF file' same "$tmp/bad-elf"
ok 'a program with its own status' same "$tmp/dynamic"
ok 'a static binary' same "$tmp/static"
ok 'a static binary: said' tells static "$tmp/static"
ok 'a static binary is sampled all the same' \
	[ "$(query "$tmp/t.db" 'SELECT count(*) FROM sample')" -gt 50 ]
if [ "$(id -u)" = 0 ]; then
	chmod 755 "$tmp"
	cp "$tmp/dynamic" "$tmp/setuid" && chown nobody "$tmp/setuid" && chmod 4755 "$tmp/setuid"
	ok 'a setuid binary' same "$tmp/setuid"
	ok 'a setuid binary: said' tells 'setuid|privileged' "$tmp/setuid"
else
	skip 'a setuid binary' 'needs root'
fi
ok 'standard input is passed' sh -c \
	"[ \"\$(echo text | '$NUMAPGO' record -q -o '$tmp/i.db' -- cat)\" = text ]"
for signal in TERM KILL SEGV ABRT INT; do
	ok "a program killed by SIG$signal" same sh -c "ulimit -c 0; kill -$signal \$\$"
done
ok 'a recording of a killed program is complete' [ "$(query "$tmp/s.db" \
	"SELECT value FROM meta WHERE key = 'complete'")" = 1 ]
ok 'it says which signal' [ "$(query "$tmp/s.db" 'SELECT exit_signal FROM run')" = 2 ]

# The launcher is told to end while the program runs: the program gets the signal, the recording stays
ended_by_term()
{
	"$NUMAPGO" record -q -o "$tmp/term.db" -- "$B/workloads/serial_init" 16 2 100000 >"$tmp/out" 2>&1 &
	launcher=$!
	sleep 1.5
	kill -TERM $launcher
	wait $launcher
	got=$?
	[ $got = 143 ] || { echo "status $got, not 143"; return 1; }
	[ "$(query "$tmp/term.db" "SELECT value FROM meta WHERE key = 'complete'")" = 1 ]
}
ok 'SIGTERM to the recorder ends the program and keeps the recording' ended_by_term
finish
