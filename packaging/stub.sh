#!/bin/sh
# Builds the stub of commands in C beside its source, where there is a compiler; without it the stub in Python is used.
set -eu
cd "$(dirname "$0")/../lavactl/served"
compiler=$(command -v "${CC:-cc}" || command -v gcc || true)
[ -n "$compiler" ] || exit 0
[ ! -x lava-stub ] || [ stub.c -nt lava-stub ] || exit 0
"$compiler" -O2 -s -o ".lava-stub.$$" stub.c && mv ".lava-stub.$$" lava-stub && exit 0
rm -f ".lava-stub.$$"
echo "setup: the stub of commands could not be compiled; the one in Python is used" >&2
