#!/bin/sh
# Documentation and program agree: prototypes, verbs, options, the README's commands, the schema.
cd "$(dirname "$0")/.." || exit 1
B=${B:-build}
numapgo=$B/numapgo
n=0

verdict() # SENTENCE OFFENDING-LINES
{
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		echo "$2" | sed 's/^/# /'
	fi
}

# Prototypes without a comment. One comment may stand for the prototypes that follow it without a
# blank line, and one at the end of its line does. A prototype is a statement outside of braces
# that calls npg_NAME( and ends with ";".
undocumented()
{
	awk '
		FNR == 1 { depth = 0; covered = in_comment = 0; statement = "" }
		/^#/ { next }
		/^\/\*/ { in_comment = 1 }
		in_comment { if (/\*\//) { in_comment = 0; covered = 1 } next }
		/^$/ { covered = 0; next }
		{
			text = $0
			remark = /; \/\*/
			gsub(/\/\*.*\*\//, "", text)
			depth += gsub(/{/, "{", text) - gsub(/}/, "}", text)
			if (depth > 0 || text ~ /}/) { statement = ""; next }
			statement = statement " " text
			if (statement !~ /;/) next
			if (!covered && !remark && statement !~ /(static|typedef|extern const) / &&
			    match(statement, /npg_[a-z0-9_]+\(/))
				print FILENAME ":" FNR ": " substr(statement, RSTART, RLENGTH) ") has no comment"
			statement = ""
		}' $(find lib profiler analyzer replayer -name '*.h' | sort)
}

verbs=$($numapgo --help | awk '/^verbs:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }')

# The long options of a help text or a rendered page
options_of()
{
	grep -oE '(^|[^[:alnum:]-])--[a-z][a-z-]*' | grep -oE -- '--[a-z-]+' | sort -u
}

help_options() # VERB
{
	$numapgo "$1" --help | sed -n '/^options:/,/^examples:/p' | grep -E '^  (-.,|   ) --' |
		cut -c1-40 | options_of
}

page_text() # VERB: the page as a reader sees it, without emphasis
{
	MANWIDTH=200 nroff -man "$B/man/numapgo-$1.1" | col -b
}

verdict 'every public prototype has a comment' "$(undocumented)"
make --no-print-directory -k -s B="$B" man >"$B/man.log" 2>&1 || sed 's/^/# /' "$B/man.log"
for verb in $verbs; do
	if [ ! -s "$B/man/numapgo-$verb.1" ]; then
		verdict "$verb has a man page" "man/numapgo-$verb.1.scd cannot be rendered"
		continue
	fi
	help_options "$verb" >"$B/docs.help"
	page_text "$verb" >"$B/docs.page"
	sed -n '/^OPTIONS/,/^[A-Z]/p; /^OPTIONS/,/^[A-NP-Z]/p' "$B/docs.page" |
		grep -E '^ +(-., )?--[a-z]' | cut -c1-40 | options_of >"$B/docs.man"
	verdict "$verb: man page and --help list the same options" \
		"$(diff "$B/docs.help" "$B/docs.man")"
	verdict "$verb: --help and man page show an example" "$({
		$numapgo "$verb" --help | grep -q "^  numapgo $verb" || echo no example in --help
		grep -q "^ *numapgo $verb" "$B/docs.page" || echo no example in the man page
	})"
done
verdict 'every man page is of a verb' "$(for page in man/numapgo-*.1.scd; do
	verb=$(basename "$page" .1.scd | sed 's/numapgo-//')
	echo "$verbs" | grep -qx "$verb" || echo "$page: no such verb"
done)"

# Every "numapgo VERB --option" and "make TARGET" that the documents show
commands_shown()
{
	grep -hoE 'numapgo [a-z]+ [^|`>]*' "$@" | while read -r line; do
		verb=$(echo "$line" | cut -d' ' -f2)
		echo "$verbs" | grep -qx "$verb" || {
			case $line in "numapgo "[a-z]*" --"*) echo "no verb: $line" ;; esac
			continue
		}
		echo "${line%% -- *}" | options_of | while read -r option; do
			help_options "$verb" | grep -qx -- "$option" ||
				echo "$verb has no $option: $line"
		done
	done
	grep -hoE '(^ +|`)make [a-z]+' "$@" | awk '{ print $NF }' | sort -u | while read -r target; do
		grep -qE "^[a-z ]*\b$target\b[a-z ]*:" Makefile tests/tests.mk man/man.mk \
			datasets/workloads/workloads.mk || echo "no target: make $target"
	done
}
verdict 'commands in README.md and CONTRIBUTING.md exist' \
	"$(commands_shown README.md CONTRIBUTING.md)"

# Tables, views and columns of the schema, each named in schemas/README.md
undocumented_schema()
{
	[ -f schemas/README.md ] || { echo 'schemas/README.md is missing'; return; }
	cat schemas/recording.sql schemas/analysis.sql | sed 's/--.*//' | awk '
		/CREATE (TABLE|VIEW)/ { print $3; table = /TABLE/; next }
		/;/ { table = 0 }
		table && /^    [a-z_]+ +[A-Z]/ { print $1 }' | sort -u | while read -r name; do
		grep -q "\b$name\b" schemas/README.md || echo "schemas/README.md: $name is missing"
	done
}
verdict 'schemas/README.md names every table, view and column' "$(undocumented_schema)"
rm -f "$B/docs.help" "$B/docs.page" "$B/docs.man"
echo "1..$n"
