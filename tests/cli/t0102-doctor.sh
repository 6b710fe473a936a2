#!/bin/sh
# doctor: the verdict agrees with the exit status; a container that refuses calls is explained.
. "$(dirname "$0")/lib.sh"

verdict_is_status()
{
	"$NUMAPGO" doctor --json >"$tmp/json"
	status=$?
	python3 - "$tmp/json" $status <<-'END'
		import json, sys
		t = json.load(open(sys.argv[1]))
		assert t["can_record"] == (sys.argv[2] == "0"), t
		assert len(t["checks"]) > 10
		assert all(c["mark"] in ("ok", "warn", "no") and c["text"] for c in t["checks"])
		names = [c["name"] for c in t["checks"]]
		assert len(set(names)) == len(names)
		assert {"kernel", "source clock", "nodes", "memory policy calls"} <= set(names)
	END
}

ok 'the verdict is the exit status' verdict_is_status
ok 'the text begins each line with a mark' says '^(ok|warn|no)  +source clock ' \
	"$NUMAPGO" doctor
ok 'operands are a usage error' status 2 "$NUMAPGO" doctor x
ok 'a directory without write permission is noticed' \
	says 'warn +this directory +cannot be written|ok +this directory' \
	sh -c "cd / && '$NUMAPGO' doctor"
ok 'a rank is seen' says 'PMI_RANK=3' env PMI_RANK=3 "$NUMAPGO" doctor
if [ "$(nproc)" -gt 1 ]; then
	ok 'a small CPU set is noticed' says 'warn +CPUs .*only CPUs 0 of' taskset -c 0 "$NUMAPGO" doctor
else
	skip 'a small CPU set is noticed' 'only one CPU'
fi
if [ "$(id -u)" = 0 ] && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] &&
	setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$NUMAPGO"; then
	ok 'an ordinary user is told what is enough' says 'perf_event_paranoid +[-0-9]+: own' \
		setpriv --reuid=65534 --regid=65534 --clear-groups "$NUMAPGO" doctor
else
	skip 'an ordinary user is told what is enough' 'not root, or the user cannot reach the program'
fi
finish
