#compdef dumptriage
# zsh completion for dumptriage: dumptriage completion zsh > "${fpath[1]}/_dumptriage"
_dumptriage() {
    local -a candidates
    candidates=("${(@f)$("${words[1]}" --complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${candidates[1]}" ]]; then
        compadd -- "${candidates[@]}"
    else
        _files
    fi
}
if [[ "$funcstack[1]" = "_dumptriage" ]]; then
    _dumptriage "$@"
else
    compdef _dumptriage dumptriage
fi
