"""Claims about IDs that no field of Django converts, in a project that stores each class of IDs in one form.

``test_django.py`` runs this on each database, in a process of its own; ``DATABASE`` has the settings.
"""

from __future__ import annotations

import json
import os
import pickle

import django
import pymysql
import pytest
from django.conf import settings

pymysql.install_as_MySQLdb()
settings.configure(
    DATABASES={"default": json.loads(os.environ["DATABASE"])},
    INSTALLED_APPS=["django.contrib.contenttypes", "rest_framework", "mintage.ext.django", "stall"],
    DEFAULT_AUTO_FIELD="mintage.ext.django.SnowflakeAutoField",
    USE_TZ=True,
)
django.setup()

import django_filters
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection, models, transaction
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce
from django.http import JsonResponse
from rest_framework.serializers import ModelSerializer
from stall import models as stall
from stall.models import Mark, Note, Order, Ticket

from mintage import sno
from mintage.errors import ArgumentError
from mintage.ext.django import JSONEncoder, SnoField
from mintage.ext.django.checks import check_generic_relations


@pytest.fixture(scope="module", autouse=True)
def tables():
    call_command("migrate", "contenttypes", verbosity=0)
    call_command("migrate", run_syncdb=True, verbosity=0)


@pytest.fixture
def order():
    return Order.objects.create()


def test_cursor_and_raw_queries_accept_ids(order):
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM stall_order WHERE id = %s AND public = %s", [order.pk, order.public])
        assert cursor.fetchone() == (1,)
    assert list(Order.objects.raw("SELECT * FROM stall_order WHERE id = %s", [order.pk])) == [order]
    assert list(Order.objects.filter(id__in=RawSQL("SELECT id FROM stall_order WHERE id = %s", [order.pk]))) == [order]
    assert list(Order.objects.extra(where=["id = %s"], params=[order.pk])) == [order]


def test_expressions_accept_ids_without_a_field(order):
    for value in models.Value(order.pk), Coalesce(models.Value(None), models.Value(order.pk)):
        assert (
            Order.objects.annotate(one=models.ExpressionWrapper(value, SnoField())).filter(id=models.F("one")).exists()
        )


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL has arrays")
def test_array_lookups_accept_ids(order):
    basket = stall.Basket.objects.create(orders=[order.pk])
    for lookup in {"contains": [order.pk]}, {"overlap": [order.pk]}, {"contained_by": [order.pk]}, {"0": order.pk}:
        [(name, value)] = lookup.items()
        assert stall.Basket.objects.filter(**{f"orders__{name}": value}).get() == basket


def test_float_finds_no_row_of_another_key():
    key = 143349558619761320
    assert int(float(key)) != key
    for pk in key, int(float(key)):
        Ticket.objects.create(pk=pk)
    for wrong in float(key), True, "1.5", 1.5:
        for query in {"pk": wrong}, {"pk__in": [wrong]}:
            with pytest.raises((ArgumentError, ValueError)):
                Ticket.objects.get(**query)
        with pytest.raises((ArgumentError, ValueError)):
            Ticket.objects.create(pk=wrong)
    assert Ticket.objects.get(pk=str(key)).pk == key
    assert not Ticket.objects.filter(pk=-1).exists()
    assert not Ticket.objects.filter(pk=2**64).exists()
    assert Ticket.objects.filter(pk__gte=key - 9).count() == 2


def test_generic_relation_over_another_form_is_reported(order):
    Mark.objects.create(about=order)
    Note.objects.create(about=order)
    assert order.marks.count() == order.notes.count() == 1
    assert list(Order.objects.filter(marks__isnull=False)) == [order]
    found = {each.obj: each.id for each in check_generic_relations(None)}
    assert found[Order._meta.get_field("notes")] == "mintage.W007"
    assert Order._meta.get_field("marks") not in found


def test_filters_of_django_filter_accept_ids(order):
    class OrderFilter(django_filters.FilterSet):
        class Meta:
            model = Order
            fields = {"id": ["exact", "in", "minted_after", "minted_before", "minted_between", "isnull"]}

    class TicketFilter(django_filters.FilterSet):
        class Meta:
            model = Ticket
            fields = ["id"]

    def found(**query):
        made = OrderFilter(query)
        assert made.is_valid(), made.errors
        return order in made.qs

    assert found(id=str(order.pk))
    assert not found(id=str(sno.new()))
    assert found(id__in=f"{order.pk},{sno.new()}")
    assert found(id__minted_after="2026-01-01T00:00:00Z")
    assert not found(id__minted_before="2026-01-01T00:00:00Z")
    assert found(id__minted_between_after="2026-01-01T00:00:00Z")
    assert not found(id__minted_between_before="2026-01-01T00:00:00Z")
    assert OrderFilter({"id": "nonsense"}).errors == {"id": ["sno text has 8 characters, needs 16"]}
    assert OrderFilter({"id__minted_after": "yesterday"}).errors
    assert TicketFilter({"id": "4.5"}).errors
    assert not TicketFilter({"id": "45"}).qs.exists()


