#!/usr/bin/env bash
# Breaks the Lua of the Redis store a line at a time, in a copy of the package, and names what no test of that store notices.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$PWD/.venv/bin
place=$PWD/.cache/lua
rm -rf $place
mkdir -p $place
cp -r src $place/src
for part in ${*:-integers blocks segments leases}; do
  file=$place/src/mintage/store/lua/$part.lua
  mkdir $place/$part
  "$bin/mutate" $file --noCheck --only tests/mutants/lua.rules --mutantDir $place/$part > $place/$part.log
  PYTHONPATH=$place/src "$bin/analyze_mutants" $file "$bin/python -m pytest --exitfirst --hypothesis-profile=quick \
    tests/contract/test_redis.py tests/contract/test_contract.py -k 'redis and not redis_'" \
    --mutantDir $place/$part --prefix $place/$part --noShuffle --timeout 900 >> $place/$part.log
done
for survivor in $(cat $place/*.notkilled.txt); do
  part=${survivor%%.*}
  diff --unified=0 src/mintage/store/lua/$part.lua $place/$part/$survivor | tail -n +3 || true
done
