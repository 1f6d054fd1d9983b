"""Fields of Django REST framework: IDs as text in JSON, as objects in Python, and in schemas of drf-spectacular.

``SERIALIZER_FIELDS`` has the field of a format by its name:

>>> from mintage.ext.django.rest import SERIALIZER_FIELDS
>>> from rest_framework import serializers
>>> class Parcel(serializers.Serializer):
...     order = SERIALIZER_FIELDS["sno"]()
...     invoice = SERIALIZER_FIELDS["snowflake"]()
>>> parcel = Parcel(data={"order": "brpk4q72xwf2m63l", "invoice": "454947766275222906"})
>>> parcel.is_valid()
True
>>> parcel.validated_data
{'order': sno.ID.parse('brpk4q72xwf2m63l'), 'invoice': 454947766275222906}
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from mintage.installation import missing

try:
    from rest_framework import relations, serializers
except ModuleNotFoundError as error:
    raise missing(error, "django") from None

from django.core.exceptions import FieldDoesNotExist

from mintage.errors import MintError
from mintage.ext.django.fields import FIELDS, Minted, SnowflakeAutoField, TypeIDField, end_of
from mintage.formats.annotations import NAMED, kind_of, read_text
from mintage.formats.kinds import Kind

__all__ = [
    "SERIALIZER_FIELDS",
    "IDField",
    "PrimaryKeyRelatedField",
    "SlugRelatedField",
    "lookup_regex",
    "register",
    "schema",
]


class IDField(serializers.Field):  # type: ignore[misc]
    """A field of IDs: text in JSON, an ID in Python; for snowflake digits in JSON, and an int in Python.

    It accepts a JSON number for a snowflake up to 2^53 - 1. JavaScript may have rounded a larger one.

    >>> from mintage import sno
    >>> from mintage.ext.django.rest import IDField
    >>> from rest_framework import serializers
    >>> class Reference(serializers.Serializer):
    ...     order = IDField("sno")
    ...     customers = serializers.ListField(child=IDField("snowflake"))
    >>> Reference({"order": sno.ID.parse("brpk4q72xwf2m63l"), "customers": [454947766275222906]}).data
    {'order': 'brpk4q72xwf2m63l', 'customers': ['454947766275222906']}

    :param kind: the name of a scheme, or ``typeid``; a class of IDs, :class:`mintage.snowflake.Str` or
        ``TypeID("user")``; or one of ``mintage.formats.kinds.KINDS``. The default in a ``ModelSerializer`` is the
        model's.
    """

    kind: Kind
    default_error_messages: Final = {"invalid": "{error}"}

    def __init__(self, kind: object = None, **kwargs: Any) -> None:
        self._is_given = kind is not None
        if kind is not None:
            self.kind = kind if isinstance(kind, Kind) else kind_of(kind)
        super().__init__(**kwargs)

    def bind(self, field_name: str, parent: Any) -> None:
        """Use the kind of the model's field, with its layout, if the model has one."""
        super().bind(field_name, parent)
        model = getattr(getattr(parent, "Meta", None), "model", None)
        if model is None or self._is_given:
            return
        with suppress(FieldDoesNotExist):
            field = model._meta.pk if self.source == "pk" else model._meta.get_field(self.source)
            if isinstance(field, Minted):
                self.kind = field.kind

    def to_internal_value(self, data: object) -> Any:
        """Return the ID of a text.

        :raises ValidationError: it is no ID; the code is ``invalid``.
        """
        try:
            return read_text(self.kind, data)
        except MintError as error:
            self.fail("invalid", error=str(error))

    def to_representation(self, value: Any) -> str:
        """Return the text of an ID."""
        return str(value)


def _of_kind(kind: Kind) -> type[IDField]:
    text = f"Text in JSON, an ID of :mod:`mintage.{kind.name}` in Python."
    return type(f"{kind.title}Field", (IDField,), {"__module__": __name__, "__doc__": text, "kind": kind})


SERIALIZER_FIELDS: Final = {name: _of_kind(kind) for name, kind in NAMED.items()}
"""The field of each scheme and of TypeIDs, by its name."""


