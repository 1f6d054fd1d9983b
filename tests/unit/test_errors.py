"""Tests of the error catalogue: complete, raised, mapped, and equal in Python, in Rust and after a pickle."""

from __future__ import annotations

import argparse
import asyncio
import copy
import os
import pickle
import re
import sqlite3
import tempfile
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mintage
from mintage import errors, testing
from mintage.cli.serve import serve
from mintage.errors import CATALOGUE, MintError, StoreError
from mintage.ext.sqlalchemy import XIDType
from mintage.formats.kinds import KINDS
from mintage.server.config.keys import digest, new_key
from mintage.server.config.settings import Settings
from mintage.server.core.service import Service
from mintage.store import load_driver
from mintage.store.memory import MemoryStore
from tests.helpers.cases import each_case

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

# The calls below are wrong on purpose, so types are left out of them.
sno: Any = mintage.sno
snowflake: Any = mintage.snowflake
locality: Any = mintage.locality
ManualClock: Any = testing.ManualClock

ROOT = Path(__file__).parents[2]
NOW = 1_600_000_000 * 10**9


def wait_for_a_clock_that_went_back() -> None:
    clock = ManualClock(NOW)
    generator = snowflake.Generator(1, on_rollback="raise", clock=clock)
    generator.new()
    clock.advance(-1_000_000)
    generator.new()


def use_up_a_unit() -> None:
    sno.Generator(1, sequence_max=5, clock=ManualClock(NOW), max_wait_ms=0).batch(7)


def serve_on_windows() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.platform", "win32")
        assert serve.run is not None
        serve.run(argparse.Namespace())


def mint_for_the_parent_in_a_child() -> None:
    generator = sno.Generator(1)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            generator.new()
        except MintError as error:
            os.write(writer, pickle.dumps(error))
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        os.waitpid(child, 0)
        raise pickle.load(pipe)


def mint_after_close() -> None:
    with sno.Generator(1) as generator:
        pass
    generator.new()


def mint_from_a_pool_of_another_layout() -> None:
    store = MemoryStore()
    sno.Generator(store=store).new()
    sno.Generator(store=store, shards=2).new()


def make_a_namespace_twice() -> None:
    store = MemoryStore()
    store.create_namespace("orders")
    store.create_namespace("orders")


def use_up_a_namespace() -> None:
    store = MemoryStore()
    store.create_namespace("few", maximum=1)
    with mintage.Sequence("few", store) as few:
        few.next()
        few.next()


def reserve_in_a_retired_namespace() -> None:
    store = MemoryStore()
    store.retire("orders")
    mintage.Sequence("orders", store).next()


def lease_one_node_number_twice() -> None:
    store = MemoryStore()
    first = snowflake.Generator(7, store=store)
    first.new()
    snowflake.Generator(7, store=store).new()


