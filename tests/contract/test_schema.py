"""Tests of ``postgresql://…?schema=mintage``: the tables in a schema of their own; and of URLs without it."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest

from mintage.rules import SPAN_MS
from mintage.store import open_store
from mintage.store.sql.base import Database
from tests.helpers.outcomes import code_of
from tests.helpers.sql_servers import refusal_text
from tests.helpers.stores import acquire, extend, patient, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import PostgreSQL


@pytest.fixture
def url(postgresql: PostgreSQL) -> Iterator[str]:
    """Return the URL of a store in the schema ``ids``, which does not exist yet."""
    yield f"{postgresql.url}?schema=ids"
    postgresql.sql("DROP SCHEMA IF EXISTS ids, other CASCADE")


def move(postgresql: PostgreSQL) -> None:
    """Move the tables into the schema ``ids``, as the documentation says."""
    postgresql.sql(
        "CREATE SCHEMA ids AUTHORIZATION mintage; ALTER VIEW mintage_existed SET SCHEMA ids; "
        + "".join(
            f"ALTER TABLE mintage_{kind} SET SCHEMA ids;"
            for kind in ("schema", "pool", "node", "grant", "namespace", "name", "run")
        )
    )


@contextmanager
def role(postgresql: PostgreSQL, name: str, rights: str = "") -> Iterator[str]:
    """Create an account with these rights and return its URL."""
    postgresql.sql(f"CREATE ROLE {name} LOGIN PASSWORD 'x'; {rights}")
    try:
        yield f"postgresql://{name}:x@{postgresql.url.rpartition('@')[2]}?schema=ids"
    finally:
        postgresql.sql(f"DROP OWNED BY {name}; DROP ROLE {name};")


def test_tables_are_in_the_schema_of_the_url(postgresql: PostgreSQL, url: str) -> None:
    with open_store(patient(url)) as store:
        assert store.reserve("n", 10).last == 10
        lease = acquire(store, nodes=range(4))
        assert acquire(store, nodes=range(4)).node == 1
        extended = extend(store, lease)
        store.release(extended, used_until_ms=extended.floor_ms)
        store.revoke("p", 1)
        store.create_pool("q", layout="test", span_ms=SPAN_MS)
        store.create_namespace("m")
        store.raise_floor("n", 50)
        store.retire("m")
        assert [len(each) for each in (store.list_pools(), store.list_leases(), store.list_namespaces())] == [2, 2, 2]
        assert len(store.list_leases("p")) == 2
        described = store.describe()
        assert described.server.endswith(", schema ids")
        assert described.warnings == ()
    where = "SELECT DISTINCT relnamespace::regnamespace FROM pg_class WHERE relname LIKE 'mintage_%'"
    assert postgresql.sql(where).split() == ["ids"]


def test_store_with_a_schema_is_another_than_that_without(postgresql: PostgreSQL, url: str) -> None:
    with (
        open_store(patient(postgresql.url)) as usual,
        open_store(patient(url)) as own,
        open_store(patient(url.replace("ids", "other"))) as other,
    ):
        assert [store.reserve("n", 1).first for store in (usual, own, other, own)] == [1, 1, 1, 2]
        assert len({store.describe().identity for store in (own, usual, other)}) == 3


def test_concurrent_starts_create_one_schema(url: str) -> None:
    with open_store(patient(url)) as first, open_store(patient(url)) as second:
        assert {first.reserve("n", 1).first, second.reserve("n", 1).first} == {1, 2}


def test_schema_needs_no_search_path_or_session_setting(postgresql: PostgreSQL, url: str) -> None:
    # So it goes on behind a pooler that gives each transaction another connection.
    with open_store(patient(url)) as store:
        store.reserve("n", 1)
        postgresql.sql("ALTER ROLE mintage SET search_path = ''")
        try:
            store.close()
            assert store.reserve("n", 1).first == 2
            assert acquire(store).node == 0
            assert store.describe().warnings == ()
        finally:
            postgresql.sql("ALTER ROLE mintage RESET search_path")


def test_tables_can_be_moved_into_a_schema(postgresql: PostgreSQL, url: str) -> None:
    with open_store(patient(postgresql.url)) as before:
        before.reserve("n", 10)
        identity = before.describe().identity
    move(postgresql)
    with open_store(patient(url)) as after:
        assert after.reserve("n", 1).first == 11
        assert after.describe().identity == identity


def test_table_of_another_schema_is_another_server(postgresql: PostgreSQL, url: str) -> None:
    with open_store(patient(postgresql.url)) as store, open_store(patient(url)) as other:
        store.reserve("n", 10)
        other.reserve("n", 10)
        identity = store.describe().identity
        postgresql.sql("DROP TABLE mintage_namespace; ALTER TABLE ids.mintage_namespace SET SCHEMA public")
        assert store.describe().identity != identity
        assert store.reserve("n", 1).first > 100


def test_dropped_tables_are_noticed_in_a_schema_too(postgresql: PostgreSQL, url: str) -> None:
    with open_store(patient(url)) as store:
        store.reserve("n", 10)
        postgresql.sql(
            "DROP TABLE "
            + ", ".join(
                f"ids.mintage_{kind}" for kind in ("schema", "pool", "node", "grant", "namespace", "name", "run")
            )
        )
        assert "has lost namespaces" in refusal_text(lambda: store.reserve("n", 1))
        [said] = store.describe().warnings
        postgresql.sql(said.partition("then run: ")[2])
        assert store.describe().warnings == ()
        postgresql.sql("DROP SCHEMA ids CASCADE")
        assert store.reserve("n", 1).first == 1


def test_account_with_the_least_rights_is_enough(postgresql: PostgreSQL, url: str) -> None:
    with open_store(patient(url)) as store:
        prepare(store)
    rights = (
        "GRANT USAGE ON SCHEMA ids TO clerk; GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA ids TO clerk;"
        "GRANT DELETE ON ids.mintage_grant, ids.mintage_run TO clerk;"
    )
    with role(postgresql, "clerk", rights) as clerks, open_store(patient(clerks)) as clerk:
        assert clerk.reserve("n", 1).first == 1
        assert acquire(clerk).node == 0
        assert clerk.describe().warnings == ()


def test_owner_of_the_schema_may_create_the_tables(postgresql: PostgreSQL, url: str) -> None:
    assert url
    with (
        role(postgresql, "owner", "CREATE SCHEMA ids AUTHORIZATION owner;") as owners,
        open_store(patient(owners)) as owner,
    ):
        assert owner.reserve("n", 1).first == 1


def test_account_without_rights_gets_the_remedy(postgresql: PostgreSQL, url: str) -> None:
    with role(postgresql, "guest") as guests, open_store(patient(guests)) as guest:
        assert "connect once with an account that may" in refusal_text(lambda: guest.reserve("n", 1))
        with open_store(patient(url)) as store:
            prepare(store)
        assert "USAGE on their schema" in refusal_text(lambda: guest.reserve("n", 1))


# --- the schema that a URL does not name ------------------------------------------------------------------------------


@contextmanager
def own_schema(postgresql: PostgreSQL) -> Iterator[str]:
    """Create the schema with the account's name, which is first in its search path; return the URL that names it."""
    postgresql.sql("CREATE SCHEMA mintage AUTHORIZATION mintage")
    try:
        yield f"{postgresql.url}?schema=mintage"
    finally:
        postgresql.sql("DROP SCHEMA IF EXISTS mintage CASCADE")


