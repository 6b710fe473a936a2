#!/bin/sh
# Fill a man page's source from the program's own help. usage: fill.sh NUMAPGO PAGE.1.scd
#   @USAGE@ @DESCRIPTION@ @OPTIONS@ @EXAMPLES@   from numapgo VERB --help
#   @VERBS@                                      from numapgo --help
set -eu
verb=$(basename "$2" .1.scd)
verb=${verb#numapgo}
help=$("$1" ${verb#-} --help)
printf '%s\n' "$help" | awk '
	function escape(text) { gsub(/[\\*_<>#]/, "\\\\&", text); return text }
	# "-o, --output DB" to "*-o*, *--output* _DB_"
	function markup(left,   n, words, i, out) {
		n = split(left, words, " ")
		for (i = 1; i <= n; i++) {
			if (words[i] ~ /^-.,$/) out = out "*" substr(words[i], 1, 2) "*, "
			else if (words[i] ~ /^-/) out = out "*" escape(words[i]) "*"
			else out = out " _" escape(words[i]) "_"
		}
		return out
	}
	function value(section) {
		sub(/^\n+/, "", text[section])
		sub(/\n+$/, "", text[section])
		return text[section]
	}
	FNR == 1 { nr_file++ }
	nr_file == 1 && /^usage: / { section = "USAGE"; sub(/^usage: /, ""); text[section] = "*" escape($0) "*"; section = "DESCRIPTION"; next }
	nr_file == 1 && /^options:$/ { section = "OPTIONS"; next }
	nr_file == 1 && /^examples:$/ { section = "EXAMPLES"; text[section] = "```"; next }
	nr_file == 1 && /^verbs:$/ { section = "VERBS"; next }
	nr_file == 1 && section == "VERBS" && /^$/ { section = "REST" }
	nr_file == 1 && section == "VERBS" {
		name = $1; sub(/^ *[^ ]+ */, "")
		text[section] = text[section] "*numapgo-" name "*(1)\n\t" escape($0) "\n\n"; next
	}
	nr_file == 1 && section == "OPTIONS" && /^  (-.,|   ) --/ {
		left = substr($0, 3); right = ""
		if (length(left) > 26 && substr($0, 28, 1) == " ") { right = substr($0, 29); left = substr($0, 3, 26) }
		text[section] = text[section] "\n" markup(left) "\n" (right != "" ? "\t" escape(right) "\n" : ""); next
	}
	nr_file == 1 && section == "OPTIONS" && /^ +/ { sub(/^ +/, ""); text[section] = text[section] "\t" escape($0) "\n"; next }
	nr_file == 1 && section == "EXAMPLES" { if ($0 != "") { sub(/^  /, ""); text[section] = text[section] "\n" $0 } next }
	nr_file == 1 { text[section] = text[section] escape($0) "\n"; next }
	/^@[A-Z]+@$/ {
		section = substr($0, 2, length($0) - 2)
		print section == "EXAMPLES" && text[section] != "" ? text[section] "\n```" : value(section)
		next
	}
	{ print }
' - "$2"
