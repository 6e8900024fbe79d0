# fish completion for dumptriage
function __dumptriage_complete
    set -l words (commandline -opc) (commandline -ct)
    dumptriage --complete -- $words[2..-1] 2>/dev/null
end
complete -c dumptriage -a '(__dumptriage_complete)'
