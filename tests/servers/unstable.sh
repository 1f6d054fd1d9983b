#!/bin/sh
# Unpacks the servers of today that the distribution does not have yet from Debian's unstable suite: MySQL, Valkey, CRIU, and
# a Python with their C library. They go into .cache/unstable beside the system, as files: nothing is installed, no package's
# script runs, root is not needed, `rm -r .cache/unstable` undoes it. About 85 MB from the mirror that apt here uses. Does
# nothing where that was done. Where it cannot be done it says so, and the tests skip.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
kept=$root/.cache/unstable
apt=$root/tests/helpers/apt.sh
cat "$0" "$apt" | cmp -s - "$kept/made-by" && exit 0
. "$apt"

skip() {
    echo "Tests with MySQL 9, Valkey 9 and CRIU 4 will be skipped: $1." >&2
    exit 0
}
find_mirror || skip "$reason"

made=$kept.made
rm -rf "$made"
trap 'rm -rf "$made"' EXIT
mkdir -p "$made/bin" "$made/root"

packages="mysql-server-core mysql-client-core valkey-server valkey-tools criu python3-minimal libpython3-stdlib"
echo "Unpacking$(printf ' %s' $packages) of Debian's unstable suite into .cache/unstable." >&2
read_index unstable || skip "the unstable suite's index could not be had"
# shellcheck disable=SC2086 # a word is a package
download $packages || skip "the unstable suite's packages could not be had"
for package in "$made"/apt/archives/*.deb; do dpkg-deb --extract "$package" "$made/root"; done
drop_needless "$made/root"

# Each runs with the suite's own loader and libraries. The kernel is the machine's.
wrap() { # NAME PROGRAM [BEFORE] [AFTER]: assignments before the command, options after the caller's
    cat >"$made/bin/$1" <<WRAPPER
#!/bin/sh
root=\$(cd "\$(dirname "\$0")/../root/usr" && pwd)
for loader in "\$root"/lib*/ld-linux*.so.*; do :; done
libraries=\$(dirname "\$(readlink -f "\$loader")"):\$root/lib/mysql/private
${3:-}
exec "\$loader" --library-path "\$libraries" "\$root/$2" "\$@" ${4:-}
WRAPPER
    chmod 755 "$made/bin/$1"
}
wrap mysqld9 sbin/mysqld "" '--basedir="$root" --plugin-dir="$root/lib/mysql/plugin"'
wrap mysql9 bin/mysql
wrap valkey9-server bin/valkey-server
wrap valkey9-cli bin/valkey-cli
wrap criu4 sbin/criu
wrap python3-unstable bin/python3 'export PYTHONHOME="$root"'

cat "$0" "$apt" >"$made/made-by"
rm -rf "$kept"
mv "$made" "$kept"
