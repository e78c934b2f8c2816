# SPDX-License-Identifier: BSD-3-Clause
# Completion of weirctl for bash. The words come from the switch, the options from weirctl --help.

_weirctl() {
  local typed options=() line word
  # Not COMP_WORDS: bash breaks words at ':' and '=', of which addresses are full.
  read -ra typed <<<"${COMP_LINE:0:COMP_POINT}x" # the x keeps a blank at the end
  typed=("${typed[@]:1}")
  while [[ ${#typed[@]} -gt 1 && ${typed[0]} == --* ]]; do
    if [[ ${typed[0]} == *=* ]]; then
      options+=("${typed[0]}")
      typed=("${typed[@]:1}")
    else
      options+=("${typed[0]}" "${typed[1]}")
      typed=("${typed[@]:2}")
    fi
  done
  line="${typed[*]}"
  line="${line%x}"
  word="${line##* }"
  if [[ $line == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(weirctl --help | grep -o -- '--[a-z-]*' | sort -u)" -- "$line")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$(weirctl "${options[@]}" --complete "$line" 2>/dev/null)" -- "$word")
}

complete -F _weirctl weirctl