def test_store_keeps_its_schema_when_another_comes_before_it(postgresql: PostgreSQL) -> None:
    with open_store(patient(postgresql.url)) as running:
        assert running.reserve("n", 5000).last == 5000
        with own_schema(postgresql) as named:
            running.close()
            with open_store(patient(postgresql.url)) as started:
                assert running.reserve("n", 1).first == 5001
                assert started.reserve("n", 1).first == 5002
            with open_store(patient(named)) as other:
                other.reserve("n", 1)
            assert running.reserve("n", 1).first == 5003
            assert running.describe().server.endswith(", schema public")


def test_two_schemas_of_a_search_path_are_refused(postgresql: PostgreSQL) -> None:
    with open_store(patient(postgresql.url)) as store:
        store.reserve("n", 1)
    with own_schema(postgresql) as named:
        with open_store(patient(named)) as other:
            other.reserve("n", 1)
        with open_store(patient(postgresql.url)) as store:
            for verb in (lambda: store.reserve("n", 1), store.list_namespaces, store.describe, store.now_ms):
                said = refusal_text(verb, "config.store")
                assert "mintage and public" in said
                assert "?schema=" in said
        with open_store(f"{patient(postgresql.url)}&schema=public") as store:
            assert store.reserve("n", 1).first == 2


