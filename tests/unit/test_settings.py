"""Tests of the settings of the service: their sources, their precedence, and errors about wrong ones."""

from __future__ import annotations

import json
import math
import os
import pickle
import re
import shlex
import subprocess
import sys
import traceback
from dataclasses import MISSING
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mintage.cli import load, main
from mintage.errors import ConfigError
from mintage.server.config.keys import RIGHTS, KeySettings, digest
from mintage.server.config.settings import Settings
from mintage.server.config.sources import OTHER_VARIABLES, flag, variable
from mintage.server.config.values import settings_of
from tests.helpers.processes import closed_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mintage.server.config.values import Setting

ROOT = Path(__file__).parents[2]
RECORD = json.loads((Path(__file__).parent / "settings.json").read_text("utf-8"))
"""The defaults, the help in 100 columns, and errors of wrong values; ``{hash}`` is a key's, ``{path}`` the file's."""
PAGE = ROOT / "docs" / "reference" / "settings.md"
HASH = digest("mint_somebody")
OTHER_HASH = digest("mint_somebody_else")
ALL = settings_of(Settings)
WORDS = [name for name, each in ALL.items() if not each.is_table]
HEADINGS = [each.heading for each in ALL.values() if each.heading]


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("MINTAGE_"):
            monkeypatch.delenv(name)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that writes a configuration file and returns its path."""

    def make(text: str) -> str:
        path = tmp_path / "mintage.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return make


def settings_error(*argv: str, code: str = "config.setting") -> str:
    """Return the error of a wrong command line."""
    with pytest.raises(ConfigError) as caught:
        Settings.load(argv)
    assert caught.value.code == code
    return str(caught.value)


# --- sources ----------------------------------------------------------------------------------------------------------


def test_default_settings_serve_this_machine_only() -> None:
    settings = Settings.load([])
    assert settings == Settings()
    assert settings.addresses == {"http": ("127.0.0.1", 8080), "redis": ("127.0.0.1", 6380)}
    assert (settings.workers, settings.has_keys, settings.creates, settings.insecure) == (1, False, True, False)
    assert settings.fallback == "none"


def test_options_override_the_environment_and_that_the_file(
    monkeypatch: pytest.MonkeyPatch, write: Callable[[str], str]
) -> None:
    path = write("workers = 2\ngrace_ms = 2\nrate = 2\n")
    monkeypatch.setenv("MINTAGE_WORKERS", "3")
    monkeypatch.setenv("MINTAGE_GRACE_MS", "3")
    settings = Settings.load(["--config", path, "--workers", "4"])
    assert (settings.workers, settings.grace_ms, settings.rate, settings.burst) == (4, 3, 2, 0)


def test_environment_and_option_can_name_the_file(
    monkeypatch: pytest.MonkeyPatch, write: Callable[[str], str], tmp_path: Path
) -> None:
    monkeypatch.setenv("MINTAGE_CONFIG", write("workers = 2"))
    assert Settings.load([]).workers == 2
    (tmp_path / "other.toml").write_text("grace_ms = 7")
    settings = Settings.load(["--config", str(tmp_path / "other.toml")])
    assert (settings.workers, settings.grace_ms) == (1, 7)


@pytest.mark.parametrize("name", WORDS)
def test_every_setting_has_an_option_a_variable_and_a_key(
    name: str, monkeypatch: pytest.MonkeyPatch, write: Callable[[str], str]
) -> None:
    file = write("")
    value: Any = {
        "config": file,
        "store": "redis://cache",
        "http": "[::1]:0",
        "redis": "localhost:1",
        "insecure": True,
        "auto_create": False,
        "trace_header": "X-Request-Id",
        "snowflake_layout": "twitter",
        "snowflake_nodes": "0..15, 32-47,900",
        "fallback": "random",
        "log_format": "json",
        "log_level": "error",
        "access_log": "all",
        "console": "off",
    }.get(name, file if name.startswith("tls_") else 5000)
    value = 7 if name == "workers" else value
    # TLS needs its files together.
    others = {f"tls_{each}": file for each in ("cert", "key")} if name.startswith("tls_") else {}
    others.pop(name, None)
    rest = [word for each in others for word in (flag(each), file)]

    def read(settings: Settings) -> Any:
        return settings.store_url if name == "store" else getattr(settings, name)

    opposite = f"--no-{flag(name)[2:]}"
    word = [flag(name)] if value is True else [opposite] if value is False else [flag(name), str(value)]
    assert read(Settings.load([*rest, *word])) == value
    with monkeypatch.context() as patched:
        patched.setenv(variable(name), str(value))
        assert read(Settings.load(rest)) == value
        patched.setenv(variable(name), "")
        assert read(Settings.load([])) == read(Settings())
    if name != "config":
        path = write(f"{name} = {json.dumps(value)}")
        assert read(Settings.load(["--config", path, *rest])) == value


def test_file_has_keys_and_rates_of_namespaces(write: Callable[[str], str]) -> None:
    path = write(f"""
        http = "0.0.0.0:8080"
        rates = {{ orders = 5000, "a.b" = 0 }}
        [keys.shop]
        hash = "{HASH}"
        rights = {{ "orders*" = ["next", "describe"], "sno" = ["mint"] }}
        rate = 100
        [keys."ops@example"]
        hash = "{OTHER_HASH}"
        rights = {{ "*" = ["admin"] }}
    """)
    settings = Settings.load(["--config", path])
    assert settings.rates == {"orders": 5000, "a.b": 0}
    shop = settings.keys["shop"]
    assert (shop.hash, shop.rate, shop.burst) == (HASH, 100, 0)
    assert shop.rights == {"orders*": ["next", "describe"], "sno": ["mint"]}
    assert settings.keys["ops@example"].rights == {"*": ["admin"]}
    assert settings.has_keys
    assert not settings.creates


def test_namespaces_are_created_without_keys_or_if_enabled(write: Callable[[str], str]) -> None:
    path = write(f'[keys.shop]\nhash = "{HASH}"')
    assert Settings.load([]).creates
    assert not Settings.load(["--no-auto-create"]).creates
    assert not Settings.load(["--config", path]).creates
    assert Settings.load(["--config", path, "--auto-create"]).creates


def test_default_store_is_the_registry_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MINTAGE_HOME", str(tmp_path / "home"))
    settings = Settings.load([])
    assert settings.store_url == f"sqlite:///{tmp_path}/home/registry.db"
    with settings.open_store() as store:
        assert store.now_ms() > 0
    with Settings(store="memory:").open_store() as store:
        assert store.describe().promise == "process"


def test_constructor_reads_only_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINTAGE_WORKERS", "5")
    monkeypatch.setenv("MINTAGE_NONSENSE", "5")
    assert Settings(http="off").workers == 1


def test_other_variables_of_mintage_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OTHER_VARIABLES:
        monkeypatch.setenv(name, "/somewhere")
    assert Settings.load([]) == Settings()


def test_list_of_other_variables_is_complete() -> None:
    files = [
        *(ROOT / "src").rglob("*.py"),
        *(path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)),
        ROOT / "Makefile",
        ROOT / ".ci" / "run",
    ]
    # Names in quotes, or set by a shell.
    said = r'(?:"|^export |^\t)(MINTAGE_[A-Z_]+)(?:"|=)'
    read = {name for path in files for name in re.findall(said, path.read_text(encoding="utf-8"), re.MULTILINE)}
    assert set(OTHER_VARIABLES) <= read
    assert read - set(OTHER_VARIABLES) <= {variable(name) for name in WORDS}


def test_kubernetes_service_called_mintage_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    links = {
        "MINTAGE_SERVICE_HOST": "10.0.0.7",
        "MINTAGE_SERVICE_PORT": "8080",
        "MINTAGE_SERVICE_PORT_HTTP": "8080",
        "MINTAGE_PORT": "tcp://10.0.0.7:8080",
        "MINTAGE_PORT_8080_TCP": "tcp://10.0.0.7:8080",
        "MINTAGE_PORT_8080_TCP_ADDR": "10.0.0.7",
        "MINTAGE_REDIS_SERVICE_HOST": "10.0.0.8",
        "MINTAGE_REDIS_PORT": "tcp://10.0.0.8:6380",
    }
    for name, value in links.items():
        monkeypatch.setenv(name, value)
    assert Settings.load([]) == Settings()
    monkeypatch.setenv("MINTAGE_HTTP_PORT", "8080")
    assert "MINTAGE_HTTP_PORT" in settings_error()


# --- wrong values -----------------------------------------------------------------------------------------------------


def test_wrong_values_have_the_recorded_errors(
    subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch, write: Callable[[str], str]
) -> None:
    for case in RECORD["errors"]:
        path = write(case.get("file", "").replace("{hash}", HASH))
        argv = [word.replace("{path}", path) for word in case.get("line", [])]
        with subtests.test(case["error"]), monkeypatch.context() as patched:
            for name, value in case.get("environment", {}).items():
                patched.setenv(name, value)
            message = settings_error(
                *(["--config", path] if "file" in case else []), *argv, code=case.get("code", "config.setting")
            )
            assert message == case["error"].replace("{path}", path)


def test_file_in_a_closed_directory_is_denied_not_missing(tmp_path: Path) -> None:
    with closed_directory(tmp_path) as closed:
        message = settings_error("--config", str(closed / "mintage.toml"))
    assert message.endswith("cannot be read: Permission denied")


KEY = f'[keys.web]\nhash = "{HASH}"\n'
# CPython 3.15 bounds the parts of a key itself.
TOO_DEEP = (
    "cannot be read: TOML key has" if sys.version_info >= (3, 15) else "rates.a = a table of thousands of tables in"
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"workers = 0x{'f' * 9000}", "workers = a number of thousands of digits in"),
        ("workers", "cannot be read: Expected '=' after a key"),
        ("workers = 1\nworkers = 2", "cannot be read: Cannot overwrite a value"),
        (f"a = {'[' * 100_000}", "cannot be read: maximum recursion depth exceeded"),
        (f"rates.{'a.' * 5000}a = 1", TOO_DEEP),
    ],
    ids=lambda each: each[:60],
)
def test_malformed_file_is_refused_in_one_line(text: str, reason: str, write: Callable[[str], str]) -> None:
    message = settings_error("--config", write(text))
    assert reason in message
    assert "\n" not in message


def test_path_of_a_wrong_file_is_shown_completely(tmp_path: Path) -> None:
    (tmp_path / ("x" * 200)).mkdir()
    path = tmp_path / ("x" * 200) / "mintage.toml"
    path.write_text("wrkers = 5", "utf-8")
    assert f"there is no setting wrkers in '{path}'" in settings_error("--config", str(path))


def test_mark_of_utf_8_at_the_beginning_of_a_file_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "mintage.toml"
    path.write_bytes(b'\xef\xbb\xbfworkers = 3\r\nhttp = "off"\r\n')
    assert Settings.load(["--config", str(path)]).workers == 3


def test_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mintage.toml").write_bytes(b"store = '\xff'")
    assert "cannot be read: 'utf-8' codec can't decode" in settings_error("--config", str(tmp_path / "mintage.toml"))


def test_value_that_takes_no_effect_is_not_checked(
    monkeypatch: pytest.MonkeyPatch, write: Callable[[str], str]
) -> None:
    monkeypatch.setenv("MINTAGE_WORKERS", "99")
    assert Settings.load(["--config", write("workers = 97"), "--workers", "1"]).workers == 1


@pytest.mark.parametrize("address", ["0.0.0.0:80", "[::]:80", "192.0.2.1:0", "example.org:80", "[::ffff:192.0.2.1]:1"])
@pytest.mark.parametrize("name", ["http", "redis"])
def test_serving_other_machines_needs_keys_or_insecure(name: str, address: str, write: Callable[[str], str]) -> None:
    message = settings_error(flag(name), address, code="config.insecure")
    assert message.startswith(f"{name} {address} can be reached from beyond this machine")
    assert Settings.load([flag(name), address, "--insecure"]).insecure
    assert Settings.load([flag(name), address, "--config", write(KEY)]).has_keys


@pytest.mark.parametrize("address", ["127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "localhost:80", "off"])
def test_this_machine_is_served_without_keys(address: str) -> None:
    assert Settings.load(["--http", address]).http == address


# --- any command line -------------------------------------------------------------------------------------------------

TEXTS = st.text(max_size=40) | st.from_regex(r"\A[-0-9a-z:.\[\]{},\"']{0,20}\Z") | st.integers().map(str)
SCALARS = st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
)


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {toml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def is_settings_or_one_sentence(*argv: str) -> None:
    try:
        Settings.load(argv)
    except ConfigError as error:
        refusal = error
    else:
        return
    assert refusal.code in {"config.setting", "config.insecure"}
    assert str(refusal).isprintable()
    assert 10 < len(str(refusal)) < 400


@given(name=st.sampled_from(WORDS), text=TEXTS)
def test_any_text_on_the_command_line_gives_settings_or_one_line(name: str, text: str) -> None:
    is_settings_or_one_sentence(f"{flag(name)}={text}")


@given(words=st.lists(st.sampled_from([flag(name) for name in WORDS]) | TEXTS.filter(lambda text: text != "-h")))
def test_any_words_give_settings_or_one_line(words: list[str]) -> None:
    is_settings_or_one_sentence(*words)


@given(
    name=st.sampled_from([variable(each) for each in ALL]) | st.from_regex(r"\AMINTAGE_[A-Z0-9_]{0,20}\Z"),
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
)
def test_any_variable_gives_settings_or_one_line(name: str, text: str) -> None:
    with patch.dict(os.environ, {name: text}):
        is_settings_or_one_sentence()


@given(name=st.sampled_from([*ALL, "keys.web", "rates.orders"]), value=VALUES)
def test_any_value_in_the_file_gives_settings_or_one_line(
    name: str, value: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "value.toml"
    path.write_text(f"{name} = {toml(value)}", encoding="utf-8")
    is_settings_or_one_sentence("--config", str(path))


@given(
    name=st.sampled_from([*settings_of(KeySettings), "frob"]),
    value=VALUES | st.dictionaries(st.text(max_size=5), st.lists(st.sampled_from(sorted(RIGHTS)))),
)
def test_any_value_of_a_key_gives_settings_or_one_line(
    name: str, value: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "key.toml"
    rest = "" if name == "hash" else KEY.partition("\n")[2]
    path.write_text(f"[keys.web]\n{rest}{name} = {toml(value)}", encoding="utf-8")
    is_settings_or_one_sentence("--config", str(path))


@given(data=st.binary(max_size=60))
def test_any_file_gives_settings_or_one_line(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.toml"
    path.write_bytes(data)
    is_settings_or_one_sentence("--config", str(path))


# --- secrets ----------------------------------------------------------------------------------------------------------

SECRET = "s3cr3t"


@given(before=st.text(max_size=20), after=st.text(max_size=20))
def test_errors_do_not_show_the_url_of_the_store(before: str, after: str) -> None:
    text = f"{before}{SECRET}{after}"
    for argv in ([f"--store={text}"], ["--store", f"redis://:{SECRET}@h{after}"], [f"--stor={text}"], ["x", text]):
        try:
            told = repr(Settings.load(argv))
        except ConfigError as error:
            told = "".join(traceback.format_exception(error))
        assert SECRET not in told


@pytest.mark.parametrize(
    "text",
    [
        f"store = 'redis//{SECRET}'",
        f"store = ['{SECRET}']",
        f"keys = 'mint_{SECRET}'",
        f"keys.web = 'mint_{SECRET}'",
        f"keys.web.hash = 'mint_{SECRET}'",
        f"keys.web.key = 'mint_{SECRET}'",
        f"[keys.mint_{SECRET}]",
        f"[keys.mint_{SECRET}]\nhash = '{HASH}'",
        f"keys = ['mint_{SECRET}']",
        f"mint_{SECRET} = 5",
    ],
)
def test_errors_do_not_show_the_value_of_a_secret(text: str, write: Callable[[str], str]) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.load(["--config", write(text)])
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_repr_shows_neither_store_password_nor_key_hash(write: Callable[[str], str]) -> None:
    settings = Settings.load(["--config", write(KEY), "--store", f"redis://:{SECRET}@cache"])
    for text in (repr(settings), str(settings), f"{settings}", repr(settings.keys)):
        assert SECRET not in text
        assert HASH[7:] not in text
    assert settings.store_url == f"redis://:{SECRET}@cache"


# --- workers ----------------------------------------------------------------------------------------------------------


def test_settings_survive_pickling(write: Callable[[str], str]) -> None:
    settings = Settings.load(["--config", write(KEY), "--store", "redis://:pw@cache", "--http", "0.0.0.0:80"])
    assert pickle.loads(pickle.dumps(settings)) == settings
    script = "import pickle, sys; s = pickle.load(sys.stdin.buffer); print(s.store_url, s.http, s.keys['web'].hash)"
    done = subprocess.run(
        [sys.executable, "-c", script], input=pickle.dumps(settings), capture_output=True, timeout=60, check=True
    )
    assert done.stdout.decode().split() == ["redis://:pw@cache", "0.0.0.0:80", HASH]


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="workers"):
        Settings().workers = 2  # type: ignore[misc]


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def help_of_serve(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["serve", "--help"]) == 0
    return capsys.readouterr().out


def test_help_and_defaults_are_as_recorded(help_of_serve: str) -> None:
    assert help_of_serve.splitlines() == RECORD["help"]
    assert {name: getattr(Settings(), name) for name in ALL} == RECORD["defaults"]


def test_help_has_every_setting_with_limits_and_default(help_of_serve: str) -> None:
    lines = [line for line in help_of_serve.splitlines() if line.startswith("  --")]
    assert [line.split()[0] for line in lines] == [flag(name) for name in WORDS]
    for line in lines:
        name = line.split()[0][2:].replace("-", "_")
        info = ALL[name]
        assert str(info.description) in line
        if name != "insecure":
            assert line.endswith(f"default: {info.values.unset or info.default})")
        if info.values.limits:
            assert f"({info.values.limits};" in line
            assert info.values.text.endswith(info.values.limits)
    assert all(len(line) < 100 for line in help_of_serve.splitlines())
    assert help_of_serve.isascii()


@pytest.mark.parametrize("line", load("serve").examples.strip().splitlines())
def test_examples_of_serve_are_valid_settings(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mintage.toml").write_text(KEY)
    program, command, *words = shlex.split(line)
    assert (program, command) == ("mintage", "serve")
    Settings.load(words)


def test_wrong_setting_exits_with_78(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--workers", "65"]) == 78
    assert capsys.readouterr().err == "mintage: --workers 65 is not a whole number in 1..64\n"
    assert main(["serve", "--http", "0.0.0.0:80"]) == 78


@pytest.mark.parametrize(("package", "words"), [("starlette", []), ("uvloop", ["--workers", "2"])], ids=str)
def test_missing_extra_is_reported_with_its_command(package: str, words: list[str]) -> None:
    script = f"import sys; sys.modules[{package!r}] = None; from mintage.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", script, "serve", *words], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (78, b"")
    assert done.stderr.decode() == f"mintage: the service needs the package {package}: pip install 'mintage[server]'\n"


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_help_is_complete_without_the_extra(word: str, help_of_serve: str) -> None:
    script = (
        "import sys; sys.modules |= dict.fromkeys(('httptools', 'msgspec', 'starlette', 'structlog', 'uvloop')); "
        "from mintage.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run([sys.executable, "-c", script, "serve", word], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr, done.stdout.decode()) == (0, b"", help_of_serve)


def test_other_commands_do_not_import_the_service() -> None:
    script = (
        "import sys; from mintage.cli import main; main(['new', 'sno', '--partition', '1']); "
        "sys.exit(any(name.startswith(('mintage.server', 'starlette')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False).returncode == 0


# --- the page ---------------------------------------------------------------------------------------------------------


def rows(fields: dict[str, Setting]) -> Iterator[list[str]]:
    """Return the rows that the page must have for settings, without their meaning."""
    for name, info in fields.items():
        how = info.values
        default = "must be there" if info.default is MISSING else "none" if info.default == {} else f"`{info.default}`"
        default = how.unset or ("`false`" if info.default is False else default)
        if "hash" in fields:
            yield [f"`{name}`", default, how.text]
        elif info.is_table:
            yield [f"`{name}`", "file only", "file only", default, how.text]
        else:
            yield [f"`{name}`", f"`{flag(name)}`", f"`{variable(name)}`", default, how.text]


def table(heading: str) -> list[list[str]]:
    """Return the rows of the table below a heading of the page."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_page_lists_exactly_the_settings() -> None:
    found = []
    for heading in HEADINGS:
        rows_of_heading = table(heading[0].upper() + heading[1:])
        assert ALL[rows_of_heading[0][0].strip("`")].heading == heading
        found += rows_of_heading
    assert [row[:-1] for row in found] == list(rows(ALL))
    assert all(len(row[-1]) > 10 for row in found)


def test_page_describes_every_field_of_a_key() -> None:
    found = table("Keys")
    fields = [row for row in found if len(row) == 4]
    assert [row[:-1] for row in fields] == list(rows(settings_of(KeySettings)))
    assert [row for row in found if len(row) == 2] == [[f"`{right}`", meaning] for right, meaning in RIGHTS.items()]


def test_configuration_file_of_the_page_is_valid(write: Callable[[str], str], tmp_path: Path) -> None:
    block = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).touch()
    settings = Settings.load(["--config", write(block[1].replace("/etc/mintage", str(tmp_path)))])
    assert list(settings.keys) == ["shop", "operator"]
    assert settings.rates == {"reports": 100}
