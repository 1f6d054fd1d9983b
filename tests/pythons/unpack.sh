#!/bin/sh
# Unpacks CPython of a version, as 3.15, from a suite of Debian that has it, with the C library of that suite. It goes
# into .cache/pythons/<version>/usr beside the system, as files: nothing is installed, no package's script runs, root is not
# needed, `rm -r .cache/pythons` undoes it. About 25 MB from the mirror that apt here uses. Prints the path of the
# interpreter; does nothing else where that was done. Where it cannot be done it says why and ends with 3.
set -eu

version=$1
root=$(cd "$(dirname "$0")/../.." && pwd -P)
kept=$root/.cache/pythons/$version/unpacked
made_by() {
    cat "$0"
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
command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || refuse "apt-get and dpkg-deb are not here"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1)
[ -n "$mirror" ] || refuse "apt here knows no mirror of Debian"

made=$kept.made
rm -rf "$made"
trap 'rm -rf "$made"' EXIT

# apt, as if nothing were installed.
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keys" ] && signed="[signed-by=$keys] " || signed=
unpack() { # SUITE
    rm -rf "$made"
    mkdir -p "$made/apt/lists/partial" "$made/apt/archives/partial"
    echo "deb $signed$mirror $1 main" >"$made/apt/sources.list"
    : >"$made/apt/status"
    cat >"$made/apt/conf" <<CONF
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
    apt-get update -qq >&2 || return 1
    apt-cache show "python$version" >/dev/null 2>&1 || return 1
    apt-get install -qq --yes --download-only "python$version" "libpython$version-stdlib" libstdc++6 >/dev/null || return 1
    for package in "$made"/apt/archives/*.deb; do dpkg-deb --extract "$package" "$made" || return 1; done
}
unpack stable || unpack unstable || unpack oldstable || refuse "no suite of Debian has it that could be had"
rm -rf "$made/apt" "$made/usr/share/doc" "$made/usr/share/man" "$made/usr/share/locale"

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
