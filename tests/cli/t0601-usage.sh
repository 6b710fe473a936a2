#!/bin/sh
# Wrong use is told in words, with the right exit status, and writes nothing.
. "$(dirname "$0")/lib.sh"
root=$PWD
case $NUMAPGO in /*) ;; *) NUMAPGO=$root/$NUMAPGO ;; esac
mkdir "$tmp/empty"
cd "$tmp/empty" || exit 1

refuses() # STATUS TEXT COMMAND...
{
	want=$1 words=$2
	shift 2
	"$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	cat "$tmp/out" "$tmp/err"
	[ $got = "$want" ] || { echo "status $got, not $want"; return 1; }
	[ ! -s "$tmp/out" ] || { echo "something on stdout"; return 1; }
	grep -qE -e "$words" "$tmp/err" || { echo "does not say: $words"; return 1; }
}

for verb in $("$NUMAPGO" --help | awk '/^verbs:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'); do
	case $verb in
	record | replay) bad=125 ;;
	*) bad=2 ;;
	esac
	ok "$verb: unknown option" refuses $bad "unknown option '--no-such-option'" \
		"$NUMAPGO" "$verb" --no-such-option
	ok "$verb: unknown letter" refuses $bad "unknown option '-Z'" "$NUMAPGO" "$verb" -Z
	ok "$verb: a value for a flag" refuses $bad 'json takes no value' "$NUMAPGO" "$verb" --json=1
	ok "$verb: --help is on stdout, status 0" status 0 sh -c \
		"'$NUMAPGO' $verb --help 2>'$tmp/err' | grep -q '^usage: numapgo $verb' && [ ! -s '$tmp/err' ]"
done
ok 'no verb' refuses 2 'usage: numapgo VERB' "$NUMAPGO"
ok 'unknown verb' refuses 2 "unknown verb 'recrod'" "$NUMAPGO" recrod

echo '{}' >empty.plan
printf 'data' >file && chmod 644 file
mkdir directory
for launch in 'record -o x.db' 'replay --plan empty.plan'; do
	ok "${launch%% *}: no command" refuses 125 '[Cc]ommand|CMD|program' "$NUMAPGO" $launch --
	ok "${launch%% *}: program not found" refuses 127 'no-such-program.*not found|not found.*no-such-program|no-such-program.*[Nn]o such file' \
		"$NUMAPGO" $launch -- no-such-program
	ok "${launch%% *}: program not found by path" refuses 127 '\./no-such-program' \
		"$NUMAPGO" $launch -- ./no-such-program
	ok "${launch%% *}: not executable" refuses 126 '\./file' "$NUMAPGO" $launch -- ./file
	ok "${launch%% *}: a directory" refuses 126 '\./directory' "$NUMAPGO" $launch -- ./directory
done
rmdir directory
rm -f file empty.plan
ok 'nothing was written' [ -z "$(ls -A)" ]
ok 'full stdout is told' refuses 1 'cannot write' sh -c "'$NUMAPGO' record --help >/dev/full"
cd "$root" || exit 1
finish
