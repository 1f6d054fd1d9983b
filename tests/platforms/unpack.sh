#!/bin/sh
# Unpacks packages of Debian's stable suite for another processor into a directory, as files: nothing is installed, and root is not
# needed. Usage: unpack.sh ARCHITECTURE DIRECTORY PACKAGE... Where it cannot be done it says why and ends with 3.
set -eu

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
command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || refuse "apt-get and dpkg-deb are not here"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1)
[ -n "$mirror" ] || refuse "apt here knows no mirror of Debian"

made=$kept.made
rm -rf "$made"
trap 'rm -rf "$made"' EXIT
mkdir -p "$made/apt/lists/partial" "$made/apt/archives/partial"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keys" ] && signed="[signed-by=$keys] " || signed=
echo "deb $signed$mirror stable main" >"$made/apt/sources.list"
: >"$made/apt/status"
cat >"$made/apt/conf" <<CONF
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
Dir::Etc::SourceList "$made/apt/sources.list";
Dir::Etc::SourceParts "-";
Dir::State "$made/apt";
Dir::State::Status "$made/apt/status";
Dir::Cache "$made/apt";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
CONF
export APT_CONFIG="$made/apt/conf"
apt-get update -qq >&2 || refuse "apt could not read the list of packages for $architecture"
apt-get install -qq --yes --download-only "$@" >/dev/null || refuse "apt could not download $* for $architecture"
# Programs that are extracted for this machine need the directories that a merged /usr has.
for directory in bin lib lib64 sbin; do
    mkdir -p "$made/usr/$directory"
    ln -s "usr/$directory" "$made/$directory"
done
for package in "$made"/apt/archives/*.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$made"; done
rm -rf "$made/apt" "$made/usr/share/doc" "$made/usr/share/man" "$made/usr/share/locale"
echo "$*" >"$made/complete"
rm -rf "$kept"
mv "$made" "$kept"
