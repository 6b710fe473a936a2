#!/bin/sh
# Layers point one way: schemas <- lib <- { profiler, analyzer, replayer } <- cli, and what is
# loaded into the user's program sees lib/preload and schemas/wire.h only.
cd "$(dirname "$0")/.." || exit 1
n=0

# usage: verdict SENTENCE OFFENDING-LINES
verdict()
{
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		echo "$2" | sed 's/^/# /'
	fi
}

# usage: only SENTENCE ALLOWED-REGEX FILES...: no other "own" header is included
only()
{
	sentence=$1 allowed=$2
	shift 2
	verdict "$sentence" "$(grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$@" \
		/dev/null | grep -vE ":[[:space:]]*#[[:space:]]*include[[:space:]]*\"($allowed)\"")"
}

sources() # DIRECTORY: its .c and .h files, without preload/
{
	find "$1" -name '*.[ch]' ! -path '*/preload/*' | sort
}

only 'schemas include nothing of ours' '-' $(sources schemas)
only 'lib includes schemas and lib' '(schemas|lib)/[^"]*' $(sources lib)
for stage in profiler analyzer replayer; do
	only "$stage includes schemas, lib and itself" "(schemas|lib|$stage)/[^\"]*" $(sources $stage)
done
for stage in lib profiler replayer; do
	only "$stage/preload includes schemas/wire.h, lib/preload and itself" \
		"schemas/wire\.h|lib/(preload/[^\"]*|compiler\.h)|$stage/preload/[^\"]*" \
		$(find $stage/preload -name '*.[ch]')
done
# rules.h includes stdio.h in order to forbid its names
verdict 'preload objects include no stdio' \
	"$(grep -nE '#[[:space:]]*include[[:space:]]*<(stdio|locale|iconv|syslog)\.h>' /dev/null \
		$(find lib/preload profiler/preload replayer/preload -name '*.[ch]' ! -name rules.h))"
verdict 'only lib/db.c includes sqlite3.h' \
	"$(grep -lE '#[[:space:]]*include[[:space:]]*<sqlite3\.h>' \
		$(sources lib; sources profiler; sources analyzer; sources replayer; sources cli) |
		grep -vx lib/db.c)"
verdict 'only commands print to stdout or end the process' \
	"$(grep -nE '(^|[^[:alnum:]_>.])(printf|puts|putchar|perror|exit)\(' \
		$(find lib profiler analyzer replayer -name '*.c' ! -path '*/preload/*' \
			! -name 'cmd_*.c') /dev/null)"
echo "1..$n"
