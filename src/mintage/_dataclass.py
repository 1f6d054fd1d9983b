"""Immutable classes of fields, as ``dataclasses`` makes them, without its import and its compiled source code.

``dataclasses`` imports ``inspect`` and compiles several methods for each class, which took a third of the time to a
process's first ID. The methods here are shared by all classes. ``dataclasses.fields``, ``dataclasses.replace``,
``inspect.signature`` and others find what they look for: the standard dataclass is made when they ask for it.

>>> import dataclasses
>>> @dataclass(frozen=True, slots=True)
... class Point:
...     x: int
...     y: int = 0
...     label: str = field(default="", repr=False, compare=False)
>>> Point(3, label="a")
Point(x=3, y=0)
>>> Point(3) == Point(x=3, label="b"), {Point(3), Point(3, 0)}
(True, {Point(x=3, y=0)})
>>> dataclasses.replace(Point(3), y=4), replace(Point(3), y=4)
(Point(x=3, y=4), Point(x=3, y=4))
>>> Point(3).x = 4
Traceback (most recent call last):
dataclasses.FrozenInstanceError: cannot assign to field 'x'
"""

from __future__ import annotations

# Type checkers read this as true. To import the one of typing would take longer than to import all of mintage.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import asdict, dataclass, field, fields, replace
    from typing import Any, TypeVar

    C = TypeVar("C", bound=type)

__all__ = ["asdict", "dataclass", "field", "fields", "replace"]

_MISSING: Any = object()
_INTROSPECTED = ("__dataclass_fields__", "__dataclass_params__", "__signature__")


class _Field:
    """A field: its name, its default, and whether the repr and comparisons use it."""

    __slots__ = ("compare", "default", "default_factory", "metadata", "name", "repr")

    def __init__(self, default: Any, default_factory: Any, repr: bool, compare: bool, metadata: Any) -> None:
        self.name = ""
        self.metadata = metadata
        self.default = default
        self.default_factory = default_factory
        self.repr = repr
        self.compare = compare

    def standard(self) -> Any:
        """Return the field of the standard dataclass."""
        import dataclasses

        named = {"default": self.default, "default_factory": self.default_factory}
        given = {name: value for name, value in named.items() if value is not _MISSING}
        return dataclasses.field(repr=self.repr, compare=self.compare, metadata=self.metadata, **given)


class _OfStandardDataclass:
    """An attribute that the standard dataclass of a class has, which is made when somebody first asks for it."""

    def __init__(self, name: str, make: Callable[[], type]) -> None:
        self._name = name
        self._make = make

    def __get__(self, instance: object, owner: type) -> Any:
        made = self._make()
        if self._name == "__signature__":
            import inspect

            try:
                return inspect.signature(made, eval_str=True)
            except NameError:  # an annotation is for type checkers alone
                return inspect.signature(made)
        return getattr(made, self._name)


