#!/usr/bin/env bash
# Breaks the Lua of the Redis store, what the keeper's thread shares and the registry, a line at a time, in copies of the
# package, and names what no test notices: `tests/mutants/lines.sh blocks.lua keeper.py`, or all.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$PWD/.venv/bin
rules=$PWD/tests/mutants
place=$PWD/.cache/lines
mkdir -p "$place"
for part in ${*:-integers.lua blocks.lua segments.lua leases.lua keeper.py segment_client.py lease_client.py __init__.py numbers.py locks.py}; do
  copy=$place/$part
  rm -rf "$copy"
  mkdir -p "$copy/mutants"
  cp -r src "$copy/src"
  case $part in
    *.lua)
      file=$copy/src/mintage/store/lua/$part check=--noCheck limit_s=900
      tests="tests/contract/test_redis.py tests/contract/every_store -k 'redis and not redis_'"
      ;;
    __init__.py | numbers.py | locks.py)
      file=$copy/src/mintage/lease/registry/$part check='' limit_s=120
      tests=tests/unit/test_registry.py
      ;;
    *.py)
      file=$copy/src/mintage/lease/$part check='' limit_s=300
      tests="tests/unit/test_keeper.py tests/unit/test_sequence.py tests/unit/test_leases.py tests/unit/test_clones.py \
        tests/unit/test_health.py tests/unit/test_threads.py tests/unit/test_fork.py tests/contract/every_store \
        -k '(memory and not http) or unit'"
      ;;
  esac
  # Optimised: a change of a docstring is no mutant.
  (cd "$copy" && PYTHONOPTIMIZE=2 "$bin/mutate" "$file" $check --only "$rules/${part##*.}.rules" --mutantDir mutants) > "$copy/log"
  test -n "$(ls "$copy/mutants")" || { echo "$part: there is no mutant: see $copy/log" >&2; exit 1; }
  PYTHONPATH=$copy/src "$bin/analyze_mutants" "$file" "$bin/python -m pytest --exitfirst --hypothesis-profile=quick $tests" \
    --mutantDir "$copy/mutants" --prefix "$copy/tests" --noShuffle --timeout $limit_s >> "$copy/log"
  echo "$part: $(wc -l < "$copy/tests.killed.txt") found, $(wc -l < "$copy/tests.notkilled.txt") not:"
  while read -r survivor; do
    diff --unified=0 "$file" "$copy/mutants/$survivor" | tail -n +3 || true
  done < "$copy/tests.notkilled.txt"
done
