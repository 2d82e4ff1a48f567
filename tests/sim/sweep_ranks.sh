#!/bin/sh
# Two MPI ranks give the CSV of two threads, byte for byte: sweep_ranks.sh MPIRUN SWEEP_DEMO
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$2" "$dir/threads.csv" 2
root=
[ "$(id -u)" -eq 0 ] && root=--allow-run-as-root
"$1" $root --oversubscribe -n 2 "$2" "$dir/ranks.csv" 1
cmp "$dir/threads.csv" "$dir/ranks.csv"
[ "$(wc -l <"$dir/ranks.csv")" -eq 73 ]
[ "$(ls "$dir" | wc -l)" -eq 2 ] # no journal is left
