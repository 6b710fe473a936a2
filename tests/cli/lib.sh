# For the scripts of this directory: . "$(dirname "$0")/lib.sh"
#
# ok SENTENCE COMMAND...     one test: COMMAND ends with 0; its output is shown if not
# skip SENTENCE REASON       one test that cannot run here
# status N COMMAND...        COMMAND ends with status N (128 + signal if killed)
# says TEXT COMMAND...       COMMAND prints TEXT (extended regular expression) on either output
# query DB SQL               the stock shell's answer, read-only
# finish                     the plan line; the script's last line
#
# $tmp is a directory of the script's own, removed at its end. NUMAPGO is the program, B the build
# directory.
: "${B:=build}" "${NUMAPGO:=$PWD/$B/numapgo}"
export LC_ALL=C
unset MAKEFLAGS MFLAGS MAKELEVEL
# the programs under test must not find them in their environment
for name in NUMAPGO NUMAPGO_CI; do
	eval "value=\${$name-}; unset $name; $name=\$value"
done
nr_tests=0
tmp=$(mktemp -d "${TMPDIR:-/tmp}/numapgo-test.XXXXXX") || exit 1
cleanup()
{
	:
}
trap 'cleanup; rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP

ok()
{
	sentence=$1
	shift
	nr_tests=$((nr_tests + 1))
	if "$@" >"$tmp/.output" 2>&1; then
		echo "ok $nr_tests - $sentence"
	else
		echo "not ok $nr_tests - $sentence"
		sed 's/^/# /' "$tmp/.output"
	fi
}

skip()
{
	nr_tests=$((nr_tests + 1))
	echo "ok $nr_tests - $1 # SKIP $2"
}

status()
{
	want=$1
	shift
	"$@"
	got=$?
	[ $got = "$want" ] || {
		echo "status $got, not $want: $*"
		return 1
	}
}

says()
{
	text=$1
	shift
	"$@" >"$tmp/.said" 2>&1
	cat "$tmp/.said"
	grep -qE -e "$text" "$tmp/.said" || {
		echo "does not say: $text"
		return 1
	}
}

query()
{
	sqlite3 -readonly "$@"
}

finish()
{
	echo "1..$nr_tests"
}
