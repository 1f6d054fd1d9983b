"""The light dataclasses of ``mintage._dataclass`` beside those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from json import loads
from typing import Any, ClassVar

import pytest

from mintage import _dataclass as light
from mintage.lease import Segment

MODULES = {"ours": light, "standard": dataclasses}
WRONG_VALUES = [((), {}), ((1, 2, "c", (), 5), {}), ((1,), {"x": 1}), ((1,), {"z": 3})]


def point(module: Any) -> Any:
    @module.dataclass(frozen=True, slots=True)
    class Point:
        """A point."""

        count: ClassVar[int] = 0

        x: int
        y: int = 0
        label: str = module.field(default="", repr=False, compare=False)
        tags: Any = module.field(default_factory=list, compare=False, metadata={"why": "a test"})

        @property
        def sum(self) -> int:
            return self.x + self.y

    return Point


@light.dataclass(frozen=True, slots=True)
class Base:
    """A class at the top of a module, so that it can be pickled."""

    name: str
    size: int = 1


@light.dataclass(frozen=True, slots=True)
class Derived(Base):
    """A class with a field more."""

    kind: str | None = None


@light.dataclass(frozen=True, kw_only=True)
class Checked:
    """A class that checks its values."""

    even: int

    def __post_init__(self) -> None:
        if self.even % 2:
            raise ValueError("odd")


@pytest.mark.parametrize(
    "ask",
    [
        lambda kind: repr(kind(1, 2, "a")),
        lambda kind: (kind(1) == kind(x=1, label="b"), kind(1) == kind(2), kind(1) == (1, 0), kind(1) != kind(1)),
        lambda kind: len({kind(1, 2, "a"), kind(1, 2, "b"), kind(1, 3)}),
        lambda kind: [getattr(kind(1, label="c"), name) for name in ("x", "y", "label", "tags", "sum", "count")],
        lambda kind: kind.__match_args__,
        lambda kind: (kind.__name__, kind.__qualname__, kind.__doc__, kind.__module__),
        lambda kind: repr(dataclasses.replace(kind(1, 2), y=3)),
        lambda kind: dataclasses.asdict(kind(1, 2, "a", [3])),
        lambda kind: [(each.name, each.repr, each.compare, dict(each.metadata)) for each in dataclasses.fields(kind)],
        dataclasses.is_dataclass,
        lambda kind: [*inspect.signature(kind).parameters],
        lambda kind: repr(copy.copy(kind(1, 2))),
        lambda kind: hasattr(kind(1), "__dict__"),
        lambda kind: kind(1).tags is kind(1).tags,
    ],
)
def test_class_behaves_like_a_standard_dataclass(ask: Any) -> None:
    assert ask(point(light)) == ask(point(dataclasses))


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
@pytest.mark.parametrize(("values", "named"), WRONG_VALUES)
def test_wrong_fields_are_a_type_error(module: Any, values: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        point(module)(*values, **named)


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
def test_instance_cannot_be_changed(module: Any) -> None:
    made = point(module)(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del made.x
    assert made.x == 1


def test_derived_class_has_the_fields_of_its_base() -> None:
    made = Derived("a", kind="b")
    assert (repr(made), light.asdict(made)) == (
        "Derived(name='a', size=1, kind='b')",
        {"name": "a", "size": 1, "kind": "b"},
    )
    assert [each.name for each in dataclasses.fields(Derived)] == ["name", "size", "kind"]
    assert made != Base("a")


def test_instance_survives_pickling() -> None:
    assert pickle.loads(pickle.dumps(Derived("a", 2, "b"))) == Derived("a", 2, "b")


def test_check_of_a_class_runs_for_each_instance() -> None:
    with pytest.raises(ValueError, match="odd"):
        light.replace(Checked(even=2), even=3)


def test_class_without_eq_compares_by_identity() -> None:
    @light.dataclass(frozen=True, slots=True, eq=False)
    class Handle:
        number: int

    made = Handle(1)
    assert made == made  # noqa: PLR0124 - by identity
    assert made != Handle(1)
    assert len({made, Handle(1)}) == 2


VALUES: dict[str, Any] = {"namespace": "orders", "first": 1, "last": 9, "stride": 2, "floor": 0, "serial": 3}
SEGMENT = Segment(**VALUES)
READERS: dict[str, Any] = {
    "orjson": lambda module: loads(module.dumps(SEGMENT)),
    "msgspec": lambda module: loads(module.json.encode(SEGMENT)),
    "pydantic": lambda module: module.TypeAdapter(Segment).dump_python(SEGMENT),
    "cattrs": lambda module: module.unstructure(SEGMENT),
    "pandas": lambda module: module.DataFrame([SEGMENT]).to_dict("records")[0],
    "dataclasses": lambda module: module.asdict(SEGMENT),
}
WRITERS: dict[str, Any] = {
    "msgspec": lambda module: module.convert(VALUES, Segment),
    "pydantic": lambda module: module.TypeAdapter(Segment).validate_python(VALUES),
    "cattrs": lambda module: module.structure(VALUES, Segment),
}


@pytest.mark.parametrize("name", READERS)
def test_tools_for_dataclasses_read_a_record(name: str) -> None:
    assert READERS[name](pytest.importorskip(name)) == VALUES


@pytest.mark.parametrize("name", WRITERS)
def test_tools_for_dataclasses_make_a_record(name: str) -> None:
    assert WRITERS[name](pytest.importorskip(name)) == SEGMENT


def test_standard_dataclass_may_derive_from_a_record() -> None:
    @dataclasses.dataclass(frozen=True)
    class Noted(Segment):
        note: str = ""

    made = Noted("orders", 1, 9, note="mine")
    assert (len(made), dataclasses.replace(made, last=5).note, dataclasses.asdict(made)["note"]) == (9, "mine", "mine")
