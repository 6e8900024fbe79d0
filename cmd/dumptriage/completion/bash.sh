# bash completion for dumptriage: source <(dumptriage completion bash)
_dumptriage() {
    local words
    words=$("${COMP_WORDS[0]}" --complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [ -n "$words" ]; then
        mapfile -t COMPREPLY <<<"$words"
    else
        COMPREPLY=()
        compopt -o default 2>/dev/null
    fi
}
complete -F _dumptriage dumptriage
