#!/usr/bin/env bash
# Checks the lease protocol, and that the check would notice if any of its rules were gone. Needs cargo alone.
set -euo pipefail
cd "$(dirname "$0")"
exec cargo run --locked --quiet --release --target-dir ../../target/model
