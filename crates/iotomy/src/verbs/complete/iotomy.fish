# fish completion for iotomy. What may stand at the cursor is asked of `iotomy complete`.

function __iotomy_complete
    set -l words (commandline -opc)
    # Without the mark that opens a quotation, which may not be closed yet.
    set -l current (string replace -r '^["\']' '' -- (commandline -ct))
    set -l plain (string unescape -- $current 2>/dev/null)
    and set current $plain
    set -l answer (command iotomy complete -- $words "$current" 2>/dev/null)
    set -l fixed $answer[2]
    set -l rest (string sub -s (math 1 + (string length -- "$fixed")) -- "$current")

    switch "$answer[1]"
        case 'command *'
            # Counted from 1 here.
            set -l first (math (string replace 'command ' '' -- $answer[1]) + 1)
            set -l inner
            if test $first -le (count $words)
                set inner (string escape -- $words[$first..-1])
            end
            set -a inner (commandline -ct)
            complete -C "$inner"
            return
        case files
            for path in (__fish_complete_path $rest)
                printf '%s%s\n' "$fixed" $path
            end
        case folders
            for path in (__fish_complete_directories $rest)
                printf '%s%s\n' "$fixed" $path
            end
        case users
            for user in (__fish_complete_users)
                printf '%s%s\n' "$fixed" $user
            end
        case commands
            __fish_complete_command
    end
    if test (count $answer) -gt 2
        for value in $answer[3..-1]
            printf '%s%s\n' "$fixed" $value
        end
    end
end

complete -c iotomy -k -f -a '(__iotomy_complete)'
