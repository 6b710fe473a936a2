#!/bin/sh
# make install into a DESTDIR: what is there runs from there; make uninstall leaves nothing.
. "$(dirname "$0")/lib.sh"
installed=$tmp/opt/np

quiet_make()
{
	make --no-print-directory B="$B" PREFIX=/opt/np DESTDIR="$tmp" "$@"
}

has_files()
{
	for file in bin/numapgo lib/numapgo/libnumapgo-record.so lib/numapgo/libnumapgo-replay.so \
		share/man/man1/numapgo.1 share/bash-completion/completions/numapgo; do
		[ -s "$installed/$file" ] || { echo "missing: $file"; return 1; }
	done
}

completes()
{
	PATH=$installed/bin:$PATH bash -c '
		. "$1/share/bash-completion/completions/numapgo"
		COMP_WORDS=(numapgo re) COMP_CWORD=1; _numapgo; [[ " ${COMPREPLY[*]} " == *" record "* ]] || exit 1
		COMP_WORDS=(numapgo record --jso) COMP_CWORD=2; _numapgo; [[ ${COMPREPLY[*]} == --json ]]
	' - "$installed"
}

ok 'make install' quiet_make install
ok 'the files are where they belong' has_files
ok 'the installed program records with its own preload object' \
	"$installed/bin/numapgo" record -q -o "$tmp/r.db" -- "$B/workloads/serial_init" 8 2 20
ok 'a process of it was observed from inside' \
	[ "$(query "$tmp/r.db" "SELECT count(*) FROM process WHERE agent = 'active'")" -ge 1 ]
ok 'it knows the installed machines' sh -c "cd / && '$installed/bin/numapgo' topo --machine \
	\"\$(ls '$installed/share/numapgo/machines' | head -1 | sed 's/\..*//')\""
ok 'bash completes verbs and options' completes
ok 'make uninstall' quiet_make uninstall
ok 'nothing is left' [ -z "$(find "$installed" -type f)" ]
finish
