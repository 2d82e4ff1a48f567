#!/bin/bash
# The bash completion, asked as readline asks it. usage: test_completion.sh KVREPLAY SOURCE-ROOT
kvreplay=$1
source "$2/completions/kvreplay.bash"
number=0

# expect "WORDS" WORD...: completing the last of WORD gives (at least) WORDS, each one.
expect() {
    local wanted=$1 missing='' word
    shift
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _kvreplay "$kvreplay" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
    for word in $wanted; do
        [[ " ${COMPREPLY[*]} " == *" $word "* ]] || missing+=" $word"
    done
    number=$((number + 1))
    echo "$([ -z "$missing" ] && echo ok || echo not ok) $number $*"
    [ -z "$missing" ] || echo "# lacks$missing, gave: ${COMPREPLY[*]}"
}

echo 1..6
expect 'simulate steps' kvreplay s
expect '--pool-pages --pool-layout' kvreplay run --pool
expect 'vllm-v1 paper' kvreplay simulate --scheduler ''
expect 'routes' kvreplay list r
expect 'describe' kvreplay workload d
expect '--csv --backend' kvreplay replay run.kvsteps --