def mint_after_the_lease_was_revoked() -> None:
    clock = ManualClock(NOW)
    store = MemoryStore(clock=lambda: clock.now_ns // 1_000_000)
    generator = snowflake.Generator(7, store=store, clock=clock)
    generator.new()
    store.revoke("snowflake", 7)
    clock.advance(3600 * 10**9)
    generator.new()


class AwayStore(MemoryStore):
    """A store that is always unavailable."""

    def acquire(self, *_: Any, **__: Any) -> Any:
        raise StoreError("the store is away", code="store.unavailable")


def name_a_home_that_is_elsewhere_in_each_directory() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINTAGE_HOME", "state/mintage")
        mintage.Sequence("orders").next()


def open_a_file_of_a_newer_mintage() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ids.db"
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version = 999")
        connection.close()
        mintage.open_store(f"sqlite:///{path}").now_ms()


def served(ask: Callable[[Service], Awaitable[object]], *options: str) -> object:
    """Return the answers of a service without interfaces."""

    async def answer() -> object:
        # A slow machine is no reason to fail.
        service = Service(Settings.load(("--max-wait-ms", "60000", *options)), MemoryStore())
        try:
            return await ask(service)
        finally:
            await service.close()

    return asyncio.run(answer())


async def ask_twice(service: Service) -> None:
    for _ in range(2):
        await service.next(service.keys.find(None), "orders", 1)


def find_an_unknown_key() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "service.toml"
        path.write_text(f'[keys.one]\nhash = "{digest(new_key())}"\nrights = {{ "*" = ["next"] }}\n')
        served(lambda service: service.next(service.keys.find(new_key()), "orders", 1), "--config", str(path))


RAISES: dict[str, Callable[[], object]] = {
    "argument.type": lambda: sno.ID.parse(5),
    "parse.length": lambda: sno.ID.parse("short"),
    "parse.character": lambda: sno.ID.parse("BRPK4Q72XWF2M63L"),
    "parse.unknown": lambda: mintage.inspect("?"),
    "field.range": lambda: sno.new(256),
    "field.format": lambda: snowflake.node_from_macs(["no MAC"]),
    "field.version": lambda: locality.ID(bytes(16)).pid,
    "time.naive": lambda: sno.min_at(datetime(2020, 1, 1)),  # noqa: DTZ001
    "time.range": lambda: sno.min_at(0),
    "time.order": lambda: KINDS["locality"].min_at(0),
    "config.layout": lambda: snowflake.Layout("node:10", epoch_ms=0),
    "config.bounds": lambda: sno.Generator(1, sequence_min=1, sequence_max=2),
    "config.node": lambda: snowflake.Generator(1024),
    "config.policy": lambda: snowflake.Generator(1, on_rollback="ignore"),
    "config.clock": lambda: sno.Generator(1, clock=lambda: "now").new(),
    "config.wait": lambda: sno.Generator(1, max_wait_ms=-1),
    "config.form": lambda: XIDType("uuid"),
    "config.snapshot": lambda: sno.Snapshot.from_json("{}"),
    "config.buffer": lambda: sno.Generator(1).fill(bytes(10)),
    "config.store": lambda: sno.Generator(store="nowhere:"),
    "config.home": name_a_home_that_is_elsewhere_in_each_directory,
    "config.driver": lambda: load_driver("no_such_driver", "mysql"),
    "config.platform": serve_on_windows,
    "config.name": lambda: mintage.Sequence("orders!", "memory:"),
    "config.pool": mint_from_a_pool_of_another_layout,
    "config.namespace": make_a_namespace_twice,
    "config.span": lambda: sno.Generator(store="memory:", span_ms=1),
    "clock.rollback": wait_for_a_clock_that_went_back,
    "clock.range": lambda: sno.Generator(1, clock=ManualClock(0)).new(),
    "sequence.exhausted": use_up_a_unit,
    "namespace.exhausted": use_up_a_namespace,
    "namespace.retired": reserve_in_a_retired_namespace,
    "fork.shared_node": mint_for_the_parent_in_a_child,
    "generator.closed": mint_after_close,
    "lease.none_free": lease_one_node_number_twice,
    "lease.lost": mint_after_the_lease_was_revoked,
    "lease.clock": lambda: snowflake.Generator(store=MemoryStore(), clock=ManualClock(NOW)).new(),
    "lease.unknown": lambda: MemoryStore().revoke("sno", 7),
    "lease.history": lambda: sno.Generator(store=MemoryStore()).new_at(NOW),
    "store.unavailable": lambda: sno.Generator(store=AwayStore(), max_wait_ms=50).new(),
    "store.refused": lambda: mintage.open_store("sqlite:////dev/null/no.db").now_ms(),
    "store.schema": open_a_file_of_a_newer_mintage,
    "config.setting": lambda: Settings.load(["--workers", "0"]),
    "config.insecure": lambda: Settings.load(["--http", "0.0.0.0:8080"]),
    "request.malformed": lambda: served(lambda service: service.mint(service.keys.find(None), "typeid", 1)),
    "request.key": find_an_unknown_key,
    "request.rights": lambda: served(lambda service: service.ask(service.keys.find(None), "admin", "", list)),
    "request.namespace": lambda: served(ask_twice, "--no-auto-create"),
    "request.namespaces": lambda: served(ask_twice, "--max-namespaces", "0"),
    "request.rate": lambda: served(ask_twice, "--rate", "1"),
}
#: What only a broken operating system can raise, or a server: see tests/contract.
BEYOND_REACH = {"system.random", "config.volatile"}
#: What only a frame of Spark can: see tests/ext/test_spark.py.
OF_FRAMES = {"config.plan"}
#: What only a connection can: see test_http_app and tests/service.
OF_CONNECTIONS = {"request.path", "request.method", "request.size", "request.busy", "service.failed"}
#: What only a form of the console can: see tests/service/test_console_use.py.
OF_FORMS = {"request.stale"}


def raised(code: str) -> MintError:
    with pytest.raises(MintError) as caught:
        RAISES[code]()
    return caught.value


# ----------------------------------------------------------------------------------------------------------- catalogue


def test_every_code_is_raised_in_this_file() -> None:
    assert RAISES.keys() | BEYOND_REACH | OF_FRAMES | OF_CONNECTIONS | OF_FORMS == CATALOGUE.keys()


@each_case("code", RAISES)
def test_error_has_the_code_and_class_of_the_catalogue(code: str) -> None:
    error = raised(code)
    assert (error.code, type(error)) == (code, CATALOGUE[code].error)


@each_case("code", CATALOGUE)
def test_entry_maps_to_http_resp_and_an_exit_code(code: str) -> None:
    entry = CATALOGUE[code]
    assert entry.http in {400, 401, 403, 404, 405, 409, 410, 413, 429, 500, 503}
    assert re.fullmatch(r"[A-Z]+", entry.resp)
    assert entry.exit == 2 or 64 <= entry.exit <= 78


@each_case("code", CATALOGUE)
def test_catalogue_entry_states_cause_and_remedy(code: str) -> None:
    for sentence in (CATALOGUE[code].meaning, CATALOGUE[code].remedy):
        assert re.fullmatch(r"[A-Z`].{10,}\.", sentence)


@each_case("code", CATALOGUE)
def test_code_is_two_lower_case_words_with_a_dot(code: str) -> None:
    assert re.fullmatch(r"[a-z]+\.[a-z_]+", code)


@each_case("code", CATALOGUE)
def test_caller_errors_are_400_and_transient_ones_429_or_503(code: str) -> None:
    entry = CATALOGUE[code]
    if issubclass(entry.error, (errors.ArgumentError, errors.ParseError, errors.FieldError)):
        assert entry.http == 400
    assert (entry.http in {429, 503}) == (entry.resp == "TRYAGAIN") == (entry.exit == 75)
    assert entry.exit != 75 or issubclass(entry.error, errors.TransientError)


SOURCES = [
    *(path for crate in ("core", "wire", "py") for path in (ROOT / "crates" / crate / "src").rglob("*.rs")),
    *(path for path in (ROOT / "src" / "mintage").rglob("*.py") if path.name != "errors.py"),
]
LITERALS = {
    literal for path in SOURCES for literal in re.findall(r'"([a-z]+\.[a-z_]+)"', path.read_text(encoding="utf-8"))
}
FAMILIES = {code.split(".")[0] for code in CATALOGUE}


def test_every_code_in_the_sources_is_in_the_catalogue() -> None:
    assert {literal for literal in LITERALS if literal.split(".")[0] in FAMILIES} <= CATALOGUE.keys()


def test_dotted_words_in_rust_are_codes_or_modules() -> None:
    rust = "".join(path.read_text(encoding="utf-8") for path in SOURCES if path.suffix == ".rs")
    words = set(re.findall(r'"([a-z]+\.[a-z_]+)"', rust))
    words -= {"arrow.uuid"}  # Arrow's name for a type
    assert {word for word in words if not word.startswith("mintage.")} <= CATALOGUE.keys()


def test_every_code_of_the_catalogue_is_in_the_sources() -> None:
    assert CATALOGUE.keys() <= LITERALS


# ------------------------------------------------------------------------------------------------------------- classes


def test_every_error_is_a_mint_error() -> None:
    others = {"CATALOGUE", "Entry", "UniquenessWarning"}
    classes = [getattr(errors, name) for name in errors.__all__ if name not in others]
    assert {entry.error for entry in CATALOGUE.values()} <= set(classes)
    assert all(issubclass(error, MintError) for error in classes)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.ArgumentError, TypeError),
        (errors.ParseError, ValueError),
        (errors.FieldError, ValueError),
        (errors.ConfigError, ValueError),
        (errors.TransientError, RuntimeError),
        (errors.GenerationError, RuntimeError),
        (errors.LeaseError, RuntimeError),
        (errors.StoreError, RuntimeError),
        (errors.RequestError, RuntimeError),
    ],
)
def test_error_is_also_a_builtin_exception(error: type[MintError], builtin: type[Exception]) -> None:
    assert issubclass(error, builtin)