# --- the table of IDs by value, whose rows of Django come from the environment ---------------------------------------


def through_field(model, value, helped):
    return model.objects.filter(pk__in=[value]).get(pk=value).pk == value


def through_cursor(model, value, helped):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {model._meta.db_table} WHERE id = %s", [value])
        return cursor.fetchone() == (1,)


def through_raw(model, value, helped):
    return len(model.objects.raw(f"SELECT * FROM {model._meta.db_table} WHERE id = %s", [value])) == 1


def through_raw_sql(model, value, helped):
    query = RawSQL(f"SELECT id FROM {model._meta.db_table} WHERE id = %s", [value])
    return model.objects.filter(pk__in=query).exists()


def through_value(model, value, helped):
    typed = models.Value(value, output_field=type(model._meta.pk)()) if helped else models.Value(value)
    found = model.objects.annotate(one=Coalesce(models.F("pk"), typed))
    return found.filter(pk=models.Value(value)).get().one == value


def through_array(model, value, helped):
    model.objects.filter(pk=value).update(many=[value])
    return all(
        model.objects.filter(**{lookup: given}).get().pk == value
        for lookup, given in {"many__contains": [value], "many__overlap": [value], "many__0": value}.items()
    )


def through_generic_relation(model, value, helped):
    name = "near" if helped else "far"
    getattr(model.objects.get(pk=value), name).create()
    return model.objects.filter(**{f"{name}__isnull": False}, pk=value).exists()


def through_filter(model, value, helped):
    meta = type("Meta", (), {"model": model, "fields": ["id"]})
    made = type("Filter", (django_filters.FilterSet,), {"Meta": meta})({"id": str(value)})
    return made.is_valid() and made.qs.get().pk == value


def through_json_field(model, value, helped):
    name = "text" if helped else "note"
    model.objects.filter(pk=value).update(**{name: {"id": value}})
    return getattr(model.objects.get(pk=value), name)["id"] in (value, str(value))


def through_json_response(model, value, helped):
    options = {"encoder": JSONEncoder} if helped else {}
    return json.loads(JsonResponse({"id": value}, **options).content)["id"] in (value, str(value))


def through_serializer(model, value, helped):
    meta = type("Meta", (), {"model": model, "fields": ["id"]})
    return type("Serializer", (ModelSerializer,), {"Meta": meta})(model.objects.get(pk=value)).data == {
        "id": str(value)
    }


def through_cache(model, value, helped):
    cache.set("row", model.objects.get(pk=value))
    again = model.objects.all()
    again.query = pickle.loads(pickle.dumps(model.objects.filter(pk=value).query))
    return again.get() == cache.get("row")


PATHS = {
    "field": through_field,
    "cursor": through_cursor,
    "raw": through_raw,
    "RawSQL": through_raw_sql,
    "Value, Coalesce": through_value,
    "ArrayField": through_array,
    "GenericRelation": through_generic_relation,
    "django-filter": through_filter,
    "JSONField": through_json_field,
    "JsonResponse": through_json_response,
    "REST serializer": through_serializer,
    "cache, pickle": through_cache,
}
CELLS = json.loads(os.environ["CELLS"])


def test_table_of_values_has_the_tried_paths():
    assert list(CELLS) == list(PATHS)


@pytest.mark.parametrize("kind", stall.BY_KIND)
@pytest.mark.parametrize("path", CELLS)
def test_each_path_treats_a_value_as_the_table_says(path, kind):
    if path == "ArrayField" and connection.vendor != "postgresql":
        pytest.skip("only PostgreSQL has arrays")
    model, cell = stall.BY_KIND[kind], CELLS[path][kind]
    model.objects.all().delete()
    value = model.objects.create().pk

    def works(helped):
        try:
            with transaction.atomic():
                return PATHS[path](model, value, helped) or "no"
        except Exception as error:  # noqa: BLE001
            return type(error).__name__

    names = {"postgresql": "PostgreSQL", "mysql": "MariaDB", "sqlite": "SQLite"}

    place, _, elsewhere = cell.rpartition(", else ")
    if elsewhere == "yes" or names[connection.vendor] in place:
        assert works(False) is True
    elif elsewhere.startswith("[recipe]"):
        assert works(False) is not True
        assert works(True) is True
    else:
        assert works(False) == elsewhere
