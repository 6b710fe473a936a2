#!/bin/sh
# python3 running a script with threads.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/real.sh"

program() # OUTPUT-DIRECTORY PREFIX...
{
	shift
	"$@" /usr/bin/python3 "$tmp/threads.py"
}

cat >"$tmp/threads.py" <<'END'
import hashlib, queue, sys, threading

jobs, results = queue.Queue(), {}

def work():
    while (job := jobs.get()) is not None:
        data = bytearray((job * i) % 251 for i in range(100000)) * 20  # under the lock
        for _ in range(3):
            digest = hashlib.sha256(data).hexdigest()  # releases the lock
        results[job] = digest

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for job in range(120):
    jobs.put(job)
for _ in threads:
    jobs.put(None)
for thread in threads:
    thread.join()
for job in sorted(results):
    print(job, results[job])
sys.exit(0 if len(results) == 120 else 1)
END
record_and_replay 'python3 with threads' 300
finish