@each_case("code", RAISES)
def test_error_survives_pickle_and_copy(code: str) -> None:
    error = raised(code)
    pickled = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for twin in [*pickled, copy.copy(error), copy.deepcopy(error)]:
        assert (type(twin), twin.args, twin.__dict__) == (type(error), error.args, error.__dict__)


@each_case("code", RAISES)
def test_message_is_one_short_line(code: str) -> None:
    message = str(raised(code))
    assert 10 < len(message) < 250
    assert "\n" not in message


def test_parse_error_has_a_position() -> None:
    positions = [
        getattr(raised(code), "position", "none") for code in ("parse.character", "parse.length", "field.range")
    ]
    assert positions == [0, None, "none"]


@pytest.mark.parametrize("code", ["clock.rollback", "sequence.exhausted"])
def test_transient_error_has_a_retry_delay_in_milliseconds(code: str) -> None:
    error = raised(code)
    assert isinstance(error, errors.GenerationError)
    assert error.retry_after_ms is not None
    assert 1 <= error.retry_after_ms <= 4


@pytest.mark.parametrize("code", ["clock.range", "fork.shared_node", "generator.closed"])
def test_permanent_error_has_no_retry_delay(code: str) -> None:
    error = raised(code)
    assert isinstance(error, errors.GenerationError)
    assert error.retry_after_ms is None


@pytest.mark.parametrize("error", errors.TransientError.__subclasses__())
def test_transient_error_has_a_retry_delay_or_says_unknown(error: type[errors.TransientError]) -> None:
    assert error("later", code="request.busy", retry_after_ms=5).retry_after_ms == 5
    assert error("never", code="request.busy").retry_after_ms is None
    # One of a user's own may be made in another way.
    assert error.__new__(error).retry_after_ms is None


def test_users_can_raise_errors_too() -> None:
    error = errors.GenerationError("later", code="sequence.exhausted", retry_after_ms=5)
    assert (str(error), error.code, error.retry_after_ms) == ("later", "sequence.exhausted", 5)