def test_schema_without_rights_is_not_passed_over(postgresql: PostgreSQL) -> None:
    with own_schema(postgresql), open_store(patient(postgresql.url)) as running:
        assert running.reserve("n", 5000).last == 5000
        assert running.describe().server.endswith(", schema mintage")
        postgresql.sql("ALTER SCHEMA mintage OWNER TO postgres; REVOKE ALL ON SCHEMA mintage FROM mintage, PUBLIC")
        with open_store(patient(postgresql.url)) as started:
            for store in (running, started):
                assert "USAGE on their schema" in refusal_text(partial(store.reserve, "n", 1))
                refusal_text(store.list_namespaces)
        postgresql.sql("GRANT USAGE ON SCHEMA mintage TO mintage")
        assert running.reserve("n", 1).first == 5001


def test_running_store_keeps_its_schema_whatever_the_search_path(postgresql: PostgreSQL) -> None:
    postgresql.sql("CREATE SCHEMA later AUTHORIZATION mintage")
    try:
        with open_store(patient(postgresql.url)) as running:
            running.reserve("n", 10)
            postgresql.sql("ALTER ROLE mintage SET search_path = later")
            running.close()
            assert running.reserve("n", 1).first == 11
            with open_store(patient(postgresql.url)) as started:
                assert "?schema=public" in refusal_text(lambda: started.reserve("n", 1), "config.store")
    finally:
        postgresql.sql("ALTER ROLE mintage RESET search_path; DROP SCHEMA later CASCADE")


def test_tables_that_were_moved_are_not_created_again(postgresql: PostgreSQL, url: str) -> None:
    with open_store(patient(postgresql.url)) as running:
        running.reserve("n", 10)
        move(postgresql)
        with open_store(patient(postgresql.url)) as forgotten:
            for store in (running, forgotten):
                assert "schema ids" in refusal_text(partial(store.reserve, "n", 1), "config.store")
    with open_store(patient(url)) as after:
        assert after.reserve("n", 1).first == 11


@pytest.mark.parametrize("name", ["Große Firma", "a.b", "a,b", "$1"])
def test_schema_of_the_search_path_may_have_any_name(postgresql: PostgreSQL, name: str) -> None:
    postgresql.sql(f'CREATE SCHEMA "{name}" AUTHORIZATION mintage; ALTER ROLE mintage SET search_path = "{name}"')
    try:
        for integer in (1, 2):
            with open_store(patient(postgresql.url)) as store:
                assert store.reserve("n", 1).first == integer
                assert store.describe().server.endswith(f", schema {name}")
    finally:
        postgresql.sql(f'ALTER ROLE mintage RESET search_path; DROP SCHEMA "{name}" CASCADE')


def test_schema_whose_creation_failed_is_not_kept(postgresql: PostgreSQL) -> None:
    postgresql.sql("REVOKE ALL ON SCHEMA public FROM mintage; ALTER SCHEMA public OWNER TO postgres")
    with open_store(patient(postgresql.url)) as store:
        refusal_text(lambda: store.reserve("n", 1))
        with own_schema(postgresql):
            assert store.reserve("n", 1).first == 1
            assert store.describe().server.endswith(", schema mintage")


def test_session_of_a_pooler_cannot_divert_a_store(postgresql: PostgreSQL) -> None:
    # A pooler in transaction mode lends sessions in which other clients set a search path.
    with open_store(patient(postgresql.url)) as store:
        assert isinstance(store, Database)
        store.reserve("n", 10)
        with own_schema(postgresql):
            with store.transaction("SET search_path = mintage, public"):
                pass
            assert store.reserve("n", 1).first == 11
            assert acquire(store).node == 0
            assert store.describe().server.endswith(", schema public")


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["order", "_", "a" * 63])
def test_schema_name_may_be_long_or_an_sql_keyword(postgresql: PostgreSQL, url: str, name: str) -> None:
    try:
        with open_store(patient(url.replace("ids", name))) as store:
            assert store.reserve("n", 1).first == 1
            assert store.describe().server.endswith(f", schema {name}")
    finally:
        postgresql.sql(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


@pytest.mark.parametrize(
    "name", ["", "Ids", "1ds", "a-b", "a.b", "a%22b", "a%20b", "gr%C3%B6%C3%9Fe", "a" * 64, "pg_ids", "a%00", "a%0A"]
)
def test_invalid_schema_name_is_refused(name: str) -> None:
    said = refusal_text(lambda: open_store(f"postgresql://u@127.0.0.1/d?schema={name}"), "config.store")
    assert "option schema" in said


@pytest.mark.parametrize("scheme", ["mysql", "mariadb"])
def test_other_stores_have_no_schema_option(scheme: str) -> None:
    assert code_of(lambda: open_store(f"{scheme}://u@127.0.0.1/d?schema=ids")) == "config.store"
