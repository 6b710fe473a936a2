#!/bin/sh
# Command prefix: record the command, put everything that it allocates somewhere, replay it.
# Only the replay's output is seen. NUMAPGO is the program.
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/numapgo-plan.XXXXXX") || exit 99
"$NUMAPGO" record -q -o "$dir/r.db" -- "$@" >/dev/null 2>&1 </dev/null
python3 "$here/make_plan.py" "$dir/r.db" "$dir/plan" 4 || exit 99
"$NUMAPGO" replay -q --plan "$dir/plan" -- "$@"
status=$?
rm -rf "$dir"
exit $status
