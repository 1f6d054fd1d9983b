"""Tests of identity columns: a service process, and a writer that uses the protocol of the draft."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from mintage.errors import GenerationError, MintError, RequestError
from mintage.server.config.keys import new_key
from mintage.server.delta import Definitions, Spec, create
from mintage.store import open_store
from mintage.store.memory import MemoryStore
from tests.service.running import key_toml, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TABLE = "/delta/v1/catalogs/main/schemas/sales/tables/orders"


class RefusedError(Exception):
    """A refusal of the catalog: a status, the error name of the draft, and a message."""


class Writer:
    """A writer of identity columns, after the draft: it creates, reserves and drops, and gives nothing back."""

    def __init__(self, url: str, key: str = "") -> None:
        self._url = url + TABLE
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def ask(self, method: str, path: str, body: Any) -> Any:
        answer = httpx.request(method, self._url + path, json=body, headers=self._headers, timeout=30)
        if answer.is_success:
            return answer.json()
        error = answer.json()["error"]
        assert error["code"] == answer.status_code
        raise RefusedError(answer.status_code, error["type"], error["message"])

    def create(self, start: int, step: int, sequence: str = "") -> str:
        sequence = sequence or str(uuid.uuid4())
        spec = {"sequence-id": sequence, "start": start, "step": step}
        self.ask("POST", "/identities", {"sequences": [spec]})
        return sequence

    def reserve(self, sequence: str, count: int, step: int | None = None) -> range:
        wanted: dict[str, Any] = {"sequence-id": sequence, "count": count}
        if step is not None:
            wanted["step"] = step
        (found,) = self.ask("POST", "/identities/reserve", {"reservations": [wanted]})["ranges"]
        assert found["sequence-id"] == sequence
        values = range(found["range-start"], found["range-end"] + (1 if found["step"] > 0 else -1), found["step"])
        assert len(values) == count
        assert values[-1] == found["range-end"]
        return values

    def drop(self, *sequences: str) -> list[bool]:
        results = self.ask("DELETE", "/identities", {"sequence-ids": list(sequences)})["results"]
        assert [each["sequence-id"] for each in results] == list(dict.fromkeys(sequences))
        return [each["existed"] for each in results]


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writer]:
    with running(tmp_path_factory.mktemp("service")) as service:
        yield Writer(service.url)


@pytest.mark.parametrize(("start", "step"), [(1, 1), (100, 2), (0, -1), (-5, -3), (-(2**63), 7), (2**63 - 1, -(2**40))])
def test_ranges_follow_start_and_step_and_never_overlap(writer: Writer, start: int, step: int) -> None:
    sequence = writer.create(start, step)
    values = [value for count in (3, 1, 1000, 2) for value in writer.reserve(sequence, count, step)]
    assert values == [start + k * step for k in range(1006)]


def test_recreated_sequence_continues(writer: Writer) -> None:
    sequence = writer.create(1, 1)
    assert writer.reserve(sequence, 5) == range(1, 6)
    assert writer.create(1, 1, sequence) == sequence
    assert writer.reserve(sequence, 1) == range(6, 7)


@pytest.mark.parametrize(("start", "step"), [(1, 2), (2, 1), (-2, 1), (1, -1)])
def test_sequence_cannot_be_recreated_with_other_values(writer: Writer, start: int, step: int) -> None:
    sequence = writer.create(1, 1)
    with pytest.raises(RefusedError, match=r"AlreadyExistsException.*already exists"):
        writer.create(start, step, sequence)
    assert writer.reserve(sequence, 1) == range(1, 2)


def test_delta_7572_retry_allocates_new_values(writer: Writer) -> None:
    sequence = writer.create(1, 1)
    assert writer.reserve(sequence, 10) == range(1, 11)
    assert writer.reserve(sequence, 10) == range(11, 21)  # as if the first answer had been lost


def test_unitycatalog_1832_concurrent_writers_get_separate_ranges(writer: Writer) -> None:
    sequence = writer.create(0, -2)
    with ThreadPoolExecutor(8) as threads:
        ranges = list(threads.map(lambda count: writer.reserve(sequence, count), [1, 7, 30] * 40))
    values = [value for each in ranges for value in each]
    assert len(set(values)) == len(values) == 38 * 40
    assert min(values) == -2 * (len(values) - 1)  # and none is left out


@pytest.mark.parametrize(("start", "step"), [(5, 7), (-3, -2)])
def test_values_stay_unique_after_all_floors_are_raised(tmp_path: Path, start: int, step: int) -> None:
    url = f"sqlite:///{tmp_path}/ids.db"
    with (
        running(tmp_path / "one", store=url) as one,
        running(tmp_path / "two", store=url) as two,
        open_store(url) as store,
    ):
        writers = [Writer(one.url), Writer(two.url)]
        sequence = writers[0].create(start, step)
        values: list[int] = []
        for at in range(123):
            if at in {1, 40, 80}:  # the first service has read the definition, and the second has not
                for record in store.list_namespaces():
                    with suppress(GenerationError):  # a retired namespace has no floor
                        store.raise_floor(record.name, 1000 * at + 10_000)
            values += writers[at % 2].reserve(sequence, 1000, step)
        with pytest.raises(RefusedError, match="AlreadyExistsException"):
            writers[1].create(start + 1, step, sequence)
    assert len(set(values)) == len(values) == 123_000
    assert {value % step for value in values} == {start % step}
    assert sorted(values, reverse=step < 0)[0] == start


def test_verbs_of_the_store_change_no_definition() -> None:
    with MemoryStore() as store:
        for name, value in (("a", 0), ("b", -1), ("c", 2**63 - 1), ("d", -(2**63))):
            create(store, Spec.model_validate({"sequence-id": name, "start": value, "step": 3}))
            for kept in (f"identity:{name}:start", f"identity:{name}:step"):
                verbs: list[Callable[[], object]] = [
                    partial(store.raise_floor, kept, 12_300),
                    partial(store.reserve, kept, 7),
                    partial(store.create_namespace, kept, start=9, stride=3),
                    partial(store.retire, kept),
                ]
                for verb in verbs:
                    with suppress(MintError):
                        verb()
            assert Definitions().find(store, name) == (value, 3)


def test_definition_is_read_again_after_the_store_lost_it() -> None:
    definitions = Definitions()
    with MemoryStore() as lost:
        create(lost, Spec.model_validate({"sequence-id": "a", "start": 1, "step": 1}))
        assert definitions.reserve(lost, "a", 3) == range(1, 4)
        assert definitions.reserve(lost, "a", 3) == range(4, 7)
    with MemoryStore() as store:  # the same one after a restore, where another made the sequence anew
        create(store, Spec.model_validate({"sequence-id": "a", "start": 1, "step": 2}))
        with pytest.raises(RequestError, match="the store lost it"):
            definitions.reserve(store, "a", 3)
        assert definitions.reserve(store, "a", 3) == range(7, 13, 2)


def test_values_stay_in_64_bits_in_namespaces_of_others() -> None:
    with MemoryStore() as store:
        store.reserve("identity:a", 1)  # which makes it, with the greatest maximum
        create(store, Spec.model_validate({"sequence-id": "a", "start": 2**63 - 5, "step": 1}))
        definitions = Definitions()
        assert definitions.reserve(store, "a", 3) == range(2**63 - 3, 2**63)
        with pytest.raises(GenerationError, match="is outside"):
            definitions.reserve(store, "a", 1)


def test_conflicting_concurrent_creators_make_one_sequence(writer: Writer) -> None:
    def create(step: int) -> int | None:
        try:
            writer.create(0, step, sequence)
        except RefusedError:
            return None
        return step

    for _ in range(5):
        sequence = str(uuid.uuid4())
        with ThreadPoolExecutor(8) as threads:
            made = {step for step in threads.map(create, range(1, 9)) if step is not None}
        assert len(made) == 1
        assert writer.reserve(sequence, 2).step in made


def test_wrong_step_of_a_writer_is_refused(writer: Writer) -> None:
    sequence = writer.create(1, 5)
    with pytest.raises(RefusedError, match="InvalidParameterValueException"):
        writer.reserve(sequence, 1, 6)
    assert writer.reserve(sequence, 1, 5) == range(1, 6, 5)


def test_delta_7572_values_never_leave_64_bits(writer: Writer) -> None:
    for start, step, end in ((2**63 - 3, 1, 2**63 - 1), (3 - 2**63, -1, 1 - 2**63)):
        sequence = writer.create(start, step)
        with pytest.raises(RefusedError, match="BadRequestException"):
            writer.reserve(sequence, 10)
        assert writer.reserve(sequence, 3)[-1] == end  # refused requests took nothing


def test_batch_with_an_unknown_sequence_takes_nothing(writer: Writer) -> None:
    known, unknown = writer.create(1, 1), str(uuid.uuid4())
    asked = [{"sequence-id": each, "count": 5} for each in (known, unknown)]
    with pytest.raises(RefusedError, match=r"404, 'NotFoundException'.*not found"):
        writer.ask("POST", "/identities/reserve", {"reservations": asked})
    assert writer.reserve(known, 1) == range(1, 2)


def test_batch_is_answered_in_order(writer: Writer) -> None:
    sequences = [str(uuid.uuid4()) for _ in range(3)]
    specs = [{"sequence-id": each, "start": at, "step": 1} for at, each in enumerate(sequences)]
    writer.ask("POST", "/identities", {"sequences": specs})
    asked = [{"sequence-id": each, "count": 2} for each in reversed(sequences)]
    ranges = writer.ask("POST", "/identities/reserve", {"reservations": asked})["ranges"]
    assert [(each["sequence-id"], each["range-start"]) for each in ranges] == [
        (sequences[2], 2),
        (sequences[1], 1),
        (sequences[0], 0),
    ]


def test_dropped_sequence_never_starts_again(writer: Writer) -> None:
    sequence, unknown = writer.create(1, 1), str(uuid.uuid4())
    assert writer.reserve(sequence, 5) == range(1, 6)
    assert writer.drop(sequence, unknown, sequence) == [True, False]
    assert writer.drop(sequence) == [False]
    with pytest.raises(RefusedError, match="404, 'NotFoundException'"):
        writer.reserve(sequence, 1)
    with pytest.raises(RefusedError):
        writer.create(1, 1, sequence)


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"sequences": []},
        {"sequences": [{"sequence-id": "a", "start": 1, "step": 0}]},
        {"sequences": [{"sequence-id": "a", "start": 1}]},
        {"sequences": [{"sequence-id": "a", "start": "1", "step": 1}]},
        {"sequences": [{"sequence-id": "a", "start": True, "step": 1}]},
        {"sequences": [{"sequence-id": "a", "start": 2**63, "step": 1}]},
        {"sequences": [{"sequence-id": "a:b", "start": 1, "step": 1}]},
        {"sequences": [{"sequence-id": "a" * 65, "start": 1, "step": 1}]},
        {"sequences": [{"sequence-id": "a", "start": 1, "step": 1}] * 2},
        {"sequences": [{"sequence-id": f"a{n}", "start": 1, "step": 1} for n in range(129)]},
    ],
)
def test_request_outside_the_draft_is_refused(writer: Writer, body: object) -> None:
    with pytest.raises(RefusedError, match=r"400, '(InvalidParameterValue|BadRequest)Exception'"):
        writer.ask("POST", "/identities", body)


@pytest.mark.parametrize("count", [0, -1, 2**31, 2**63, "5"])
def test_count_that_cannot_be_reserved_is_refused(writer: Writer, count: object) -> None:
    sequence = writer.create(1, 1)
    asked = {"reservations": [{"sequence-id": sequence, "count": count}]}
    with pytest.raises(RefusedError, match="400, 'InvalidParameterValueException'"):
        writer.ask("POST", "/identities/reserve", asked)


def test_keys_have_the_rights_of_the_namespaces(tmp_path_factory: pytest.TempPathFactory) -> None:
    writes, reads = new_key(), new_key()
    toml = key_toml("writes", writes, {"identity:*": ["create", "reserve"]})
    toml += key_toml("reads", reads, {"identity:*": ["describe"]})
    with running(tmp_path_factory.mktemp("keyed"), toml=toml) as service:
        sequence = Writer(service.url, writes).create(1, 1)
        assert Writer(service.url, writes).reserve(sequence, 2) == range(1, 3)
        with pytest.raises(RefusedError, match="403, 'PermissionDeniedException'"):
            Writer(service.url, reads).reserve(sequence, 1)
        with pytest.raises(RefusedError, match="401, 'NotAuthorizedException'"):
            Writer(service.url).reserve(sequence, 1)
