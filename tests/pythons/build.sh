#!/bin/sh
# Builds a CPython without the GIL from a folder of its source, and one with the GIL beside it by the same compiler and flags, so
# that a benchmark compares the GIL alone. They go into .cache/pythons/built/free and .cache/pythons/built/gil, and `make pythons
# ARGS="3.14 3.14t"` finds them there. It takes some minutes, changes nothing in the folder, and needs the headers that CPython needs.
#
#   tests/pythons/build.sh ~/cpython        # as `git archive v3.14.7` of CPython's repository unpacks it
set -eu

[ $# = 1 ] && [ -x "$1/configure" ] || {
    echo "usage: $0 SOURCE, a folder with CPython's source" >&2
    exit 2
}
source=$(cd "$1" && pwd -P)
cache=$(cd "$(dirname "$0")/../.." && pwd -P)/.cache/pythons/built
mkdir -p "$cache"

build() { # NAME OPTION...
    name=$1
    shift
    made=$cache/$name.made
    rm -rf "$made"
    mkdir "$made"
    (
        cd "$made"
        "$source/configure" --quiet --prefix="$cache/$name" --with-ensurepip=no "$@"
        make --silent -j"$(nproc)"
        rm -rf "${cache:?}/$name"
        make --silent install
    ) >"$cache/$name.log" 2>&1 || {
        tail -n 20 "$cache/$name.log" >&2
        echo "CPython ($name) did not build. All of its output is in $cache/$name.log." >&2
        exit 1
    }
    rm -rf "$made"
}

build gil
build free --disable-gil
for name in gil free; do
    ls "$cache/$name"/bin/python3.*[0-9] "$cache/$name"/bin/python3.*t 2>/dev/null || :
done
