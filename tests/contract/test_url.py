"""Tests of store URLs: strict parsing, and no secret shown."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mintage.errors import ArgumentError, ConfigError, MintError
from mintage.protocol.options import read_options
from mintage.protocol.url import StoreUrl
from mintage.store import STORE_KINDS, open_store
from mintage.store.sql.mysql import MySqlOptions

SECRET = "s3cr3t-w0rd"


@pytest.mark.parametrize(
    ("url", "hosts", "user", "password", "path", "options"),
    [
        ("memory:", (), None, None, "", {}),
        ("memory:name", (), None, None, "name", {}),
        ("sqlite:///ids.db", (), None, None, "ids.db", {}),
        ("sqlite:////var/lib/ids.db", (), None, None, "/var/lib/ids.db", {}),
        ("sqlite:///a%3Fb.db?timeout_ms=5", (), None, None, "a?b.db", {"timeout_ms": "5"}),
        ("mysql://me:p%40ss%3Aw%2Frd@db:3306/ids", (("db", 3306),), "me", "p@ss:w/rd", "ids", {}),
        ("mysql://me:p:q@db/ids", (("db", None),), "me", "p:q", "ids", {}),
        ("redis://:p@h", (("h", None),), None, "p", "", {}),
        ("redis://me@h/0", (("h", None),), "me", None, "0", {}),
        ("redis://me:@h/0", (("h", None),), "me", "", "0", {}),
        ("redis+sentinel://a:1,b:2,c/service/0", (("a", 1), ("b", 2), ("c", None)), None, None, "service/0", {}),
        ("etcd://[::1]:2379,[fe80::1]", (("::1", 2379), ("fe80::1", None)), None, None, "", {}),
        ("etcd://h?prefix=a%2Fb&ca=", (("h", None),), None, None, "", {"prefix": "a/b", "ca": ""}),
        ("postgresql://h/d?x=a+b%2B", (("h", None),), None, None, "d", {"x": "a b+"}),
    ],
)
def test_url_is_split_into_its_parts(
    url: str, hosts: Any, user: str | None, password: str | None, path: str, options: dict[str, str]
) -> None:
    read = StoreUrl.parse(url)
    assert read.scheme == url.partition(":")[0]
    assert (read.hosts, read.user, read.password, read.path, read.options) == (hosts, user, password, path, options)


@pytest.mark.parametrize(
    ("url", "cache"),
    [
        (
            "mysql://h/d?cache=redis://me:p@r:6379/0?volatile=1&timeout_ms=5",
            "redis://me:p@r:6379/0?volatile=1&timeout_ms=5",
        ),
        ("mysql://h/d?timeout_ms=9&cache=redis://r/0?timeout_ms=5", "redis://r/0?timeout_ms=5"),
        ("mysql://h/d?cache=redis%3A%2F%2Fr%2F0%3Fvolatile%3D1", "redis://r/0?volatile=1"),
    ],
)
def test_cache_url_contains_a_database_url(url: str, cache: str) -> None:
    read = StoreUrl.parse(url)
    assert (read.scheme, read.path, read.cache) == ("mysql", "d", StoreUrl.parse(cache))


@pytest.mark.parametrize(
    "url",
    [
        "",
        ":",
        "/ids.db",
        "ids.db",
        "://h",
        "7z://h",
        " redis://h",
        "redis://h:port",
        "redis://h:0",
        "redis://h:65536",
        "redis://h:123456",
        "redis://h:-1",
        "redis://h:",
        "redis://a,,b",
        "redis://,",
        "redis://[::1",
        "redis://::1",
        "redis://[x]",
        "redis://a b/0",
        "redis://h?timeout_ms",
        "redis://h?a=1&a=2",
        "redis://h?a=1&&b=2",
        "redis://h#0",
        f"redis://me:{SECRET}#x@h",
        f"redis://me:{SECRET}/x@h:99999999",
    ],
)
def test_malformed_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert caught.value.code == "config.store"
    assert SECRET not in f"{caught.value} {caught.value.__cause__}"


@pytest.mark.parametrize("url", [None, 7, b"memory:", ["memory:"]])
def test_url_must_be_text(url: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        open_store(url)
    assert caught.value.code == "argument.type"


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("postgres://me:p@h/d", "postgresql://me:p@h/d"),
        ("postgresql+asyncpg://me:p@h/d", "postgresql://me:p@h/d"),
        ("postgres+psycopg://h/d?schema=ids", "postgresql://h/d?schema=ids"),
        ("mysql+pymysql://h/d", "mysql://h/d"),
        ("mariadb+mariadbconnector://h/d", "mariadb://h/d"),
        ("sqlite+aiosqlite:///f.db", "sqlite:///f.db"),
    ],
)
def test_database_url_may_name_a_driver(url: str, same: str) -> None:
    assert StoreUrl.parse(url) == StoreUrl.parse(same)


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("postgre://h/d", "postgresql"),
        ("postgre+psycopg://h/d", "postgresql"),
        ("sqlite3:///f", "sqlite"),
        ("redis+asyncio://h", "redis"),
    ],
)
def test_error_for_a_foreign_scheme_names_the_one_of_mintage(url: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=rf"did you mean {meant}\?") as caught:
        open_store(url)
    assert caught.value.code == "config.store"


@pytest.mark.parametrize(
    ("url", "part"),
    [
        (f"mysql://me:{SECRET}/x@h/d", "host or its port"),
        ("mysql://h:99999/d", "host or its port"),
        ("mysql://[::1/d", "host, in brackets,"),
        ("mysql://h/d?timeout_ms", "query"),
    ],
)
def test_error_names_the_malformed_part_of_a_url(url: str, part: str) -> None:
    with pytest.raises(ConfigError, match=f"the {part} of the store's URL is malformed") as caught:
        open_store(url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("url", ["mysql:///ids", "redis:", "etcd://", "postgresql:///ids?timeout_ms=5"])
def test_local_server_must_be_named_too(url: str) -> None:
    with pytest.raises(ConfigError, match=r"names no host: .* [a-z]+://127\.0\.0\.1/"):
        open_store(url)


def test_error_names_a_malformed_cache_url() -> None:
    with pytest.raises(ConfigError, match="option cache of the store's URL: a store's URL begins with its kind"):
        open_store("mysql://h/d?cache=foo")


@pytest.mark.parametrize("url", [f"mongodb://me:{SECRET}@h", f"mysqls://h/{SECRET}", f"x:{SECRET}", "REDIS2://h"])
def test_unknown_kind_of_store_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="memory, sqlite") as caught:
        open_store(url)
    assert caught.value.code == "config.store"
    assert SECRET not in str(caught.value)


def test_kind_of_a_store_ignores_case() -> None:
    assert type(open_store("MEMORY:")) is type(open_store("memory:"))


@pytest.mark.parametrize("kind", STORE_KINDS)
def test_no_password_or_option_is_ever_shown(kind: str) -> None:
    read = StoreUrl.parse(f"{kind}://me:{SECRET}@h:1,h:2/x?token={SECRET}&cache=redis://:{SECRET}@r")
    assert SECRET not in f"{read} {read!r}"
    assert "me:***@h:1,h:2/x?token=…&cache=…" in str(read)


def test_no_value_of_an_option_is_ever_shown() -> None:
    url = StoreUrl.parse(f"mysql://h/d?ssl_key_password={SECRET}")
    options = read_options(url, MySqlOptions)
    assert options.ssl_key_password == SECRET
    assert SECRET not in repr(options)


@pytest.mark.parametrize("url", ["mysql://h/d?write_timeout=0", "mysql://h/d?read_timeout=soon", "redis://h?tls=yes"])
def test_option_outside_its_limits_is_refused_before_any_connection(url: str) -> None:
    with pytest.raises(ConfigError, match=url.partition("?")[2].partition("=")[0]) as caught:
        open_store(url)
    assert caught.value.code == "config.store"


@pytest.mark.parametrize("kind", STORE_KINDS)
def test_unknown_option_is_refused_with_the_known_ones(kind: str) -> None:
    urls = {"memory": "memory:x", "sqlite": "sqlite:///x", "redis+sentinel": "redis+sentinel://h/service/0"}
    with pytest.raises(ConfigError, match="colour") as caught:
        open_store(
            f"{urls.get(kind, f'{kind}://h/x' if 'sql' in kind or kind == 'mariadb' else f'{kind}://h')}?colour={SECRET}"
        )
    assert caught.value.code == "config.store"
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("text", ["", "0", "60001", "-1", "1.5", "1e3", " 5", "+5", "٥", "9" * 10_000])
def test_integer_option_is_checked_against_its_limits(text: str) -> None:
    with pytest.raises(ConfigError, match=r"timeout_ms .* 1\.\.60000") as caught:
        read_options(StoreUrl("mysql", options={"timeout_ms": text}), MySqlOptions)
    assert caught.value.code == "config.store"


def test_options_have_defaults() -> None:
    options = read_options(StoreUrl("mysql"), MySqlOptions)
    assert (options.timeout_ms, options.volatile, options.connect_timeout) == (2000, False, None)
    options = read_options(StoreUrl("mysql", options={"timeout_ms": "60000", "volatile": "1"}), MySqlOptions)
    assert (options.timeout_ms, options.volatile) == (60_000, True)
    for text in ("", "2", "true", "01"):
        with pytest.raises(ConfigError, match=r"volatile .* is neither 0 nor 1"):
            read_options(StoreUrl("mysql", options={"volatile": text}), MySqlOptions)


def test_first_host_defaults_to_loopback() -> None:
    assert (StoreUrl("redis").host, StoreUrl("redis").port(6379)) == ("127.0.0.1", 6379)
    named = StoreUrl.parse("redis://a,b:7")
    assert (named.host, named.port(6379)) == ("a", 6379)


@given(
    user=st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    password=st.text(st.characters(exclude_categories=["Cs"])),
)
def test_every_password_can_be_written(user: str, password: str) -> None:
    from urllib.parse import quote

    read = StoreUrl.parse(f"mysql://{quote(user, safe='')}:{quote(password, safe='')}@h:1/d")
    assert (read.user, read.password, read.hosts, read.path) == (user, password, (("h", 1),), "d")


@given(url=st.one_of(st.text(), st.text("redis:/@?&=#%[],. \n\t1é").map("redis://".__add__)))
def test_any_text_is_a_url_or_a_config_error(url: str) -> None:
    try:
        read = StoreUrl.parse(url)
    except MintError as error:
        assert error.code == "config.store"  # noqa: PT017 (whether it is refused is not the question)
    else:
        str(read)


def test_missing_driver_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "mintage.store.etcd", raising=False)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ConfigError, match=r"httpx: pip install 'mintage\[etcd\]'") as caught:
        open_store("etcd://h")
    assert caught.value.code == "config.driver"
