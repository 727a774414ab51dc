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
    local current=${words[-1]} before= inside= char
    # Of a quotation that is open, bash replaces only what is in it.
    for ((i = 0; i < ${#current}; i++)); do
        char=${current:i:1}
        if [[ -z $quote && $char == \\ ]]; then
            before+=${current:++i:1}
        elif [[ -z $quote && $char == [\'\"] ]]; then
            # It has escapes of its own.
            [[ $before == *\$ ]] && return
            quote=$char inside=
        elif [[ -z $quote ]]; then
            before+=$char
        elif [[ $char == "$quote" ]]; then
            before+=$inside quote=
        elif [[ $quote == '"' && $char == \\ && ${current:i+1:1} == [\"\\\$\`] ]]; then
            inside+=${current:++i:1}
        else
            inside+=$char
        fi
    done
    if [[ -n $quote ]]; then
        current=$before$inside
        words[-1]=$current
    fi

    mapfile -t answer < <(command iotomy complete -- "${words[@]}" 2>/dev/null)
    ((${#answer[@]})) || return
    local add=${answer[0]} fixed=${answer[1]-} kept=
    local rest=${current:${#fixed}}

    case $add in
    command\ *)
        local first=${add#command }
        if declare -F _comp_command_offset >/dev/null; then
            _comp_command_offset "${starts[first]}"
        elif declare -F _command_offset >/dev/null; then
            _command_offset "${starts[first]}"
        elif ((first == ${#words[@]} - 1)); then
            mapfile -t found < <(compgen -c -- "$current")
            for item in "${found[@]}"; do
                _iotomy_reply "$item"
            done
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
    local breaks=
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+='='
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=':'
    if [[ -n $breaks && -z $quote ]]; then
        kept=${current%"${current##*[$breaks]}"}
    fi

    local value open=
    for value in "${answer[@]:2}"; do
        value=${value%%$'\t'*}
        _iotomy_quoted "$value" "$quote"
        if [[ $value == "$rest"* || $REPLY == "$rest"* ]]; then
            found+=("$value")
            [[ $value == *= ]] && open=1
        fi
    done
    for item in "${found[@]}"; do
        _iotomy_reply "$item"
    done
    [[ -n $open ]] && compopt -o nospace 2>/dev/null
}

# Adds a candidate: what is behind $fixed, of which $before or $kept are not put in.
_iotomy_reply() {
    local REPLY=$1
    if [[ -n $quote ]]; then
        [[ $fixed$1 == "$before"* ]] || return
        REPLY=$fixed$1 REPLY=${REPLY#"$before"}
        # In double quotes, nothing keeps the shell from taking it for history.
        [[ $quote == '"' && $REPLY == *!* ]] && return
        if [[ $add != f* ]]; then
            _iotomy_quoted "$REPLY" "$quote"
            # bash takes such an end for that of the quotation.
            [[ $REPLY == *"$quote" ]] && REPLY+=$quote
        fi
    else
        # bash quotes the names of files by itself.
        [[ $add == f* ]] || _iotomy_quoted "$1" ''
        REPLY=$fixed$REPLY REPLY=${REPLY#"$kept"}
    fi
    COMPREPLY+=("$REPLY")
}

# Quotes a text for its place: in an open quotation of this kind, or outside of any.
_iotomy_quoted() {
    local sign slash='\' i
    REPLY=
    for ((i = 0; i < ${#1}; i++)); do
        sign=${1:i:1}
        case "$2:$sign" in
        "':'") REPLY+="'$slash''" ;;
        '":'[\"\\\$\`]) REPLY+=$slash$sign ;;
        [\'\"]:* | :[A-Za-z0-9_./=:,%@+-]) REPLY+=$sign ;;
        *) REPLY+=$slash$sign ;;
        esac
    done
}

complete -F _iotomy iotomy
