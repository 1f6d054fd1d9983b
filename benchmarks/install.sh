#!/bin/sh
# Installs what the service's rows need from the distribution's packages (Debian, Ubuntu). Does nothing when it is there.
# Without root it says what is missing, and those rows are skipped. Go, for the peers, comes from https://go.dev/dl.
set -eu

"$(dirname "$0")/../tests/servers/install.sh"

missing=""
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
need wrk wrk
need redis-benchmark redis-tools
need taskset util-linux
need faketime faketime

command -v go >/dev/null 2>&1 || echo "Rows beside Go programs will be skipped: Go is not installed." >&2
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "Rows will be skipped: install$missing, or run $0 as root on Debian or Ubuntu." >&2
    exit 0
fi
apt-get update -qq || true # with what it knew, the next may succeed
# shellcheck disable=SC2086 # a word is a package
DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends $missing >/dev/null ||
    echo "Rows will be skipped: apt-get could not install$missing." >&2