def _kind_of(model: Any, path: str) -> Kind | None:
    """Return the kind of IDs in a field of a model, by a path through relations; ``None`` if it has no IDs."""
    *relations_, last = path.split("__")
    try:
        for name in relations_:
            model = model._meta.get_field(name).related_model
        end = end_of(model._meta.pk if last == "pk" else model._meta.get_field(last))
    except (FieldDoesNotExist, AttributeError):  # a property of the model
        return None
    return end.kind if isinstance(end, Minted) else None


class _Related:
    """The base of both fields of relations, which read and write an ID as :class:`IDField` does."""

    def _field(self) -> IDField | None:
        queryset = self.get_queryset()  # type: ignore[attr-defined]
        kind = None if queryset is None else _kind_of(queryset.model, getattr(self, "slug_field", "pk"))
        return None if kind is None else IDField(kind)

    def to_internal_value(self, data: Any) -> Any:
        """Return the object of an ID.

        :raises ValidationError: it is no ID, or a number that JavaScript may have rounded.
        """
        field = self._field()
        return super().to_internal_value(data if field is None else field.to_internal_value(data))  # type: ignore[misc]


class PrimaryKeyRelatedField(_Related, serializers.PrimaryKeyRelatedField):  # type: ignore[misc]
    """A field for a relation by primary key, which reads and writes IDs as :class:`IDField` does.

    For any other key it is the field of Django REST framework.

    >>> from django.db import models
    >>> from mintage.ext.django import SnowflakeField
    >>> class Order(models.Model):
    ...     id = SnowflakeField(primary_key=True)
    >>> from mintage.ext.django.rest import PrimaryKeyRelatedField
    >>> from rest_framework import serializers
    >>> class Parcel(serializers.Serializer):
    ...     order = PrimaryKeyRelatedField(queryset=Order.objects.all())
    >>> Parcel({"order": Order(id=454947766275222906)}).data
    {'order': '454947766275222906'}
    """

    def _field(self) -> IDField | None:
        return None if self.pk_field is not None else super()._field()

    def get_attribute(self, instance: Any) -> Any:
        """Return the value of an instance that is to be written."""
        found = super().get_attribute(instance)
        if self.pk_field is None and isinstance(found, relations.PKOnlyObject):
            owner = relations.get_attribute(instance, self.source_attrs[:-1])
            kind = _kind_of(type(owner), self.source_attrs[-1])
            if kind is not None and found.pk is not None:
                return relations.PKOnlyObject(pk=str(found.pk))
        return found

    def to_representation(self, value: Any) -> Any:
        """Return the text of the key."""
        if self.pk_field is None and not isinstance(value, relations.PKOnlyObject):
            kind = _kind_of(type(value), "pk")
            return value.pk if kind is None or value.pk is None else str(value.pk)
        return super().to_representation(value)


class SlugRelatedField(_Related, serializers.SlugRelatedField):  # type: ignore[misc]
    """A field for a relation by another field, which reads and writes IDs as :class:`IDField` does.

    A ``ModelSerializer`` uses it for a foreign key with ``to_field``.

    >>> from django.db import models
    >>> from mintage import ulid
    >>> from mintage.ext.django import SnowflakeField, ULIDField
    >>> class Order(models.Model):
    ...     id = SnowflakeField(primary_key=True)
    ...     public_id = ULIDField(default=ulid.new, unique=True)
    >>> from mintage.ext.django.rest import SlugRelatedField
    >>> from rest_framework import serializers
    >>> class Parcel(serializers.Serializer):
    ...     order = SlugRelatedField("public_id", queryset=Order.objects.all())
    >>> Parcel({"order": Order(public_id=ulid.ID.parse("01ARZ3NDEKTSV4RRFFQ69G5FAV"))}).data
    {'order': '01ARZ3NDEKTSV4RRFFQ69G5FAV'}
    """

    def to_representation(self, obj: Any) -> Any:
        """Return the text of the ID."""
        found, kind = super().to_representation(obj), _kind_of(type(obj), self.slug_field)
        return found if kind is None or found is None else str(found)


_PLAIN: Final = (serializers.PrimaryKeyRelatedField, serializers.SlugRelatedField)


