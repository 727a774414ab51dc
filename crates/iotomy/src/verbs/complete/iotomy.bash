# bash completion for iotomy. What may stand at the cursor is asked of `iotomy complete`.

_iotomy() {
    local line=${COMP_LINE:0:COMP_POINT} raw i quote= item
    local -a words=() starts=() answer=() found=()
    COMPREPLY=()

    # bash also splits words at = and :, which are parts of a word here.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        raw=${COMP_WORDS[i]}
        if ((i == 0)) || [[ $line == [[:blank:]]* ]]; then
            line=${line#"${line%%[![:blank:]]*}"}
            words+=('') starts+=("$i")
        fi
        # Behind the cursor, nothing counts.
        ((i == COMP_CWORD)) && raw=$line
        words[-1]+=$raw
        line=${line#"$raw"}
    done
    local current=${words[-1]}
    if [[ $current == [\'\"]* ]]; then
        quote=${current:0:1} current=${current:1}
        words[-1]=$current
    fi

    mapfile -t answer < <(command iotomy complete -- "${words[@]}" 2>/dev/null)
    ((${#answer[@]})) || return
    local add=${answer[0]} fixed=${answer[1]-}
    local rest=${current:${#fixed}}

    case $add in
    command\ *)
        local first=${add#command }
        if declare -F _comp_command_offset >/dev/null; then
            _comp_command_offset "${starts[first]}"
        elif declare -F _command_offset >/dev/null; then
            _command_offset "${starts[first]}"
        elif ((first == ${#words[@]} - 1)); then
            mapfile -t COMPREPLY < <(compgen -c -- "$current")
        else
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
        fi
        return
        ;;
    files) mapfile -t found < <(compgen -f -- "$rest") ;;
    folders) mapfile -t found < <(compgen -d -- "$rest") ;;
    users) mapfile -t found < <(compgen -u -- "$rest") ;;
    commands) mapfile -t found < <(compgen -c -- "$rest") ;;
    esac
    [[ $add == f* ]] && compopt -o filenames 2>/dev/null

    # Of the word, bash puts in only what is behind the last sign at which it splits words.
    local kept= breaks=
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+='='
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=':'
    if [[ -n $breaks && -z $quote ]]; then
        kept=${current%"${current##*[$breaks]}"}
    fi

    local value quoted open=
    for value in "${answer[@]:2}"; do
        value=${value%%$'\t'*}
        quoted=$value
        if [[ -z $quote && $value == *[!A-Za-z0-9_./=:,%@+-]* ]]; then
            printf -v quoted %q "$value"
        fi
        if [[ $value == "$rest"* || $quoted == "$rest"* ]]; then
            found+=("$quoted")
            [[ $value == *= ]] && open=1
        fi
    done
    for item in "${found[@]}"; do
        item=$fixed$item
        COMPREPLY+=("${item#"$kept"}")
    done
    [[ -n $open ]] && compopt -o nospace 2>/dev/null
}

complete -F _iotomy iotomy
