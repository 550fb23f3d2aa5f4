#compdef tranca
# Completion of tranca for zsh. Load it: source <(tranca completion zsh)
# or save it as _tranca in a folder of $fpath.

_tranca() {
    local entry files
    local -a values nospace
    while IFS= read -r entry; do
        case "$entry" in
        :files) files=1 ;;
        :nospace) nospace=(-S '') ;;
        *) values+=("${${entry%%$'\t'*}//:/\\:}:${entry#*$'\t'}") ;;
        esac
    done < <("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
    (( $#values )) && _describe 'tranca' values "${nospace[@]}"
    [[ -n "$files" ]] && _files
    return 0
}

if [[ "$funcstack[1]" == _tranca ]]; then
    _tranca "$@"
else
    compdef _tranca tranca
fi
