#!/usr/bin/env bash
# Checks the lease protocol, and checks that the search finds a duplicate without any one of its rules. Needs only cargo.
set -euo pipefail
cd "$(dirname "$0")"
exec cargo run --locked --quiet --release --target-dir ../../target/model
