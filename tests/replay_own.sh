#!/bin/sh
# Record a command out of sight, in a copy of its directory, plan for four nodes, then replay it
# under its own plan. usage: replay_own.sh NUMAPGO OTHER-PLAN COMMAND [ARGS...]
# OTHER-PLAN serves where the command is too short for a plan of its own.
numapgo=$1 plan=$2
shift 2
tmp=$(mktemp -d "${TMPDIR:-/tmp}/numapgo-own.XXXXXX") || exit 125
trap 'rm -rf "$tmp"' EXIT
cp -R . "$tmp/work" && (
	cd "$tmp/work" || exit
	"$numapgo" record -q --overhead 10 -o "$tmp/r.db" -- "$@"
	"$numapgo" analyze -q --machine 4-small -o "$tmp/own.plan" "$tmp/r.db"
) >/dev/null 2>&1 </dev/null
[ ! -s "$tmp/own.plan" ] || plan=$tmp/own.plan
"$numapgo" replay -q --plan "$plan" -- "$@"
