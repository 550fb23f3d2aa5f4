# Completion of tranca for bash. Load it: source <(tranca completion bash)

_tranca() {
    local line="${COMP_LINE:0:COMP_POINT}" cur entry files= i
    local -a words
    # Not COMP_WORDS: there a word is split at each colon.
    read -ra words <<<"$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    cur="${words[${#words[@]} - 1]}"
    COMPREPLY=()
    while IFS= read -r entry; do
        case "$entry" in
        :files) files=1 ;;
        :nospace) compopt -o nospace 2>/dev/null ;;
        *) COMPREPLY+=("${entry%%$'\t'*}") ;;
        esac
    done < <("${1/#\~/$HOME}" __complete "${words[@]:1}" 2>/dev/null)
    if [[ -n "$files" && ${#COMPREPLY[@]} -eq 0 ]]; then
        compopt -o filenames 2>/dev/null
        while IFS= read -r entry; do
            COMPREPLY+=("$entry")
        done < <(compgen -f -- "$cur")
        return
    fi
    # What stands before a character that splits words is there already.
    [[ "$COMP_WORDBREAKS" == *:* && "$cur" == *:* ]] || return 0
    for i in "${!COMPREPLY[@]}"; do
        COMPREPLY[i]="${COMPREPLY[i]#"${cur%"${cur##*:}"}"}"
    done
}

complete -F _tranca tranca
