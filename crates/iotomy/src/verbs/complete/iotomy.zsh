#compdef iotomy
# zsh completion for iotomy. What may stand at the cursor is asked of `iotomy complete`.

_iotomy() {
    local add fixed line
    local -a answer values open
    answer=("${(@f)$(command iotomy complete -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    add=$answer[1] fixed=$answer[2]
    [[ -n $add ]] || return 1
    if [[ -n $fixed ]]; then
        compset -P "${(b)fixed}"
    fi

    # A colon ends a value here, unless it is escaped.
    for line in "${(@)answer[3,-1]}"; do
        local value=${line%%$'\t'*}
        local item=${${value//\\/\\\\}//:/\\:}
        [[ $line == *$'\t'* ]] && item+=:${line#*$'\t'}
        if [[ $value == *= ]]; then
            open+=("$item")
        else
            values+=("$item")
        fi
    done

    local -i found=1
    case $add in
    command\ *)
        local -i first=${add#command }
        shift $first words
        (( CURRENT -= first ))
        _normal
        return
        ;;
    files) _files && found=0 ;;
    folders) _files -/ && found=0 ;;
    users) _users && found=0 ;;
    commands) _cmdstring && found=0 ;;
    esac
    (( $#values )) && _describe -V value values && found=0
    (( $#open )) && _describe -V value open -S '' && found=0
    return found
}

if [[ $funcstack[1] == _iotomy ]]; then
    _iotomy "$@"
else
    compdef _iotomy iotomy
fi
