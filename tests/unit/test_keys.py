"""Tests of API keys: authentication and rights."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mintage.cli import load, main
from mintage.errors import ConfigError, RequestError
from mintage.server.config.keys import RIGHTS, Caller, Keys, KeySettings, check_key_name, check_rights, digest, new_key
from mintage.server.config.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

NAMES = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._:@-]{0,5}\Z")
PATTERNS = NAMES | NAMES.map(lambda name: f"{name}*") | st.just("*")
EVERYWHERE = [right for right in RIGHTS if right not in {"metrics", "admin"}]


def of(settings: Settings) -> Keys:
    return Keys(settings.keys, settings.workers)


def keys(**callers: str) -> Keys:
    """Return the keys of a service, by the name and the key of each caller."""
    return of(Settings(keys={name: KeySettings(hash=digest(key)) for name, key in callers.items()}))


def token_refusal(found: Keys, token: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        found.find(token)
    assert caught.value.code == "request.key"
    return caught.value


# --- keys -------------------------------------------------------------------------------------------------------------


def test_keys_are_256_random_bits() -> None:
    made = {new_key() for _ in range(1000)}
    assert len(made) == 1000
    assert all(re.fullmatch(r"mint_[A-Za-z0-9_-]{43}", key) for key in made)


def test_stored_hash_of_a_key_is_its_sha_256() -> None:
    assert digest("mint_x") == digest(b"mint_x") == f"sha256:{hashlib.sha256(b'mint_x').hexdigest()}"


def test_caller_is_found_by_a_key_as_text_or_bytes() -> None:
    shop, cart = new_key(), new_key()
    found = keys(shop=shop, cart=cart)
    assert found.find(shop).name == found.find(shop.encode()).name == "shop"
    assert found.find(cart).name == "cart"


@pytest.mark.parametrize("token", [None, "", b""])
def test_error_without_a_key_says_how_to_send_one(token: str | bytes | None) -> None:
    assert "Authorization: Bearer KEY" in str(token_refusal(keys(shop="mint_x"), token))


@given(st.text(min_size=1, max_size=300) | st.binary(min_size=1, max_size=300))
def test_any_other_token_is_refused_and_not_repeated(token: str | bytes) -> None:
    found = keys(shop=new_key())
    assert str(token_refusal(found, token)) in {
        "the key is not known",
        "the key is malformed: it is longer than 256 characters, or has some beyond ASCII",
    }


@pytest.mark.parametrize("token", ["x" * 257, b"x" * 257, "x" * 10**7, "mint_\N{SNOWMAN}", b"\xff", "\ud800"])
def test_malformed_token_is_refused_before_hashing(token: str | bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    found = keys(shop=new_key())
    monkeypatch.setattr("mintage.server.config.keys.digest", pytest.fail)
    assert "malformed" in str(token_refusal(found, token))


def test_well_formed_long_token_is_refused_as_unknown() -> None:
    assert str(token_refusal(keys(shop=new_key()), "x" * 256)) == "the key is not known"


def test_hash_of_a_key_is_no_key() -> None:
    key = new_key()
    assert str(token_refusal(keys(shop=key), digest(key))) == "the key is not known"


def test_lookup_of_a_key_hashes_once_for_any_number_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {f"caller{at}": new_key() for at in range(500)}
    found = keys(**made)
    hashed = []

    def count(key: str | bytes) -> str:
        hashed.append(key)
        return digest(key)

    monkeypatch.setattr("mintage.server.config.keys.digest", count)
    assert found.find(made["caller499"]).name == "caller499"
    assert hashed == [made["caller499"]]


# --- rights -----------------------------------------------------------------------------------------------------------


def test_without_keys_everything_but_admin_is_allowed() -> None:
    found = of(Settings())
    for token in (None, "", "mint_whatever", b"\xff"):
        caller = found.find(token)
        assert (caller.name, caller.bucket) == ("", None)
        assert {right for right in RIGHTS if caller.may(right, "orders")} == RIGHTS.keys() - {"admin"}
    with pytest.raises(
        RequestError, match=r"without keys, nobody has the right 'admin' for all names, '\*'$"
    ) as caught:
        found.find(None).check("admin", "")
    assert caught.value.code == "request.rights"


def test_key_has_the_rights_of_its_patterns_and_no_other() -> None:
    caller = Caller("shop", {"orders": ["next"], "a*": ["next", "describe"], "*": ["metrics"]})
    assert caller.may("next", "orders")
    assert caller.may("next", "a")
    assert caller.may("next", "abc")
    assert caller.may("describe", "abc")
    assert caller.may("metrics", "")
    for right, name in [
        ("next", "orders2"),
        ("next", "order"),
        ("next", "Orders"),
        ("next", ""),
        ("describe", "orders"),
        ("reserve", "orders"),
        ("metrics2", ""),
        ("admin", ""),
    ]:
        assert not caller.may(right, name)


def test_key_without_the_right_is_refused_with_its_name() -> None:
    caller = Caller("shop", {"orders": ["next"]})
    caller.check("next", "orders")
    for name, names in (("carts", "'carts'"), ("", "all names, '*'")):
        with pytest.raises(RequestError) as caught:
            caller.check("next", name)
        assert caught.value.code == "request.rights"
        assert str(caught.value) == f"the key 'shop' has no right 'next' for {names}"


def test_key_without_rights_may_do_nothing() -> None:
    caller = Caller("shop", {})
    assert not any(caller.may(right, name) for right in RIGHTS for name in ("", "orders", "*"))


def test_admin_may_do_everything() -> None:
    caller = Caller("operator", {"*": ["admin"], "orders": ["next"]})
    assert all(caller.may(right, name) for right in RIGHTS for name in ("", "orders", "sno"))


@given(
    rights=st.dictionaries(PATTERNS, st.lists(st.sampled_from(EVERYWHERE), max_size=3), max_size=4),
    name=NAMES,
    right=st.sampled_from(EVERYWHERE),
)
def test_rights_of_all_matching_patterns_add_up(rights: dict[str, list[str]], name: str, right: str) -> None:
    names = {name, *(pattern.rstrip("*") for pattern in rights), *(pattern.rstrip("*") + "x" for pattern in rights)}
    caller = Caller("shop", rights)
    for each in names - {""}:
        fits = [
            pattern for pattern in rights if pattern == each or (pattern[-1] == "*" and each.startswith(pattern[:-1]))
        ]
        assert caller.may(right, each) == any(right in rights[pattern] for pattern in fits)


@pytest.mark.parametrize("right", RIGHTS)
def test_every_right_can_be_given_for_all_names(right: str) -> None:
    check_rights("*", [right])
    assert Caller("shop", {"*": [right]}).may(right, "")


@pytest.mark.parametrize("pattern", ["", "a b", "**", "*a", "a*b", "-a", "a\n", "\N{SNOWMAN}", "a" * 129])
def test_invalid_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="is no pattern of names") as caught:
        check_rights(pattern, ["next"])
    assert caught.value.code == "config.setting"


@pytest.mark.parametrize("name", ["", "a b", "-a", "a\n", "a" * 65, "mint_a"])
def test_invalid_key_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="name of a key") as caught:
        check_key_name(name)
    assert caught.value.code == "config.setting"


# --- rates ------------------------------------------------------------------------------------------------------------


def bucket_of(workers: int = 1, **rate: int) -> Any:
    """Return the bucket of a key."""
    key = KeySettings(hash=digest("mint_x"), **rate)  # type: ignore[arg-type]
    return of(Settings(keys={"shop": key}, workers=workers)).find("mint_x").bucket


def taken(bucket: Any) -> int:
    """Return the number of requests that a bucket allows at once."""
    return next(count for count in range(10_000) if bucket.take() > 0)


def test_key_without_a_rate_has_no_bucket() -> None:
    assert bucket_of() is None
    assert bucket_of(burst=5) is None


def test_key_with_a_rate_has_a_bucket_of_its_own() -> None:
    assert taken(bucket_of(rate=1, burst=7)) == 7
    assert taken(bucket_of(rate=1)) == 1


def test_workers_share_the_rate_of_a_key() -> None:
    assert bucket_of(rate=1, workers=1).take() == 0
    bucket = bucket_of(rate=1, workers=4)
    assert bucket.take() == 0
    assert 3000 < bucket.take() <= 4000


# --- mintage keys new ------------------------------------------------------------------------------------------------


def new(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["keys", "new", *words]) == 0
    return capsys.readouterr().out


def test_printed_configuration_of_a_new_key_accepts_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    printed = new(capsys, "shop", "--right", "orders*=next,describe", "--right", "sno=mint")
    key, *others = re.findall(r"mint_\S+", printed)
    assert others == []
    lines = printed.partition("for the configuration file:\n")[2]
    assert key not in lines
    (tmp_path / "mintage.toml").write_text(lines)
    settings = Settings.load(["--config", str(tmp_path / "mintage.toml")])
    caller = of(settings).find(key)
    assert caller.name == "shop"
    assert caller.may("describe", "orders-eu")
    assert caller.may("mint", "sno")
    assert not caller.may("mint", "orders-eu")


@pytest.mark.parametrize("name", ["shop", "a.b", "user@host:1", "0", "x" * 64])
def test_printed_configuration_is_toml_for_any_name(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    facts = json.loads(new(capsys, name, "--json"))
    assert facts["name"] == name
    assert facts["hash"] == digest(facts["key"])
    assert facts["rights"] == {"*": ["next"]}
    (tmp_path / "mintage.toml").write_text(facts["toml"])
    assert of(Settings.load(["--config", str(tmp_path / "mintage.toml")])).find(facts["key"]).name == name


def test_each_run_creates_another_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert new(capsys, "shop") != new(capsys, "shop")


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["a b"], 78, "'a b' is no name of a key"),
        (["mint_x"], 78, "the name of a key begins with mint_"),
        (["shop", "--right", "next"], 2, "argument --right: 'next' is not PATTERN=RIGHT,RIGHT"),
        (["shop", "--right", "orders=fly"], 78, "'fly' is no right: use one of next, reserve"),
        (["shop", "--right", "orders="], 78, "'' is no right"),
        (["shop", "--right", "=next"], 78, "'' is no pattern of names"),
        (["shop", "--right", "orders=admin"], 78, "the right 'admin' belongs to '*', not to 'orders'"),
        (["shop", "--right", "a=next", "--right", "a=mint"], 2, "'a' has its rights twice"),
    ],
)
def test_wrong_arguments_create_no_key(
    words: list[str], status: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["keys", "new", *words]) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"mintage: {sentence}")
    assert printed.err.count("\n") == 1


def test_help_names_every_right() -> None:
    (made,) = load("keys").commands
    assert set(RIGHTS) <= set(re.findall(r"\w+", made.about))
