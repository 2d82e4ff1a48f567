# shellcheck shell=bash disable=SC2034,SC2154
# Sourced by measure-gpu and measure-policy: a measurement in parts. Needs bash with -euo pipefail; functions part_NAME and an array `parts` of
# those names in the order of their value; sets commit, and what common.sh sets.
#
# Each part is this script once more (--part NAME, for itself alone) under timeout(1), in a process group of its own: what hangs is stopped and the
# rest goes on. It writes a file as FILE.part and renames it when whole (into, whole), so that what a stopped or failed part leaves behind has that
# name. parts.csv in the folder says of each part how it ended, how long it took, and with which GPU, driver, commit and options.
# One measurement at a time has a folder.
#
# Exit status of a part: 0 done; 77 left out, its reason printed; anything else failed.

. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
commit=$(cat "$here/commit" 2>/dev/null || git -C "$here" rev-parse --short=10 HEAD 2>/dev/null || echo unknown)
out='' only='' limit=0 within=0 resume=0 driver='' part=''
declare -A outcome took remains options_of # options_of[PART]: where a part has more of them than `options` says
columns=part,outcome,seconds,gpu,driver,commit,date,options
words=("$@") # what a part is called with

note() { printf '%s  %s\n' "$(date +%H:%M:%S)" "$*"; }
into() { local file=$1; shift; "$@" >"$file.part" && mv "$file.part" "$file"; }
packed() { local file; for file; do gzip -9nc "$file" >"$file.gz.part" && mv "$file.gz.part" "$file.gz" && rm "$file" || return; done; }
whole() { local file; for file; do mv "$file.part" "$file" || return; done; } # FILE.part, written by a program that names it so
left_out() { note "left out: $*"; exit 77; }
data() { # FILE: one of the logs that come with it
    local from=$root/tests/data
    [ $bundle = 0 ] || from=$here/data
    realpath "$from/$1"
}

