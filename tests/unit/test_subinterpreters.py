"""Tests of subinterpreters, as in mod_wsgi: refused at import, without a hang or a crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import mintage
from mintage import open_store

REMEDY = "WSGIApplicationGroup %{GLOBAL}"

# `_xxsubinterpreters` of 3.11 and 3.12 knows `isolated` alone; from 3.13 on the kinds have names.
RUN = f"""
import os, sys
sys.path.append({str(Path(mintage.__file__).parents[1])!r})

def interpreter(has_own_gil):
    if sys.version_info >= (3, 13):
        import _interpreters
        number = _interpreters.create("isolated" if has_own_gil else "legacy")
        return lambda code: _interpreters.exec(number, code), lambda: _interpreters.destroy(number)
    import _xxsubinterpreters
    number = _xxsubinterpreters.create(isolated=has_own_gil)
    return lambda code: _xxsubinterpreters.run_string(number, code), lambda: _xxsubinterpreters.destroy(number)

IMPORT = '''
import os, sys
sys.path.append({str(Path(mintage.__file__).parents[1])!r})
try:
    import mintage
except ImportError as error:
    answer = f"refused: {{error}}"
else:
    answer = "minted: " + str([mintage.sno.new() for _ in range(1000)][-1]) + str(mintage.sno.Generator().new())
os.write(1, answer.encode() + b"\\\\n")
'''
"""


def answers(program: str) -> list[str]:
    """Return the lines of output of a process that ended successfully and in time."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", RUN + program],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


both_kinds = pytest.mark.parametrize("has_own_gil", [False, True], ids=["with the shared GIL", "with a GIL of its own"])


@both_kinds
def test_subinterpreter_is_refused_in_one_sentence(has_own_gil: bool) -> None:
    (line,) = answers(f"run, end = interpreter({has_own_gil}); run(IMPORT); end()")
    assert line.startswith("refused: mintage runs in the main interpreter of a process")
    assert REMEDY in line


@both_kinds
def test_main_interpreter_mints_after_others_were_refused(has_own_gil: bool) -> None:
    program = f"""
for _ in range(3):
    run, end = interpreter({has_own_gil})
    run(IMPORT)
    end()
exec(IMPORT)
"""
    *refused, minted = answers(program)
    assert [line.partition(":")[0] for line in [*refused, minted]] == ["refused"] * 3 + ["minted"]


@both_kinds
def test_subinterpreter_is_refused_beside_a_minting_main_one(has_own_gil: bool) -> None:
    program = f"""
exec(IMPORT)
run, end = interpreter({has_own_gil})
run(IMPORT)
run(IMPORT)
end()
exec(IMPORT)
"""
    assert [line.partition(":")[0] for line in answers(program)] == ["minted", "refused", "refused", "minted"]


COPIES = """
import sys, time
from mintage import Sequence, snowflake
leased, orders = snowflake.Generator(store=sys.argv[1]), Sequence("orders", sys.argv[1])
given = snowflake.Generator(node=5)
minted = {given.new(), leased.new()}
node = leased.node
orders.next()
for _ in range(3):
    for name in [name for name in sys.modules if name.partition(".")[0] == "mintage"]:
        del sys.modules[name]
    from mintage import snowflake as again
    minted |= {given.new(), leased.new(), again.Generator(store=sys.argv[1]).new()}
    assert leased.node == node
    assert orders.next()
assert len(minted) == 11
time.sleep(0.1)  # so that each keeper's thread waits
"""


def test_sphinx_11662_second_copy_of_the_module_is_no_fork(tmp_path: Path) -> None:
    """A sandbox, such as Temporal's for workflows, imports what it runs again."""
    url = f"sqlite:///{tmp_path}/ids.db"
    for _ in range(3):
        subprocess.run([sys.executable, "-c", COPIES, url], check=True, timeout=60)
    with open_store(url) as store:
        assert {record.token for record in store.list_leases()} == {None}
        [orders] = store.list_namespaces()
        assert orders.high_water == 12
