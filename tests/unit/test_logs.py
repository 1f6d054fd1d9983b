"""Tests of the log: one format for all, no secrets, and no line that others can break."""

from __future__ import annotations

import ast
import io
import json
import logging
import re
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from mintage.server.config.keys import new_key
from mintage.server.core import logs
from mintage.server.core.events import REFUSALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., io.StringIO]]:
    """Configure the log with a captured standard error; restore everything afterwards."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    root.handlers.clear()  # `force` would close pytest's own

    def configure(
        log_format: str = "json", log_level: str = "info", workers: int = 1, tty: bool = False
    ) -> io.StringIO:
        stream = Terminal() if tty else io.StringIO()
        monkeypatch.setattr(sys, "stderr", stream)
        settings = SimpleNamespace(log_format=log_format, log_level=log_level, workers=workers, console="on")
        logs.configure(settings)  # type: ignore[arg-type]
        return stream

    with structlog.contextvars.bound_contextvars():
        yield configure
    logging.captureWarnings(False)
    structlog.reset_defaults()
    root.handlers[:], root.level = before


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def log() -> Any:
    return structlog.get_logger("mintage")


def test_record_has_time_level_event_and_trace_id(start: Callable[..., io.StringIO]) -> None:
    stream = start()
    with structlog.contextvars.bound_contextvars(trace_id="abc"):
        log().info("serving", http="127.0.0.1:41234")
    (line,) = lines(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line.pop("timestamp"))
    assert line == {"level": "info", "event": "serving", "trace_id": "abc", "http": "127.0.0.1:41234"}


def test_keeper_and_libraries_log_in_the_same_format(start: Callable[..., io.StringIO]) -> None:
    stream = start()
    with structlog.contextvars.bound_contextvars(trace_id="abc"):
        logging.getLogger("mintage").warning("mintage: %s; trying again", "it is away")
        logging.getLogger("asyncio").error("fault", exc_info=ValueError("x"))
    keeper, library = lines(stream)
    assert (keeper["level"], keeper["event"]) == ("warning", "mintage: it is away; trying again")
    assert keeper["trace_id"] == library["trace_id"] == "abc"
    assert library["exception"] == "ValueError: x"


def test_warnings_are_logged(start: Callable[..., io.StringIO]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        stream = start()
        warnings.warn("IDs may repeat", RuntimeWarning, stacklevel=1)
        logging.captureWarnings(False)
    (line,) = lines(stream)
    assert line["level"] == "warning"
    assert "RuntimeWarning: IDs may repeat" in line["event"]


@pytest.mark.parametrize(("level", "seen"), [("debug", 3), ("info", 2), ("warning", 1), ("error", 0)])
def test_nothing_below_the_level_is_logged(start: Callable[..., io.StringIO], level: str, seen: int) -> None:
    stream = start(log_level=level)
    log().debug("d")
    log().info("i")
    logging.getLogger("mintage").warning("w")
    assert len(lines(stream)) == seen


def test_auto_is_console_on_a_terminal_and_json_elsewhere(start: Callable[..., io.StringIO]) -> None:
    piped = start("auto")
    log().info("serving")
    assert lines(piped)[0]["event"] == "serving"
    terminal = start("auto", tty=True)
    log().info("serving")
    assert "\x1b[" in terminal.getvalue()
    assert not terminal.getvalue().startswith("{")


def test_console_in_a_pipe_has_no_colors(start: Callable[..., io.StringIO]) -> None:
    stream = start("console")
    log().info("serving", http="127.0.0.1:1")
    assert "\x1b" not in stream.getvalue()
    assert re.fullmatch(r"\S+Z \[info     \] serving +http=127\.0\.0\.1:1\n", stream.getvalue())


def test_log_line_of_a_worker_names_its_process(start: Callable[..., io.StringIO]) -> None:
    stream = start(workers=2)
    log().info("store away")
    logging.getLogger("mintage").info("the same")
    assert all(isinstance(line["pid"], int) for line in lines(stream))


@pytest.mark.parametrize("form", ["json", "console"])
def test_secrets_are_masked_everywhere(start: Callable[..., io.StringIO], form: str) -> None:
    key = new_key()
    stream = start(form)
    log().info(
        f"who {key}", key=key, deep={"a": [key, (f"Bearer {key}",)]}, raw=key.encode(), it=SimpleNamespace(k=key)
    )
    log().info("url", url="mysql://ids:s3cret@db/ids?cache=redis://:s3cret@cache:6379", option="x?password=s3cret&a=1")
    logging.getLogger("other").info("cut short: %s, of %s", key[:30], "redis+sentinel://u:s3@cret@a:1,b:2/")
    try:
        raise ValueError(f"http://:{key}@host refused {key}")
    except ValueError:
        log().exception("failed")
    text = stream.getvalue()
    assert "mint_***" in text
    assert "mysql://ids:***@" in text
    assert "a=1" in text
    for secret in (key[3:], key[3:30], "s3cret", "s3@cret", "s3"):
        assert secret not in text


def piece_of(key: str, text: str) -> str:
    """Return the first part of a key, of 16 characters or more, that a text contains in any spelling."""
    read = text
    for _ in range(4):
        read = unquote(read)
    parts = (key[at : at + 16].lower() for at in range(5, len(key) - 15))
    return next((part for part in parts if part in read.lower()), "")


AROUND = ["", "a", "7", "_", "-", ".", "%", " ", "/", "?", "&k=", "=", ":", "@", "'", '"', "\\", "é", "\x00", "\n"]


@given(
    st.sampled_from(AROUND) | st.text(max_size=9),
    st.sampled_from(AROUND) | st.text(max_size=9),
    st.sampled_from([str, repr, ascii, json.dumps, str.lower, str.upper, str.encode]),
    st.integers(0, 3),
    st.sets(st.integers(0, 47)),
)
def test_key_is_masked_in_every_place_and_spelling(
    before: str, after: str, write: Callable[[str], object], encoded: int, places: set[int]
) -> None:
    key = new_key()
    said = key
    for _ in range(encoded):
        said = "".join(f"%{ord(each):02X}" if at in places else each for at, each in enumerate(said))
        said = quote(said)
        places = set()
    shown = logs.masked(str(write(before + said + after)))
    assert not piece_of(key, shown), shown


def test_names_that_only_begin_like_a_key_are_not_masked() -> None:
    for text in ("mint_orders http://127.0.0.1:8080/x", "mintage_integers_total", "MINTAGE_MAX_NAMESPACES"):
        assert logs.masked(text) == text


@pytest.mark.parametrize(
    "piece", ["://:a", "token", "mint_", "://", "?token", "@:", "://a:b@", "%", "%25", "%6d", "25"]
)
def test_masking_of_long_hostile_text_is_fast(piece: str) -> None:
    # Patterns that go back and forth would take longer than a test may.
    logs.masked("&" + piece * 200_000)


HOSTILE = "orders\n2026-01-01T00:00:00Z [info] forged\r\x1b[2J\x00\x9b\u2028\u202e"


@pytest.mark.parametrize("form", ["json", "console"])
def test_foreign_text_cannot_start_a_log_line(start: Callable[..., io.StringIO], form: str) -> None:
    stream = start(form)
    log().info(HOSTILE, namespace=HOSTILE, deep=[HOSTILE])
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert all(character.isprintable() for character in text[:-1])


def test_console_traceback_is_indented_without_control_characters(
    start: Callable[..., io.StringIO],
) -> None:
    stream = start("console")
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        log().exception("failed")
    first, *rest = stream.getvalue().removesuffix("\n").split("\n")
    assert "failed" in first
    assert len(rest) > 3
    assert all(line.startswith("  ") and line.isprintable() for line in rest)


def test_summary_of_omitted_lines_is_logged_once_a_second() -> None:
    now = [5.0]
    sampled = logs.Sampled(lambda: now[0])
    assert [sampled.allow() for _ in range(100)] == [{}, *[None] * 99]
    now[0] = 6.0
    assert [sampled.allow() for _ in range(3)] == [{"left_out": 99}, None, None]
    now[0] = 99.0
    assert sampled.allow() == {"left_out": 2}
    now[0] = 100.0
    assert sampled.allow() == {}


# --- the documentation --------------------------------------------------------------------------------------------

LEVELS = {"info": "info", "warning": "warning", "error": "error", "exception": "error"}


def events_of(source: str) -> set[tuple[str, str]]:
    """Return the events that a module logs, with their levels."""
    found = set()
    for call in ast.walk(ast.parse(source)):
        match call:
            case ast.Call(func=ast.Attribute(ast.Name("log" | "_log"), level), args=[first, *_]) if level in LEVELS:
                texts = [each.value for each in ast.walk(first) if isinstance(each, ast.Constant)]
                found |= {(text, LEVELS[level]) for text in texts if isinstance(text, str) and text != "ok"}
    return found


def test_documentation_lists_every_event_with_its_level() -> None:
    root = Path(__file__).parents[2]
    logged = set().union(*(events_of(each.read_text("utf-8")) for each in (root / "src/mintage/server").rglob("*.py")))
    logged |= {(kind, "warning") for kind in REFUSALS.values()}
    page = (root / "docs/how-to/observe.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.+?`) \| (info|warning|error) \|", page, re.MULTILINE)
    assert {(event, level) for names, level in rows for event in re.findall(r"`([^`]+)`", names)} == logged