def unsafe_fields() -> Iterator[tuple[str, str]]:
    """Yield the serializers' declared fields of Django REST framework for relations to models of IDs."""
    for serializer in _below(serializers.Serializer):
        for name, declared in serializer._declared_fields.items():
            field = getattr(declared, "child_relation", declared)
            if type(field) in _PLAIN and getattr(field, "pk_field", None) is None:
                model = _model_of(serializer, name, declared, field)
                if model is not None and _kind_of(model, getattr(field, "slug_field", "pk")) is not None:
                    yield f"{serializer.__module__}.{serializer.__qualname__}.{name}", type(field).__name__


def _model_of(serializer: Any, name: str, declared: Any, field: Any) -> Any:
    """Return the model of a relation, by its queryset or by its source in the serializer's model."""
    if field.queryset is not None:
        return field.queryset.model
    model: Any = getattr(getattr(serializer, "Meta", None), "model", None)
    with suppress(FieldDoesNotExist, AttributeError):
        for part in (declared._kwargs.get("source") or name).split("."):
            model = model._meta.get_field(part).related_model
        return model
    return None


def _below(base: Any) -> Iterator[Any]:
    for subclass in base.__subclasses__():
        yield subclass
        yield from _below(subclass)


def lookup_regex(scheme: str) -> str:
    """Return the regular expression of the texts of a scheme, for ``lookup_value_regex`` of a view set.

    >>> from mintage.ext.django.rest import lookup_regex
    >>> from rest_framework import viewsets
    >>> class Orders(viewsets.ModelViewSet):
    ...     lookup_value_regex = lookup_regex("objectid")
    >>> Orders.lookup_value_regex
    '[0-9A-Fa-f]{24}'

    :param scheme: the name of a scheme, or ``typeid``.
    :raises KeyError: there is no such scheme.
    """
    return NAMED[scheme].pattern.removeprefix("^").removesuffix("$")


def schema(kind: Kind) -> dict[str, Any]:
    """Return the OpenAPI schema of all texts of a kind of IDs that the field reads.

    >>> from mintage.ext.django.rest import schema
    >>> from mintage.formats.kinds import KINDS
    >>> schema(KINDS["objectid"])
    {'type': 'string', 'format': 'objectid', 'pattern': '^[0-9A-Fa-f]{24}$'}
    """
    return {"type": "string", "format": "int64" if kind.layout else kind.name, "pattern": kind.pattern}


def register() -> None:
    """Make every ``ModelSerializer`` use these fields, and drf-spectacular their schema if it is installed.

    Keys, and relations to them, are then text. A second call changes nothing.
    :class:`~mintage.ext.django.apps.MintageConfig` calls it where ``"rest_framework"`` is in ``INSTALLED_APPS``.

    >>> from django.db import models
    >>> from mintage.ext.django import SnowflakeField
    >>> class Order(models.Model):
    ...     id = SnowflakeField(primary_key=True)
    >>> from mintage.ext.django.rest import register
    >>> from rest_framework import serializers
    >>> register()
    >>> class OrderSerializer(serializers.ModelSerializer):
    ...     class Meta:
    ...         model = Order
    ...         fields = ["id"]
    >>> OrderSerializer(Order(id=454947766275222906)).data
    {'id': '454947766275222906'}
    """
    mapping = serializers.ModelSerializer.serializer_field_mapping
    mapping.update({field: SERIALIZER_FIELDS[name] for name, field in FIELDS.items()})
    mapping[SnowflakeAutoField] = SERIALIZER_FIELDS["snowflake"]
    mapping[TypeIDField] = SERIALIZER_FIELDS["typeid"]
    if serializers.ModelSerializer.serializer_related_field is serializers.PrimaryKeyRelatedField:
        serializers.ModelSerializer.serializer_related_field = PrimaryKeyRelatedField
    if serializers.ModelSerializer.serializer_related_to_field is serializers.SlugRelatedField:
        serializers.ModelSerializer.serializer_related_to_field = SlugRelatedField
    with suppress(ModuleNotFoundError):
        _register_schema()


def _register_schema() -> None:
    # Its import reads the settings, so it is here.
    from drf_spectacular.extensions import OpenApiSerializerFieldExtension

    class IDFieldExtension(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
        target_class = IDField
        match_subclasses = True

        def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
            return schema(self.target.kind)
