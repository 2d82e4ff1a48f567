# bash completion for kvreplay; asks the program itself, so that it is never out of date.

_kvreplay_kind() {
    case $1 in
    --format) echo formats ;;
    --arrivals) echo arrivals ;;
    --lengths) echo lengths ;;
    --sessions) echo sessions ;;
    --model) echo models ;;
    --scheduler) echo schedulers ;;
    --clock) echo clocks ;;
    --backend) echo backends ;;
    --policy) echo policies ;;
    --splits) echo splits ;;
    --routes | --route | --route-b) echo routes ;;
    --only) echo plots ;;
    esac
}

_kvreplay_values() {
    case $1 in
    --runtime) echo attention layer all ;;
    --sampling) echo gumbel argmax ;;
    esac
}

_kvreplay() {
    local program=$1 word=$2 before=$3 kind words
    COMPREPLY=()
    kind=$(_kvreplay_kind "$before")
    words=$(_kvreplay_values "$before")
    if [ -n "$words" ]; then
        :
    elif [ "$COMP_CWORD" = 1 ]; then
        words=$("$program" --list-commands 2>/dev/null)
    elif [ -n "$kind" ]; then
        compopt -o nospace 2>/dev/null
        words=$("$program" list "$kind" --names 2>/dev/null)
    elif [[ $word == -* ]]; then
        words=$("$program" --list-options "${COMP_WORDS[1]}" 2>/dev/null)
    elif [ "${COMP_WORDS[1]}" = list ] && [ "$COMP_CWORD" = 2 ]; then
        words=$("$program" list --names 2>/dev/null)
    elif [ "${COMP_WORDS[1]}" = workload ] && [ "$COMP_CWORD" = 2 ]; then
        words='describe gen convert mix'
    else
        compopt -o default 2>/dev/null # files
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _kvreplay kvreplay
