# bash completion for numapgo: verbs and options are asked of the program itself
_numapgo()
{
	local current=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} i

	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "--help --version $(numapgo --help |
			awk '/^verbs:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }')" -- "$current")
		return
	fi
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then # the user's own command
			((i + 1 == COMP_CWORD)) && mapfile -t COMPREPLY < <(compgen -c -- "$current") ||
				mapfile -t COMPREPLY < <(compgen -f -- "$current")
			return
		fi
	done
	if [[ $current == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(numapgo "$verb" --help 2>/dev/null |
			grep -oE '^  (-.,|   ) --[a-z-]+' | grep -oE -- '--[a-z-]+')" -- "$current")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
	fi
}
complete -o filenames -F _numapgo numapgo
