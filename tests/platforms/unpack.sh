#!/bin/sh
# Unpacks packages of Debian's stable suite for another processor into a directory, as files: nothing is installed, and root is not
# needed. Usage: unpack.sh ARCHITECTURE DIRECTORY PACKAGE... Where it cannot be done it says why and ends with 3.
set -eu
. "$(dirname "$0")/../helpers/apt.sh"

architecture=$1
kept=$(realpath -m "$2")
shift 2
if [ -e "$kept/complete" ] && [ "$(cat "$kept/complete")" = "$*" ]; then
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
read_index stable "$architecture" || refuse "apt could not read the list of packages for $architecture"
download "$@" || refuse "apt could not download $* for $architecture"
# Programs that are extracted for this machine need the directories that a merged /usr has.
for directory in bin lib lib64 sbin; do
    mkdir -p "$made/usr/$directory"
    ln -s "usr/$directory" "$made/$directory"
done
for package in "$made"/apt/archives/*.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$made"; done
drop_needless "$made"
echo "$*" >"$made/complete"
rm -rf "$kept"
mv "$made" "$kept"