def _complete(kind: Any, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Return the values of all fields.

    :raises TypeError: a field has no value or two, or there is no such field.
    """
    name, fields = kind.__name__, kind.__mintage_fields__
    if len(values) > len(fields):
        raise TypeError(f"{name} has {len(fields)} fields, and was given {len(values)} values")
    complete = [*values]
    for each in fields[len(values) :]:
        if each.name in named:
            complete.append(named.pop(each.name))
        elif each.default is not _MISSING:
            complete.append(each.default)
        elif each.default_factory is not _MISSING:
            complete.append(each.default_factory())
        else:
            raise TypeError(f"{name} needs a value for {each.name!r}")
    if named:
        wrong = min(named)
        known = any(each.name == wrong for each in fields)
        raise TypeError(f"{name} was given two values for {wrong!r}" if known else f"{name} has no field {wrong!r}")
    return tuple(complete)


def _setter(kind: type, name: str) -> Callable[[Any, Any], None]:
    """Return the function that sets a field of a new record."""
    put: Callable[[Any, Any], None] | None = getattr(getattr(kind, name, None), "__set__", None)
    if put is not None:
        return put
    return lambda record, value: object.__setattr__(record, name, value)


def _restored(kind: Any, values: tuple[Any, ...]) -> Any:
    """Return a pickled record, whose values were checked when it was made."""
    record = object.__new__(kind)
    for put, value in zip(kind.__mintage_setters__, values, strict=True):
        put(record, value)
    return record


def _compared(record: Any) -> tuple[Any, ...]:
    return tuple(getattr(record, each.name) for each in record.__mintage_fields__ if each.compare)


class _Methods:
    """The methods of every class, which copies them."""

    __mintage_fields__: tuple[_Field, ...]
    __mintage_setters__: tuple[Callable[[Any, Any], None], ...]
    __match_args__: tuple[str, ...]

    def __init__(self, /, *values: Any, **named: Any) -> None:
        setters = self.__mintage_setters__
        if named or len(values) != len(setters):
            values = _complete(type(self), values, named)
        for put, value in zip(setters, values):  # noqa: B905 - of equal length; this runs for every record
            put(self, value)

    def __repr__(self) -> str:
        shown = [f"{each.name}={getattr(self, each.name)!r}" for each in self.__mintage_fields__ if each.repr]
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __eq__(self, other: object) -> Any:
        return _compared(self) == _compared(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self) -> int:
        return hash(_compared(self))

    def __setattr__(self, name: str, value: object) -> None:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __replace__(self, /, **changes: Any) -> Any:
        return type(self)(**{**asdict(self), **changes})  # type: ignore[call-overload] # asdict is ours

    def __reduce__(self) -> Any:
        return _restored, (type(self), tuple(getattr(self, name) for name in self.__match_args__))


def _checked_init(self: Any, /, *values: Any, **named: Any) -> None:
    _Methods.__init__(self, *values, **named)
    self.__post_init__()


_METHODS = {name: value for name, value in vars(_Methods).items() if callable(value)}


if not TYPE_CHECKING:

    def field(
        *,
        default: Any = _MISSING,
        default_factory: Any = _MISSING,
        repr: bool = True,
        compare: bool = True,
        metadata: Any = None,
    ) -> Any:
        """Declare a field with a default or metadata, or one that the repr or comparisons do not use."""
        return _Field(default, default_factory, repr, compare, metadata)

    def fields(kind: Any) -> tuple[_Field, ...]:
        """Return the fields of a class."""
        return kind.__mintage_fields__

    def replace(record: Any, /, **changes: Any) -> Any:
        """Return a copy with other values in some fields.

        :raises TypeError: it has no such field.
        """
        return record.__replace__(**changes)

    def asdict(record: Any) -> dict[str, Any]:
        """Return the values of the fields by name. The values are not copied."""
        return {name: getattr(record, name) for name in record.__match_args__}

    def dataclass(*, frozen: bool, slots: bool = False, kw_only: bool = False, eq: bool = True) -> Callable[[C], C]:
        """Return a decorator that makes an immutable class of the fields which a class and its bases annotate.

        :param frozen: must be True.
        :param slots: True for instances without a ``__dict__``.
        :param kw_only: type checkers accept the fields by name only.
        :param eq: False to compare instances by identity.
        """
        if not frozen:
            raise TypeError("frozen is False, and the classes of mintage._dataclass are immutable: use dataclasses")

        def decorate(cls: C) -> C:
            body = {name: value for name, value in vars(cls).items() if name not in {"__dict__", "__weakref__"}}
            own = {}
            for name in (name for name, kind in cls.__annotations__.items() if not kind.startswith("ClassVar")):
                given = body.get(name, _MISSING)
                own[name] = given if isinstance(given, _Field) else _Field(given, _MISSING, True, True, None)
                own[name].name = name
            inherited = {
                each.name: each for base in cls.__mro__[:0:-1] for each in vars(base).get("__mintage_fields__", ())
            }
            fields = tuple((inherited | own).values())
            options = {"kw_only": kw_only, "eq": eq}
            added = {
                "__mintage_fields__": fields,
                "__match_args__": tuple(each.name for each in fields),
                **_METHODS,
                **({"__init__": _checked_init} if hasattr(cls, "__post_init__") else {}),
                **_introspection(cls, body, own, options),
            }
            added = {name: value for name, value in added.items() if name not in body}
            if not eq:
                del added["__eq__"], added["__hash__"]
            if slots:
                kept = {name: value for name, value in body.items() if name not in own}
                made = type(cls)(cls.__name__, cls.__bases__, {**kept, **added, "__slots__": tuple(own)})
                made.__qualname__ = cls.__qualname__
            else:
                made = cls
                for name in own:
                    if isinstance(body.get(name), _Field):
                        delattr(cls, name)
                for name, value in added.items():
                    setattr(cls, name, value)
            made.__mintage_setters__ = tuple(_setter(made, each.name) for each in fields)
            return made

        return decorate

    def _introspection(
        cls: Any, body: dict[str, Any], own: dict[str, _Field], options: dict[str, bool]
    ) -> dict[str, Any]:
        """Return the attributes that the standard library looks for, of a standard dataclass that is made then."""
        made: list[type] = []

        def make() -> type:
            if not made:
                import dataclasses

                fields = {name: each.standard() for name, each in own.items()}
                same = type(cls)(cls.__name__, cls.__bases__, {**body, **fields})
                made.append(dataclasses.dataclass(same, frozen=True, **options))
            return made[0]

        return {name: _OfStandardDataclass(name, make) for name in _INTROSPECTED}
