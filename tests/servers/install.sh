#!/bin/sh
# Installs the servers and the tools that the tests run from the distribution's packages (Debian, Ubuntu). Does nothing
# when they are there. Without root, or with MINTAGE_INSTALL_SERVERS=0, it says what is missing, and the tests skip.
# "install.sh clients": the languages whose Redis clients `make deep` runs, too; not Go, Node.js and Rust.
set -eu

PATH="$PATH:/usr/sbin:/sbin"
for directory in /usr/lib/postgresql/*/bin; do PATH="$directory:$PATH"; done

missing=""
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
need mariadbd mariadb-server
[ -e /usr/lib/galera/libgalera_smm.so ] || missing="$missing galera-4"
need postgres postgresql
need redis-server redis-server
need etcd etcd-server
need promtool prometheus
need redis-benchmark redis-tools
need curl curl
need openssl openssl
need rsync rsync
need mkfs.xfs xfsprogs
need nginx nginx-light
need haproxy haproxy
need pgbouncer pgbouncer
need chromium chromium
if [ "${1:-}" = clients ]; then
    need cc gcc
    need mvn maven
    need javac default-jdk-headless
    need ruby ruby
    need php php-cli
    [ -e /usr/include/hiredis/hiredis.h ] || missing="$missing libhiredis-dev"
    [ -e /usr/share/php/Predis/Autoloader.php ] || missing="$missing php-nrk-predis"
    php -r 'exit(class_exists("Redis") ? 0 : 1);' 2>/dev/null || missing="$missing php-redis"
    ruby -e 'require "redis"' 2>/dev/null || missing="$missing ruby-redis"
fi

[ -n "$missing" ] || exit 0
if [ "${MINTAGE_INSTALL_SERVERS:-1}" = 0 ]; then
    echo "Tests with real servers will be skipped, as MINTAGE_INSTALL_SERVERS is 0. Missing:$missing." >&2
    exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "Tests with real servers will be skipped: install$missing, or run $0 as root on Debian or Ubuntu." >&2
    exit 0
fi

echo "apt-get installs, for the tests with real servers:$missing. No service of theirs is started or enabled; the tests" \
    "start servers of their own, on loopback, and end them. To do without, interrupt this and set MINTAGE_INSTALL_SERVERS=0." >&2

# No service of the packages' own may start, now or with the machine: the tests start servers themselves.
policy=/usr/sbin/policy-rc.d
cluster=/etc/postgresql-common/createcluster.d/mintage.conf
ours=$cluster
# shellcheck disable=SC2086 # a word is a file
trap 'rm -f $ours' EXIT
if [ ! -e "$policy" ]; then
    ours="$ours $policy"
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
mkdir -p "${cluster%/*}"
echo "create_main_cluster = false" >"$cluster"

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq || true # with what it knew, the next may succeed
# shellcheck disable=SC2086 # a word is a package
if ! apt-get install -qq --yes --no-install-recommends $missing >/dev/null; then
    echo "Tests with real servers will be skipped: apt-get could not install$missing." >&2
    exit 0
fi

[ -d /run/systemd/system ] || exit 0
for package in $missing; do
    case $package in
        mariadb-server) service=mariadb ;;
        etcd-server) service=etcd ;;
        nginx-light) service=nginx ;;
        *) service=$package ;;
    esac
    systemctl disable --quiet --now "$service" || true
done
