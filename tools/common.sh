# shellcheck shell=bash disable=SC2034
# Sourced by the scripts of this folder; needs bash with -euo pipefail.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
me=$(basename "$0")
bundle=0 build=$root/build # the folder that has kvreplay
if [ -x "$here/bin/kvreplay" ]; then bundle=1 build=$here; fi # we are in a folder made by tools/bundle

say() { printf '%s: %s\n' "$me" "$*"; }
die() {
    printf '%s: %s\n' "$me" "$*" >&2
    exit 1
}

# Names of the packages in tools/packages.txt that are not installed.
missing_packages() {
    local name status
    while read -r name _; do
        case $name in '' | '#'*) continue ;; esac
        status=$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null || true)
        [ "$status" = installed ] || printf '%s\n' "$name"
    done <"$root/tools/packages.txt"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "installing packages needs root: run this as root, or install sudo"
    fi
}

# Installs what is missing; says so before; nothing is run where nothing is missing.
install_packages() {
    local missing
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        say "no dpkg and apt-get here: install by hand what tools/packages.txt lists"
        return
    fi
    mapfile -t missing < <(missing_packages)
    if [ ${#missing[@]} = 0 ]; then
        say "all Debian packages are installed"
        return
    fi
    say "installing with apt-get: ${missing[*]}"
    local log
    log=$(mktemp)
    as_root env DEBIAN_FRONTEND=noninteractive sh -c \
        'apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"' sh \
        "${missing[@]}" </dev/null >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        rm -f "$log"
        die "apt-get failed (its last lines are above)"
    }
    rm -f "$log"
}

# configure FOLDER OPTION...: a fresh or an existing build folder, with these options.
configure() {
    local folder=$1
    shift
    if [ -f "$folder/build.ninja" ] && meson configure "$folder" "$@" >/dev/null 2>&1; then
        return
    fi
    rm -rf "$folder"
    meson setup "$folder" "$root" "$@" >"$folder.log" 2>&1 || {
        cat "$folder.log"
        rm -f "$folder.log"
        return 1
    }
    rm -f "$folder.log"
}

find_nvcc() {
    command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true
}
