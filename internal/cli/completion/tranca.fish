# Completion of tranca for fish. Load it: tranca completion fish | source
# or save it as tranca.fish in ~/.config/fish/completions.

function __tranca_complete
    set -l before (commandline -opc)
    set -l cur (commandline -ct)
    for entry in ($before[1] __complete $before[2..-1] "$cur" 2>/dev/null)
        switch $entry
            case ':files'
                __fish_complete_path "$cur"
            case ':nospace'
                # fish leaves out the space after a colon or a slash by itself.
            case '*'
                echo -- $entry
        end
    end
end

complete -c tranca -e
complete -c tranca -f -a '(__tranca_complete)'
