"""Tests of TLS connections to database servers with a private certificate authority."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mintage import open_store
from mintage.errors import MintError
from tests.helpers.stores import patient
from tests.servers.server import HOST
from tests.service.running import certificate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers import MySQL

SERVERS = ["mariadb", "mysql", "postgresql", "redis", "valkey", "etcd"]


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def refusal(url: str) -> str:
    with open_store(patient(url)) as store, pytest.raises(MintError) as caught:
        store.reserve("n", 1)
    assert caught.value.code in {"store.refused", "store.unavailable"}
    return str(caught.value).lower()


def test_certificate_of_the_configured_authority_is_accepted(server: Any) -> None:
    with open_store(patient(server.tls_url)) as store:
        store.create_pool("p", layout="test", never_used=True)
        assert store.reserve("n", 10).last == 10
        assert store.describe().promise == "shared"
        assert [pool.name for pool in store.list_pools()] == ["p"]


def test_certificate_of_another_authority_is_refused(server: Any, tmp_path: Path) -> None:
    other, _ = certificate(tmp_path, "other")
    said = refusal(server.tls_url.replace(str(server.certified().authority), other))
    assert "certificate" in said


def test_certificate_of_another_host_is_refused(server: Any) -> None:
    said = refusal(server.tls_url.replace(f"{HOST}:", "localhost:"))
    assert "certificate" in said


def test_server_without_tls_is_refused_if_the_url_asks_for_tls(mysql: MySQL) -> None:
    with mysql.without_tls():
        assert "ssl" in refusal(mysql.tls_url)
        with open_store(patient(mysql.url)) as store:
            assert store.reserve("n", 1).first == 1