# Options that both scripts have; 1 = not one of them. Sets `shifts`.
common_option() {
    shifts=2
    case $1 in
    --resume) resume=1 shifts=1; return ;;
    --out | --build | --only | --limit | --within | --part | --driver) [ -n "${2:-}" ] || usage "$1 wants a value" ;;
    *) return 1 ;;
    esac
    declare -g "${1#--}=$2"
}
check_options() {
    local name names
    [[ $limit =~ ^[0-9]{1,8}$ && $within =~ ^[0-9]{1,8}$ ]] || usage "--limit, --within: expected seconds"
    limit=$((10#$limit)) within=$((10#$within))
    read -ra names <<<"${only//,/ }"
    [ -z "$only" ] || [ ${#names[@]} -gt 0 ] || usage "--only $only: expected some of ${parts[*]}"
    for name in ${names[@]+"${names[@]}"}; do
        [[ " ${parts[*]} " == *" $name "* ]] || usage "--only $name: expected some of ${parts[*]}"
    done
    [ -z "$part" ] || [[ " ${parts[*]} " == *" $part "* ]] || usage "--part $part: expected one of ${parts[*]}"
    [ "$limit" -gt 0 ] || limit=$((within > 0 ? within / 3 : 1800))
    command -v timeout >/dev/null || die "no timeout here (of coreutils): what hangs could not be stopped"
    case $out in -*) out=./$out ;; esac
}

first_gpu() { nvidia-smi --query-gpu="$1" --format=csv,noheader 2>/dev/null | head -n 1 || true; } # FIELD
# The version of a GPU's driver; nothing where nvidia-smi does not tell it (it prints its complaints in its place).
driver_here() {
    local text
    text=$(first_gpu driver_version)
    if [[ $text =~ ^[0-9][0-9.]*$ ]]; then echo "$text"; fi
}
gpu_here() {
    local text
    text=$(first_gpu name)
    text=${text//[,\"]/ }
    echo "${text:-unknown}"
}

open_folder() { # of results: made, writable, and nobody else's while this runs
    mkdir -p "$out" || exit 1
    out=$(realpath "$out")
    [ -z "$part" ] || return 0
    command -v flock >/dev/null && { exec {lock}<"$out" && flock -n -E 9 "$lock" || [ $? != 9 ] || die "$out: another measurement writes there"; }
    trap 'rm -f "$out/.begun"' EXIT
    if ! { echo x >"$out/.begun"; } 2>/dev/null; then die "$out: no file can be written there"; fi
    # At once, so that a folder is known as a measurement's even where the first part was stopped.
    [ -f "$out/parts.csv" ] || into "$out/parts.csv" echo "$columns"
}

record() { # PART: its line of parts.csv
    if ! { echo "$columns" &&
      { [ ! -f "$out/parts.csv" ] || sed "1d;/^$1,/d" "$out/parts.csv"; } &&
      echo "$1,${outcome[$1]},${took[$1]},$gpu,$driver,$commit,$(date -u +%F),${options_of[$1]:-$options}"; } 2>/dev/null >"$out/parts.csv.part" ||
        ! mv "$out/parts.csv.part" "$out/parts.csv"; then
        die "$out/parts.csv could not be written: is the disk full? Stopped after part $1"
    fi
}
is_done() { # on this GPU, at this commit, with these options
    local name how _ on at with
    [ -f "$out/parts.csv" ] || return 1
    while IFS=, read -r name how _ on _ at _ with; do
        [ "$name,$how,$on,$at,$with" != "$1,done,$gpu,$commit,${options_of[$1]:-$options}" ] || return 0
    done <"$out/parts.csv"
    return 1
}

run_part() { # PART
    local status=0 from=$SECONDS may=$limit
    if [ "$within" -gt 0 ] && [ $((within - SECONDS)) -lt "$may" ]; then may=$((within - SECONDS)); fi
    if [ "$may" -lt 1 ]; then
        outcome[$1]='not begun' took[$1]=0
        record "$1"
        return
    fi
    note "$1"
    touch "$out/.begun" 2>/dev/null || true
    timeout --kill-after=15 "$may" "$BASH" "$here/$me" ${words[@]+"${words[@]}"} --driver "$driver" --part "$1" &
    child=$!
    wait $child || status=$?
    took[$1]=$((SECONDS - from))
    case $status in
    0) outcome[$1]='done' ;;
    77) outcome[$1]='left out' ;;
    124 | 137) outcome[$1]=stopped ;;
    *) outcome[$1]="failed ($status)" ;;
    esac
    record "$1"
    if [ $status != 0 ] && [ $status != 77 ]; then
        remains[$1]=$(cd "$out" && find . -name '*.part' -newer .begun -printf '%P ')
        note "$1: ${outcome[$1]} after ${took[$1]} s${remains[$1]:+, leaves ${remains[$1]}}"
    fi
}

closing() { # how each part ended; 1 when one did not end well
    local name bad=''
    echo
    printf '%-12s %-12s %7s\n' part outcome seconds
    for name in "${parts[@]}"; do
        [ -n "${outcome[$name]:-}" ] || continue
        printf '%-12s %-12s %7s%s\n' "$name" "${outcome[$name]}" "${took[$name]}" "${remains[$name]:+  ${remains[$name]}}"
        case ${outcome[$name]} in done | 'left out' | earlier) ;; *) bad+=" $name" ;; esac
    done
    [ -z "$bad" ] || echo "not whole:$bad"
    echo "$SECONDS s in all: $out"
    [ -z "$bad" ]
}

interrupted() { # STATUS
    trap '' INT TERM HUP
    [ -z "${child:-}" ] || { kill -TERM "$child" 2>/dev/null && wait "$child"; } || true
    echo "$me: interrupted; $out/parts.csv has what was done, --resume goes on" >&2
    exit "$1"
}

# All parts that are wanted, or (in a part's own process) that one. Then functions begin and end, where the script has them.
run_parts() {
    if [ -n "$part" ]; then
        trap 'exit 143' TERM # when what runs now has ended
        "part_$part"
        exit 0
    fi
    trap 'interrupted 130' INT
    trap 'interrupted 143' TERM
    trap 'interrupted 129' HUP
    local name
    for name in "${parts[@]}"; do
        [ -z "$only" ] || [[ ",$only," == *,$name,* ]] || continue
        if [ $resume = 1 ] && is_done "$name"; then
            outcome[$name]=earlier took[$name]='-'
        else
            run_part "$name"
        fi
    done
}
