# Sourced by the scripts that unpack packages of Debian beside the system: apt, as if nothing were installed. It needs no root, and
# runs no package's script. $made is the directory in which the script unpacks.

find_mirror() { # sets $mirror; where there is none, it fails and sets $reason
    reason="apt-get and dpkg-deb are not here"
    command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || return 1
    reason="apt here knows no mirror of Debian"
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1)
    [ -n "$mirror" ]
}

read_index() { # SUITE [ARCHITECTURE]: of this machine by default
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -e "$keys" ] && signed="[signed-by=$keys] " || signed=
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
    if [ $# -gt 1 ]; then
        printf 'APT::Architecture "%s";\nAPT::Architectures { "%s"; };\n' "$2" "$2" >>"$made/apt/conf"
    fi
    export APT_CONFIG="$made/apt/conf"
    apt-get update -qq >&2
}

download() { # PACKAGE...: with those that they need, into $made/apt/archives
    apt-get install -qq --yes --download-only "$@" >/dev/null
}

drop_needless() { # DIRECTORY that was unpacked into
    rm -rf "$made/apt" "$1/usr/share/doc" "$1/usr/share/man" "$1/usr/share/locale"
}
