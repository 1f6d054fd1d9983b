#!/bin/sh
# Unpacks CPython of a version, as 3.15, from a suite of Debian that has it, with the C library of that suite. It goes
# into .cache/pythons/<version>/usr beside the system, as files: nothing is installed, no package's script runs, root is not
# needed, `rm -r .cache/pythons` undoes it. About 25 MB from the mirror that apt here uses. Prints the path of the
# interpreter; does nothing else where that was done. Where it cannot be done it says why and ends with 3.
set -eu

version=$1
root=$(cd "$(dirname "$0")/../.." && pwd -P)
apt=$root/tests/helpers/apt.sh
. "$apt"
kept=$root/.cache/pythons/$version/unpacked
made_by() {
    cat "$0" "$apt"
    echo "# in $kept" # which stands in what is made
}
if made_by | cmp -s - "$kept/made-by"; then
    echo "$kept/usr/bin/python$version"
    exit 0
fi

refuse() {
    echo "$1"
    exit 3
}
find_mirror || refuse "$reason"

made=$kept.made
rm -rf "$made"
trap 'rm -rf "$made"' EXIT

unpack() { # SUITE
    rm -rf "$made"
    read_index "$1" || return 1
    apt-cache show "python$version" >/dev/null 2>&1 || return 1
    download "python$version" "libpython$version-stdlib" libstdc++6 || return 1
    for package in "$made"/apt/archives/*.deb; do dpkg-deb --extract "$package" "$made" || return 1; done
}
unpack stable || unpack unstable || unpack oldstable || refuse "no suite of Debian has it that could be had"
drop_needless "$made"

# In place of the program stands what runs it with the loader and the libraries of its suite, under the name that it was called by:
# so it finds its own environment, and starts itself anew.
mkdir -p "$made/usr/libexec"
mv "$made/usr/bin/python$version" "$made/usr/libexec/python$version"
for loader in "$made"/usr/lib*/ld-linux*.so.*; do :; done
libraries=$(dirname "$(readlink -f "$loader")")
cat >"$made/usr/bin/python$version" <<WRAPPER
#!/bin/sh
exec "$kept${loader#"$made"}" --library-path "$kept${libraries#"$made"}" --argv0 "\$0" "$kept/usr/libexec/python$version" "\$@"
WRAPPER
chmod 755 "$made/usr/bin/python$version"

made_by >"$made/made-by"
rm -rf "$kept"
mv "$made" "$kept"
echo "$kept/usr/bin/python$version"
