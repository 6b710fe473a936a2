#!/bin/sh
# record, then analyze for a machine with four nodes: the whole way on a program with known truth.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1
case $B in /*) ;; *) B=$OLDPWD/$B ;; esac

ok "a workload is recorded" "$NUMAPGO" record -q -o r.db -- "$B/workloads/serial_init"
ok "and analysed for four nodes" "$NUMAPGO" analyze --machine 4-small -o r.plan r.db
ok "first touch is 25 +- 5 % local" [ 1 = "$(query r.db "SELECT lar BETWEEN 0.2 AND 0.3
	FROM prediction WHERE placement = 'first touch'")" ]
ok "the plan is at least 95 % local" [ 1 = "$(query r.db "SELECT lar >= 0.95
	FROM prediction WHERE placement = 'plan'")" ]
ok "at least 95 % of the samples match an object" says '^(9[5-9]|100)\.[0-9] % of' \
	"$NUMAPGO" report r.db
ok "the recorded machine is used if none is named" "$NUMAPGO" analyze -o here.plan r.db
finish
