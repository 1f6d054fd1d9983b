"""Tests of ``mintage.ext.django`` on the database of the environment; ``test_django.py`` runs them."""

from __future__ import annotations

import gc
import itertools
import json
import os
import pickle
import random
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest

os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"

import django

django.setup()

from django import forms
from django.apps import AppConfig, apps
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core import checks, serializers
from django.core.exceptions import FieldError, ValidationError
from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction
from django.db.migrations.writer import MigrationWriter
from django.db.models import Count, F, Value
from django.http import JsonResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext, isolate_apps
from django.urls import NoReverseMatch, Resolver404, resolve, reverse
from legacy.models import Customer, Invoice
from rest_framework import serializers as rest_serializers
from shop.models import ROWS, Coupon, Line, Order, Redemption, Refund, Tag, Tweet, User

from mintage import errors, locality, sno, snowflake, typeid, ulid, uuid
from mintage.ext import django as ours
from mintage.ext.django import rest
from mintage.formats.annotations import NAMED, TypeID
from mintage.formats.kinds import KINDS
from mintage.store import open_store

MAY, JUNE = datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)
VENDOR = connection.vendor

each = pytest.mark.parametrize("row", ROWS.values(), ids=["-".join(key) for key in ROWS])

# The pages of the admin are the same on each database, so one database visits all formats.
FEW = [("sno", "bytes"), ("snowflake", "integer"), ("ulid", "uuid"), ("nanoid", "text"), ("typeid", "uuid")]
VISITED = list(ROWS) if VENDOR == "sqlite" else FEW
visited = pytest.mark.parametrize("row", [ROWS[key] for key in VISITED], ids=["-".join(key) for key in VISITED])


def kind_of(row):
    return row._meta.pk.kind


@pytest.fixture(scope="session", autouse=True)
def migrated():
    """Make the migrations of all apps and apply them, before anything else."""
    call_command("makemigrations", verbosity=0)
    call_command("migrate", verbosity=0)


@pytest.fixture(scope="session")
def admin(migrated):
    User.objects.create_superuser("root", "root@example.com", "root")
    client = Client()
    assert client.login(username="root", password="root")
    return client


@pytest.fixture
def order():
    return Order.objects.create(title="one", buyer=User.objects.get_or_create(username="buyer")[0])


# Migrations


def test_django_ulid_65_no_migration_is_missing():
    for _ in range(2):
        call_command("makemigrations", "--check", verbosity=0)


def test_migrations_import_the_functions_they_name():
    written = Path("shop/migrations/0001_initial.py").read_text(encoding="utf-8")
    assert "import mintage.sno\n" in written
    assert (
        "('id', mintage.ext.django.SnoField(default=mintage.sno.new, editable=False, form='bytes', primary_key=True"
        in written
    )
    assert "mintage.ext.django.SnowflakeAutoField(auto_created=True, primary_key=True" in written
    assert "layout='time:41 datacenter:5 worker:5 sequence:12 @1288834974657 1ms'" in written
    assert re.findall(r"mintage\.ext\.django\.\w+\.", written) == []


@each
def test_field_equals_its_migration(row):
    for field in row._meta.local_fields[:2]:
        text, imports = MigrationWriter.serialize(field)
        names = {}
        exec("\n".join(imports), names)
        again = eval(text, names)
        assert again.deconstruct()[1:] == field.deconstruct()[1:]
        assert again.db_type(connection) == field.db_type(connection)


def test_migration_can_have_an_id_as_a_default():
    ids = [KINDS[name].new() for name in ("sno", "ulid", "uuid", "objectid")] + [typeid.new("user")]
    for value in ids:
        text, imports = MigrationWriter.serialize(models.ForeignKey(User, models.CASCADE, default=value))
        names = {}
        exec("\n".join(imports), names)
        assert eval(text, names).default == value


def test_length_of_a_form_field_is_that_of_the_text():
    for field in (ours.SnoField(), ours.SnowflakeField()):
        value = field.mint()
        assert field.formfield(max_length=40, min_length=1).clean(str(value)) == value


def test_migration_states_the_storage_form():
    """A later change of the default form must not change the meaning of an old migration."""
    for name, field in ours.FIELDS.items():
        for form in field.forms():
            kwargs = field(null=True, **({} if form == "integer" else {"form": form})).deconstruct()[3]
            assert kwargs.get("form") == (form if len(field.forms()) > 1 else None), name


@pytest.mark.parametrize("editable", [True, False])
def test_editable_of_a_key_survives_a_migration(editable):
    field = ours.SnoField(primary_key=True, editable=editable)
    assert field.clone().editable == editable
    assert field.clone().deconstruct() == field.deconstruct()
    assert ours.SnoField(primary_key=True, default=None).clone().get_default() is None


def test_every_key_of_the_project_is_minted():
    for model in apps.get_models(include_auto_created=True):
        if model._meta.label not in {"sessions.Session", "shop.Refund"}:
            assert isinstance(model._meta.pk, (ours.SnowflakeAutoField, ours.IDField)), model
    for model in (ContentType, Permission):
        assert model.objects.count() > 10
        assert all(snowflake.DEFAULT.parse(pk).time.year >= 2026 for pk in model.objects.values_list("pk", flat=True))


def test_autoincrement_table_continues_with_snowflakes():
    old = list(Customer.objects.filter(name__startswith="old").order_by("pk"))
    assert [each.pk for each in old] == [1, 2, 3]
    assert [each.invoice_set.count() for each in old] == [1, 1, 1]
    new = Customer.objects.create(name="newer", joined=MAY, number=sno.new())
    assert new.pk > 2**53
    assert Invoice.objects.create(customer=new).pk > 2**53


def test_old_rows_get_ids_of_their_time():
    found = Customer.objects.filter(number__minted_between=(MAY, MAY + timedelta(days=2))).order_by("number")
    assert [each.name for each in found] == ["old 0", "old 1"]


# Columns


def column_type(model, name):
    table = model._meta.db_table
    column = model._meta.get_field(name).column
    with connection.cursor() as cursor:
        if VENDOR == "sqlite":
            cursor.execute(f"PRAGMA table_info({table})")
            return next(row[2] for row in cursor.fetchall() if row[1] == column)
        kind = "COLUMN_TYPE" if VENDOR == "mysql" else "data_type"
        where = "DATABASE()" if VENDOR == "mysql" else "current_schema()"
        cursor.execute(
            f"SELECT {kind} FROM information_schema.columns"
            f" WHERE table_name = %s AND column_name = %s AND table_schema = {where}",
            [table, column],
        )
        return cursor.fetchone()[0]


@each
def test_column_has_the_fitting_type(row):
    field = row._meta.pk
    size, length = field.kind.size, field.kind.length
    wanted = {
        "integer": {"sqlite": "bigint", "postgresql": "bigint", "mysql": "bigint(20)"},
        "bytes": {"sqlite": "BLOB", "postgresql": "bytea", "mysql": f"binary({size})"},
        "uuid": {
            "sqlite": "BLOB",
            "postgresql": "uuid",
            "mysql": "binary(16)",
        },
        "text": {
            "sqlite": f"char({length})" if size else f"varchar({length})",
            "postgresql": "character" if size else "character varying",
            "mysql": f"char({length})" if size else f"varchar({length})",
        },
    }[field.form][VENDOR]
    assert column_type(row, "id") == column_type(row, "other") == column_type(row, "parent") == wanted


def test_locality_is_never_a_mariadb_uuid():
    # It refuses those of about half of all hosts.
    assert column_type(ROWS["locality", "uuid"], "id") == {"mysql": "binary(16)", "sqlite": "BLOB"}.get(VENDOR, "uuid")
    for mac in ("0000001", "a7b9f1b", "a7bcf1b"):
        id = locality.ID.from_parts(counter=random.getrandbits(31), pid=1, mac=mac, timestamp_ms=0)
        for form in ("bytes", "uuid", "text"):
            ROWS["locality", form].objects.create(pk=id)
            assert ROWS["locality", form].objects.get(pk=id).pk == id


@each
def test_django_ulid_146_internal_type_is_custom(row):
    own = row._meta.pk.get_internal_type()
    assert own not in connection.data_types
    assert not hasattr(models, own)


def test_automatic_key_is_a_plain_bigint():
    field = Tag._meta.pk
    assert field.db_type(connection) == field.rel_db_type(connection) == "bigint"
    assert column_type(Tag, "id") in ("bigint", "bigint(20)")
    if VENDOR == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT table_name FROM information_schema.columns WHERE is_identity = 'YES'")
            assert cursor.fetchall() == []
            cursor.execute("SELECT pg_get_serial_sequence('shop_tag', 'id')")
            assert cursor.fetchone() == (None,)


@pytest.mark.skipif(VENDOR == "mysql", reason="binary(n) has n bytes")
@each
def test_column_of_bytes_checks_the_length(row):
    field = row._meta.pk
    if field.form != "bytes":
        pytest.skip("not of bytes")
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {row._meta.db_table} (id, name) VALUES (%s, '')", [b"x"])


@each
@isolate_apps("shop")
def test_generated_field_computes_ids(row):
    *_, kwargs = row._meta.get_field("other").deconstruct()
    of = {"output_field": type(row._meta.pk)(**kwargs), "db_persist": True}
    fields = {"other": type(row._meta.pk)(**kwargs), "same": models.GeneratedField(expression=models.F("other"), **of)}
    copied = type("Copied", (models.Model,), {"__module__": "shop.models", **fields})
    with connection.schema_editor() as editor:
        editor.create_model(copied)
    try:
        one = copied.objects.create(other=row._meta.pk.mint())
        assert copied.objects.get(same=str(one.other)).same == one.other
    finally:
        with connection.schema_editor() as editor:
            editor.delete_model(copied)


# Rows


@each
def test_saved_value_is_read_back(row):
    one = row.objects.create(other=row._meta.pk.mint(), name="one")
    child = row.objects.create(parent=one)
    kind = kind_of(row)
    assert one.pk.__class__ is kind.python
    for found in (
        row.objects.get(pk=one.pk),
        row.objects.get(pk=str(one.pk)),
        row.objects.get(id__in=[str(one.pk)]),
        row.objects.get(other=one.other),
        row.objects.get(children=child),
        row.objects.select_related("parent").get(pk=child.pk).parent,
        row.objects.prefetch_related("parent").get(pk=child.pk).parent,
        row.objects.in_bulk([one.pk])[one.pk],
    ):
        assert (found.pk, found.other, found.name) == (one.pk, one.other, "one")
        assert found.pk.__class__ is found.other.__class__ is kind.python
    [again] = row.objects.prefetch_related("children").filter(pk=one.pk)
    assert list(again.children.all()) == [child]
    assert row.objects.filter(pk=child.pk).values_list("pk", "parent", "parent_id", "other").get() == (
        child.pk,
        one.pk,
        one.pk,
        None,
    )
    assert row.objects.filter(parent=one).aggregate(Count("pk")) == {"pk__count": 1}
    assert row.objects.filter(parent=one).latest("pk") == child
    again.name = "two"
    again.save()
    one.refresh_from_db()
    assert one.name == "two"
    assert row.objects.filter(pk=one.pk).update(other=None) == 1
    assert row.objects.filter(other__isnull=True, pk=one.pk).exists()
    assert row.objects.filter(pk__in=row.objects.filter(pk=one.pk).values("pk")).get() == one
    if kind.size and not kind.layout:
        assert row.objects.get(pk=bytes(one.pk)) == one


@each
def test_column_sorts_in_the_order_of_the_ids(row):
    made = [row(name="order") for _ in range(300)]
    random.Random(1).shuffle(made)
    row.objects.bulk_create(made)
    ids = sorted(each.pk for each in made)
    assert list(row.objects.filter(name="order").order_by("pk").values_list("pk", flat=True)) == ids
    assert row.objects.filter(name="order", pk__gt=ids[100]).count() == 199
    assert row.objects.filter(name="order", pk__range=(ids[10], ids[19])).count() == 10


@each
def test_new_row_is_one_statement(row):
    with CaptureQueriesContext(
        connection,
    ) as queries:
        row.objects.create()
    assert [each["sql"].split()[0] for each in queries if each["sql"].split()[0] not in ("SAVEPOINT", "RELEASE")] == [
        "INSERT"
    ]


def test_new_instance_is_inserted_without_a_select():
    for new in (Tag(name="inserted"), Order(), Tweet()):
        with CaptureQueriesContext(connection) as queries:
            new.save()
        assert [each["sql"].split()[0] for each in queries if each["sql"][:6] in ("INSERT", "UPDATE")] == ["INSERT"]


@each
def test_duplicate_id_is_refused(row):
    id = row.objects.create(other=row._meta.pk.mint())
    with pytest.raises(IntegrityError), transaction.atomic():
        row.objects.create(other=id.other)
    with pytest.raises(IntegrityError), transaction.atomic():
        row(pk=id.pk).save()


def test_heeranjid_no_manager_is_needed():
    """HeeRanjID mints in a custom manager, so rows created without the manager have no ID."""
    assert type(Order.objects) is models.Manager
    assert Order().pk.__class__ is sno.ID
    through = Order.tags.through
    tags = [Tag(name=f"tag {number}") for number in range(3)]
    assert [each.pk for each in tags] == [None] * 3
    Tag.objects.bulk_create(tags)
    order = Order()
    order.save()
    order.tags.add(*tags)
    ids = [*through.objects.filter(order=order).values_list("pk", flat=True), *(each.pk for each in tags)]
    assert len(set(ids)) == 6
    assert all(snowflake.DEFAULT.parse(each).time.year >= 2026 for each in ids)
    assert order.tags.count() == 3
    order.tags.set(tags[:1])
    assert [each.name for each in order.tags.all()] == ["tag 0"]


def test_every_kind_of_insert_mints():
    made = [
        Tag.objects.get_or_create(name="a")[0],
        Tag.objects.update_or_create(name="b")[0],
        *Tag.objects.bulk_create([Tag(name="c"), Tag(name="d")]),
        *Tag.objects.bulk_create([Tag(name="e")], ignore_conflicts=True),
        *Tag._base_manager.bulk_create([Tag(name="f")]),
        Group.objects.create(name="g"),
        User.objects.create_user("h"),
    ]
    assert len({each.pk for each in made}) == 8
    assert all(each.pk > 2**53 for each in made)
    call_command("createsuperuser", "--noinput", username="super", email="super@example.com", verbosity=0)
    assert User.objects.get(username="super").pk > 2**53
    historical = Order.objects.model
    assert historical.objects.create().pk.time.year >= 2026


def test_thousand_rows_are_one_statement():
    with CaptureQueriesContext(connection) as queries:
        Tweet.objects.bulk_create([Tweet() for _ in range(200)])
        Tag.objects.bulk_create([Tag(name=f"many {number}") for number in range(1000)])
    inserts = [each for each in queries if each["sql"].startswith("INSERT")]
    assert len(inserts) == (2 if VENDOR != "sqlite" else len(inserts))
    assert Tag.objects.filter(name__startswith="many ").count() == 1000


def test_automatic_key_is_set_when_the_instance_is_saved():
    tag = Tag(name="late")
    assert tag.pk is None
    assert tag != Tag(name="late")
    tag.save()
    first = tag.pk
    tag.name = "later"
    tag.save()
    assert tag.pk == first
    copy = Tag(name="copy")
    copy.pk = 7
    copy.save()
    assert Tag.objects.get(pk=7).name == "copy"
    tag.pk = None
    tag.name = "another"
    tag._state.adding = True
    tag.save()
    assert tag.pk > first
    assert Tag.objects.filter(pk=-1).first() is None
    assert Tag.objects.filter(pk=2**64).first() is None


def test_snowflakes_have_their_layout():
    before = snowflake.TWITTER.min_at(datetime.now(UTC) - timedelta(minutes=1))
    tweet = Tweet.objects.create(about=snowflake.DISCORD.min_at(MAY))
    found = Tweet.objects.get(pk=tweet.pk)
    assert found.pk > before
    assert found.reply > before
    assert found.safe < 2**53
    assert {type(each) for each in (found.pk, found.reply, found.safe, found.about)} == {int}
    assert Tweet.objects.filter(about__minted_between=(MAY, MAY + timedelta(seconds=1))).get() == tweet
    with pytest.raises(errors.FieldError, match="outside"):
        Tweet.objects.filter(safe=2**53)
    assert Tweet._meta.pk.minted_at(tweet.pk) > MAY


def test_unsigned_64_bit_ids_need_an_unsigned_column():
    largest = 2**64 - 1
    tweet = Tweet.objects.create(about=largest)
    Tweet.objects.create(about=7)
    assert Tweet.objects.get(about=largest).about == largest
    assert Tweet.objects.filter(about__gt=2**63).get() == tweet
    assert Tweet.objects.filter(about__isnull=False).order_by("about").values_list("about", flat=True)[0] == 7


def test_layout_beyond_bigint_is_no_automatic_key():
    with pytest.raises(errors.ConfigError, match="64 bits"):
        type("Wide", (ours.SnowflakeAutoField,), {"layout": snowflake.DISCORD})
    narrow = type("Narrow", (ours.SnowflakeAutoField,), {"layout": snowflake.JS_SAFE, "__module__": __name__})
    assert narrow(primary_key=True).get_pk_value_on_save(None) < 2**53
    for wrong in ("nonsense", 7, None):
        with pytest.raises(errors.ConfigError):
            ours.SnowflakeField(layout=wrong)


@pytest.mark.parametrize("wrong", ["", "no id", b"x", 1.5, True, "9" * 5000, object()])
@each
def test_invalid_id_is_refused_before_the_database(row, wrong):
    with CaptureQueriesContext(connection) as queries:
        with pytest.raises(errors.MintError) as caught:
            row.objects.get(pk=wrong)
        with pytest.raises(errors.MintError):
            row.objects.create(pk=wrong)
        with pytest.raises(ValidationError):
            row._meta.pk.to_python(wrong)
    assert not [each for each in queries if "SAVEPOINT" not in each["sql"]]
    assert len(str(caught.value)) < 300


def test_unsupported_storage_form_is_refused():
    for field, form in ((ours.XIDField, "uuid"), (ours.NanoIDField, "bytes"), (ours.SnoField, "char")):
        with pytest.raises(errors.ConfigError, match="form of"):
            field(form=form)


# Times


def rows_with_time():
    return [each for each in ROWS.values() if kind_of(each).has_time]


@pytest.mark.parametrize("row", rows_with_time(), ids=lambda row: row.__name__)
def test_rows_of_a_time_are_a_range_of_keys(row):
    kind = kind_of(row)
    ids = [kind.min_at(MAY), kind.max_at(JUNE - timedelta(seconds=2)), kind.min_at(JUNE)]
    for id in ids:
        row.objects.create(pk=id, name="time")
    rows = row.objects.filter(name="time").order_by("pk")

    def pks(**query):
        return list(rows.filter(**query).values_list("pk", flat=True))

    assert pks(id__minted_after=MAY) == ids
    assert pks(pk__minted_after=MAY + timedelta(seconds=2)) == ids[1:]
    assert pks(id__minted_before=JUNE) == ids[:2]
    assert pks(id__minted_before=MAY) == []
    assert pks(id__minted_between=(MAY, JUNE)) == ids[:2]
    assert list(rows.exclude(id__minted_between=(MAY, JUNE)).values_list("pk", flat=True)) == ids[2:]
    child = row.objects.create(parent_id=ids[0])
    assert row.objects.filter(parent__id__minted_before=JUNE).get() == child
    assert row._meta.pk.minted_at(ids[0]) == MAY


@each
def test_naive_datetime_is_refused(row):
    lookups = ("minted_after", "minted_before")
    if not kind_of(row).has_time:
        for lookup in (*lookups, "minted_between"):
            with pytest.raises(FieldError, match="Unsupported lookup"):
                row.objects.filter(**{f"id__{lookup}": MAY})
        return
    for lookup in lookups:
        with pytest.raises(errors.FieldError, match="has no time zone"):
            row.objects.filter(**{f"id__{lookup}": datetime(2024, 5, 1)})
        for wrong in (5, "2024-05-01", MAY.date(), None):
            with pytest.raises((errors.ArgumentError, ValueError)):
                row.objects.filter(**{f"id__{lookup}": wrong})
    for wrong in (MAY, (MAY,), (MAY, 5), "ab"):
        with pytest.raises(errors.ArgumentError):
            row.objects.filter(id__minted_between=wrong)


def test_time_query_uses_the_index_of_the_key():
    if VENDOR != "postgresql":
        pytest.skip("plans differ")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE shop_order")
        cursor.execute("SET enable_seqscan = off")
    plan = Order.objects.filter(id__minted_between=(MAY, JUNE)).explain()
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = on")
    assert "Index Cond" in plan


# TypeIDs

USERS = ROWS["typeid", "uuid"]


def test_typeid_is_found_by_its_suffix():
    user = USERS.objects.create()
    assert (user.pk.prefix, user.pk.as_uuid().version) == ("user", 7)
    for below in (user.pk.as_uuid(), bytes(user.pk), uuid.ID(bytes(user.pk)), ulid.ID(bytes(user.pk)), str(user.pk)):
        assert USERS.objects.get(pk=below).pk == user.pk
        assert USERS(pk=below, other=below).other == below
    row = ROWS["uuid", "uuid"].objects.create(pk=user.pk)
    row.refresh_from_db()
    assert ROWS["uuid", "uuid"].objects.get(pk=user.pk).pk == uuid.ID(bytes(user.pk))
    assert USERS._meta.pk.minted_at(user.pk) == uuid.ID(bytes(user.pk)).time
    assert USERS._meta.pk.minted_at(typeid.ID("user", ulid.ID.from_int(5))) is None


def test_typeid_of_another_prefix_is_refused():
    other = typeid.new("order")
    for wrong in (other, str(other)):
        for ask in (lambda: USERS.objects.get(pk=wrong), lambda: USERS.objects.create(pk=wrong)):  # noqa: B023
            with pytest.raises(errors.ParseError, match='has the prefix "order", needs "user"'):
                ask()
        with pytest.raises(ValidationError):
            USERS._meta.get_field("other").formfield().clean(wrong)
        field = rest.IDField(TypeID("user"))
        with pytest.raises(rest_serializers.ValidationError):
            field.run_validation(str(wrong))
    for wrong in ("User", "-", 5, None):
        with pytest.raises(errors.MintError):
            ours.TypeIDField(prefix=wrong)


def test_typeid_field_keeps_its_prefix_in_migrations():
    written = Path("shop/migrations/0001_initial.py").read_text(encoding="utf-8")
    assert (
        "mintage.ext.django.TypeIDField(default=mintage.ext.django.TypeIDMinter('user'), editable=False, form='text', "
        "prefix='user', primary_key=True" in written
    )
    field = ours.TypeIDField(prefix="user", primary_key=True)
    assert field.clone().deconstruct() == field.deconstruct()
    assert hash(ours.TypeIDMinter("user")) == hash(field.default)
    assert field.default != ours.TypeIDMinter("order")
    assert field.default().prefix == "user"


# Fixtures, JSON


@each
@pytest.mark.parametrize("form", ["json", "xml"])
def test_fixtures_contain_the_text_of_ids(row, form):
    one = row.objects.create(other=row._meta.pk.mint(), name="fixture")
    child = row.objects.create(parent=one, name="fixture")
    dumped = serializers.serialize(form, [one, child])
    assert str(one.pk) in dumped
    row.objects.filter(name="fixture").delete()
    for each in serializers.deserialize(form, dumped):
        each.save()
    assert row.objects.get(pk=one.pk).other == one.other
    assert row.objects.get(pk=child.pk).parent == one
    assert row.objects.get(pk=child.pk).other is None


def test_dumpdata_and_loaddata_restore_the_rows(order, tmp_path):
    order.tags.add(Tag.objects.get_or_create(name="dumped")[0])
    file = tmp_path / "dump.json"
    call_command("dumpdata", "shop.order", "shop.tag", "shop.user", "auth", output=str(file), verbosity=0)
    before = sorted(Order.objects.values_list("pk", flat=True))
    Order.objects.all().delete()
    call_command("loaddata", str(file), verbosity=0)
    assert sorted(Order.objects.values_list("pk", flat=True)) == before
    assert order.tags.count() == 1
    [record] = [each for each in json.loads(file.read_text()) if each["pk"] == str(order.pk)]
    assert record["fields"]["tags"] == list(order.tags.values_list("pk", flat=True))


def test_fixture_without_keys_gets_them(tmp_path):
    file = tmp_path / "keyless.json"
    file.write_text(json.dumps([{"model": "shop.tag", "fields": {"name": "keyless"}}]))
    call_command("loaddata", str(file), verbosity=0)
    assert Tag.objects.get(name="keyless").pk > 2**53


def test_django_ulid_151_json_encodes_ids(order):
    order.extra = {"id": order.pk, "ids": [ulid.new()]}
    order.save()
    assert Order.objects.get(pk=order.pk).extra == {"id": str(order.pk), "ids": [str(order.extra["ids"][0])]}
    for kind in KINDS.values():
        one = kind.new()
        answer = JsonResponse({"id": one, "at": MAY}, encoder=ours.JSONEncoder)
        assert json.loads(answer.content) == {"id": one if kind.layout else str(one), "at": "2024-05-01T00:00:00Z"}
    user = typeid.new("user")
    assert json.loads(JsonResponse({"id": user}, encoder=ours.JSONEncoder).content) == {"id": str(user)}
    with pytest.raises(TypeError):
        JsonResponse({"id": object()}, encoder=ours.JSONEncoder)


def test_django_ulid_61_driver_receives_known_types():
    """psycopg: can't adapt type 'ULID'."""
    for row in ROWS.values():
        id = row._meta.pk.mint()
        with connection.cursor() as cursor:
            field = row._meta.pk
            value = field.get_db_prep_value(id, connection)
            cursor.execute(f"INSERT INTO {row._meta.db_table} (id, name) VALUES (%s, '')", [value])
        assert row.objects.filter(pk=id).exists()


def test_django_ulid_154_storage_form_is_an_option():
    assert {form for name, form in ROWS if name == "ulid"} == {"bytes", "uuid", "text"}
    with connection.cursor() as cursor:
        row = ROWS["ulid", "text"].objects.create()
        cursor.execute(f"SELECT id FROM {row._meta.db_table} WHERE id = %s", [str(row.pk)])
        assert cursor.fetchone() == (str(row.pk),)


def test_vd2org_snowflake_6_processes_have_different_numbers():
    """Each gunicorn worker had the same instance number; the advice was to run a second service."""
    ids = []
    for _ in range(2):
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            os.write(write, str(Tag._meta.pk.get_pk_value_on_save(None)).encode())
            os._exit(0)
        os.waitpid(pid, 0)
        ids.append(int(os.read(read, 100)))
    ids.append(Tag._meta.pk.get_pk_value_on_save(None))
    assert len({snowflake.DEFAULT.parse(each).node for each in ids}) == 3


# Forms


class OrderForm(forms.ModelForm):
    class Meta:
        model = Order
        fields = ("buyer", "public", "title")


def test_form_accepts_the_text_of_an_id(order):
    id = ulid.new()
    form = OrderForm({"public": f" {id} ", "buyer": str(order.buyer_id), "title": "one"}, instance=order)
    assert form.is_valid(), form.errors
    assert form.cleaned_data["public"] == id
    assert form.save().public == id
    again = OrderForm(
        instance=Order.objects.get(pk=order.pk), data={"public": str(id), "buyer": str(order.buyer_id), "title": "one"}
    )
    assert not again.has_changed()
    assert f'value="{id}"' in str(again["public"])
    assert OrderForm({"public": "", "buyer": ""}, instance=order).is_valid()


def test_form_reports_invalid_text():
    form = OrderForm({"public": "<script>", "buyer": "x"})
    assert not form.is_valid()
    [error] = form.errors.as_data()["public"]
    assert error.code == "parse.length"
    assert "8 characters" in str(form.errors["public"])
    assert form.errors["buyer"]
    taken = ulid.new()
    Order.objects.create(public=taken)
    assert "already exists" in str(OrderForm({"public": str(taken)}).errors["public"])


@each
def test_every_field_has_a_form_field(row):
    field = row._meta.get_field("other").formfield()
    id = row._meta.pk.mint()
    assert field.clean(str(id)) == field.clean(id) == id
    assert field.clean("") is None
    assert not field.has_changed(id, str(id))
    with pytest.raises(ValidationError):
        field.clean("no id")
    assert row._meta.pk.formfield(required=True).required


@each
def test_part_of_a_text_is_found_only_in_a_column_of_text(row):
    row.objects.all().delete()
    one = row.objects.create()
    text, other = str(one.pk), row.objects.create(pk=kind_of(row).example)
    is_text = row._meta.pk.form == "text"
    for name, part in (("startswith", text[:-3]), ("contains", text[2:-1]), ("icontains", text[2:-1])):
        assert list(row.objects.filter(**{f"pk__{name}": part})) == ([one] if is_text else [])
        assert list(row.objects.exclude(**{f"pk__{name}": part}).filter(pk=one.pk)) == ([] if is_text else [one])
        assert row.objects.get(**{f"pk__{name}": text}) == one
        assert not row.objects.filter(**{f"pk__{name}": "é"})
    assert row.objects.get(pk__iexact=text) == one != other
    row.objects.filter(pk=one.pk).update(name=text[:-3])
    if is_text:
        named = row.objects.exclude(name="")
        assert named.get(pk__startswith=F("name")) == named.get(pk__contains=Value(text[2:-1])) == one


@pytest.mark.parametrize("name", ["contains", "icontains", "iexact", "startswith", "istartswith"])
def test_search_for_a_text_is_pickled(order, name):
    again = Order.objects.all()
    again.query = pickle.loads(pickle.dumps(Order.objects.filter(**{f"pk__{name}": str(order.pk)}).query))
    assert again.get() == order


# URLs


@pytest.mark.parametrize("name", NAMED)
def test_path_converter_yields_the_id(name):
    id = KINDS[name].new() if name in KINDS else typeid.new("user")
    found = resolve(reverse(name, args=[id]))
    assert found.kwargs["pk"] == (id.as_uuid() if name == "uuid" else id)
    assert reverse(name, args=[str(id)]) == reverse(name, args=[id]) == f"/{name}/{id}/"
    assert json.loads(Client().get(f"/{name}/{id}/").content)["pk"] == (id if name == "snowflake" else str(id))
    for wrong in ("x", "9" * 40, f"{id}xy"):
        with pytest.raises(Resolver404):
            resolve(f"/{name}/{wrong}/")
        with pytest.raises(NoReverseMatch):
            reverse(name, args=[wrong])
    with pytest.raises(NoReverseMatch):
        reverse(name, args=[1.5])


# Admin


@visited
def test_django_ulid_143_admin_pages_show_the_text(row, admin):
    row.objects.all().delete()
    one = row.objects.create(other=row._meta.pk.mint())
    base = f"/admin/shop/{row._meta.model_name}/"
    page = admin.get(base)
    assert str(one.pk) in page.content.decode()
    from django.contrib.admin.utils import quote

    url = reverse(f"admin:shop_{row._meta.model_name}_change", args=[quote(one.pk)])
    assert url in page.content.decode()
    change = admin.get(url)
    assert change.status_code == 200
    assert f'value="{one.other}"' in change.content.decode()
    other = row._meta.pk.mint()
    assert admin.post(url, {"other": str(other), "name": "changed"}).status_code == 302
    one.refresh_from_db()
    assert (one.other, one.name) == (other, "changed")
    assert "no id" in admin.post(url, {"other": "no id", "name": "x"}).content.decode()
    assert admin.get(f"{base}{quote(one.pk)}/delete/").status_code == 200
    assert admin.get(f"{base}{quote(one.pk)}/history/").status_code == 200
    for wrong in ("x", "9" * 40):
        assert admin.get(f"{base}{wrong}/change/").status_code == 302
    found = admin.get(base, {"q": str(one.pk)}).content.decode()
    assert found.count('name="_selected_action"') == 1
    in_part = row._meta.pk.form == "text"
    for text, is_found in (("nothing here", False), (str(one.pk)[:-1], in_part), ("%", False)):
        assert ('"_selected_action"' in admin.get(base, {"q": text}).content.decode()) == is_found
    action = {"action": "delete_selected", "_selected_action": str(one.pk)}
    assert "Are you sure" in admin.post(base, action).content.decode()
    assert admin.post(base, {**action, "post": "yes"}).status_code == 302
    assert not row.objects.filter(pk=one.pk).exists()


def test_admin_adds_a_row_and_shows_its_time(admin, order):
    answer = admin.post(
        "/admin/shop/order/add/",
        {"buyer": order.buyer_id, "title": "added", "extra": "{}", "lines-TOTAL_FORMS": 0, "lines-INITIAL_FORMS": 0},
    )
    assert answer.status_code == 302, answer.content.decode()
    added = Order.objects.get(title="added")
    page = admin.get(f"/admin/shop/order/{added.pk}/change/").content.decode()
    assert "Minted at" in page
    assert f"{added.pk.time:%Y}" in page
    assert str(order.buyer_id) in page  # of the raw key's widget
    listed = admin.get("/admin/shop/order/", {"o": "3"}).content.decode()
    assert "Minted at" in listed
    from django.contrib.admin.models import LogEntry

    assert LogEntry.objects.filter(object_id=str(added.pk)).get().pk > 2**53
    data = {
        "form-TOTAL_FORMS": 1,
        "form-INITIAL_FORMS": 1,
        "form-0-id": str(added.pk),
        "form-0-title": "listed",
        "_save": "1",
    }
    assert admin.post(f"/admin/shop/order/?q={added.pk}", data).status_code == 302
    assert Order.objects.get(pk=added.pk).title == "listed"


def test_admin_changes_inline_rows(admin, order):
    line = Line.objects.create(order=order)
    prefix = {"lines-TOTAL_FORMS": 2, "lines-INITIAL_FORMS": 1}
    new = sno.new()
    rows = {
        "lines-0-id": line.pk,
        "lines-0-order": str(order.pk),
        "lines-0-reference": str(line.reference),
        "lines-1-order": str(order.pk),
        "lines-1-reference": str(new),
    }
    answer = admin.post(f"/admin/shop/order/{order.pk}/change/", {"title": "x", "extra": "{}", **prefix, **rows})
    assert answer.status_code == 302, answer.content.decode()
    assert sorted(order.lines.values_list("reference", flat=True)) == sorted([line.reference, new])


def test_admin_finds_a_row_by_the_text_of_a_related_id(admin, order):
    page = admin.get("/admin/shop/order/", {"q": str(order.buyer_id)}).content.decode()
    assert str(order.pk) in page
    line = Line.objects.create(order=order)
    page = admin.get("/admin/shop/line/", {"q": str(line.pk)}).content.decode()
    assert page.count('name="_selected_action"') == 1


def test_autocomplete_of_the_admin_uses_text(admin, order):
    query = {"term": str(order.pk), "app_label": "shop", "model_name": "line", "field_name": "order"}
    answer = json.loads(admin.get("/admin/autocomplete/", query).content)
    assert answer["results"] == [{"id": str(order.pk), "text": str(order)}]
    page = admin.get(f"/admin/shop/line/{Line.objects.create(order=order).pk}/change/").content.decode()
    assert f'<option value="{order.pk}" selected>' in page


@visited
def test_admin_filters_by_time(row, admin):
    if not kind_of(row).has_time:
        pytest.skip("no order by time")
    row.objects.filter(name="filtered").delete()
    old = row.objects.create(pk=kind_of(row).min_at(MAY + timedelta(days=1)), name="filtered")
    new = row.objects.create(name="filtered")
    base = f"/admin/shop/{row._meta.model_name}/"
    for word, has in (
        ("today", False),
        ("week", False),
        ("month", False),
        ("year", False),
        ("nonsense", True),
        ("", True),
    ):
        page = admin.get(base, {"q": "filtered", "id__minted": word}).content.decode()
        assert (str(old.pk) in page, str(new.pk) in page) == (has, True), word
    assert "Past 7 days" in page


def test_session_keeps_its_user(admin):
    session = admin.session
    assert session["_auth_user_id"] == str(User.objects.get(username="root").pk)


# Django REST framework


@pytest.fixture
def api(migrated):
    return Client(headers={"accept": "application/json"})


def send(client, method, path, data):
    return getattr(client, method)(path, json.dumps(data), content_type="application/json")


def test_drf_9733_and_9721_database_integers_are_json_strings(api):
    """JavaScript rounded 1574013452252262400, and there was only BigAutoField."""
    tag, other = Tag.objects.get_or_create(name="x")[0], Tag.objects.get_or_create(name="y")[0]
    user = User.objects.create_user("drf")
    made = send(
        api, "post", "/api/orders/", {"buyer": str(user.pk), "tags": [str(tag.pk), str(other.pk)], "title": "t"}
    )
    assert made.status_code == 201, made.content
    body = json.loads(made.content)
    assert body["buyer"] == str(user.pk)
    assert body["tags"] == [str(tag.pk), str(other.pk)]
    order = Order.objects.get(pk=body["id"])
    assert order.buyer_id == user.pk
    assert {type(each) for each in (body["id"], body["buyer"], *body["tags"])} == {str}
    assert json.loads(api.get(f"/api/users/{user.pk}/").content) == {"id": str(user.pk), "username": "drf"}
    assert json.loads(api.get(f"/api/orders/{order.pk}/").content) == body
    tweet = send(api, "post", "/api/tweets/", {"safe": "5", "reply": None, "about": str(2**60)})
    assert json.loads(tweet.content) == {"id": tweet.json()["id"], "reply": None, "safe": "5", "about": str(2**60)}
    assert Tweet.objects.get(pk=tweet.json()["id"]).about == 2**60


def test_serializer_yields_id_objects(order):
    from shop.api import Lines

    data = Lines.serializer_class(data={"order": str(order.pk), "reference": str(sno.new())})
    assert data.is_valid(), data.errors
    assert data.validated_data["order"] == order
    assert isinstance(data.validated_data["reference"], sno.ID)
    line = data.save()
    assert data.data == {"id": str(line.pk), "order": str(order.pk), "reference": str(line.reference)}
    assert isinstance(line.pk, int)


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("orders", {"public": "no id"}),
        ("orders", {"public": 5}),
        ("orders", {"public": ["x"]}),
        ("orders", {"buyer": "x"}),
        ("orders", {"tags": ["-"]}),
        ("lines", {"order": "x"}),
        ("lines", {"order": {}}),
        ("tweets", {"safe": str(2**53)}),
        ("tweets", {"safe": -1}),
        ("tweets", {"safe": True}),
        ("tweets", {"safe": 1.5}),
        ("tweets", {"safe": "9" * 5000}),
        ("tweets", {"about": 2**53}),
        ("tweets", {"about": 2**53 + 1}),
        ("orders", {"buyer": 2**60}),
        ("orders", {"buyer": True}),
        ("orders", {"tags": [2**53]}),
        ("lines", {"order": 5}),
    ],
)
def test_invalid_id_is_answered_with_400(api, path, data):
    answer = send(api, "post", f"/api/{path}/", data)
    assert answer.status_code == 400, answer.content
    assert set(answer.json()) & set(data)
    assert len(answer.content) < 300


@pytest.mark.parametrize("number", [int, float], ids=["integer", "float"])
def test_foreign_key_as_a_large_number_is_refused(api, order, number):
    """The row exists, so only the type of its key in JSON is wrong."""
    tag, coupon = Tag.objects.create(name=f"rounded {number.__name__}"), Coupon.objects.create()
    for pk in (order.buyer_id, tag.pk, coupon.code):
        assert pk > 2**53
    for path, name, pk in (("orders", "buyer", order.buyer_id), ("orders", "tags", tag.pk)):
        data = {name: [number(pk)] if name == "tags" else number(pk)}
        answer = send(api, "post", f"/api/{path}/", data)
        assert answer.status_code == 400, answer.content
        assert "must be text" in answer.content.decode()
    form = redemptions()(data={"coupon": number(coupon.code)})
    assert not form.is_valid()
    assert "must be text" in str(form.errors["coupon"])
    small, _ = User.objects.get_or_create(pk=7, defaults={"username": "small"})
    answer = send(api, "post", "/api/orders/", {"buyer": number(7)})
    assert answer.status_code == (201 if number is int else 400), answer.content
    assert small.pk == 7


def redemptions():
    meta = type("Meta", (), {"model": Redemption, "fields": ("coupon",)})
    return type("Redemptions", (rest_serializers.ModelSerializer,), {"Meta": meta})


def test_foreign_key_to_another_field_is_text_too():
    coupon, serializer = Coupon.objects.create(), redemptions()
    assert type(serializer().fields["coupon"]) is rest.SlugRelatedField
    given = serializer(data={"coupon": str(coupon.code)})
    assert given.is_valid(), given.errors
    assert given.save().coupon == coupon
    assert given.data == {"coupon": str(coupon.code)}
    assert serializer(Redemption.objects.create()).data == {"coupon": None}
    for wrong in ("x", str(2**62), [], {}, True):
        assert not serializer(data={"coupon": wrong}).is_valid()


def test_relation_to_a_model_without_ids_is_unchanged():
    class Tags(rest_serializers.Serializer):
        tag = rest.SlugRelatedField(slug_field="name", queryset=Tag.objects.all())
        buyer = rest.SlugRelatedField(slug_field="buyer__id", queryset=Order.objects.all(), required=False)

    tag = Tag.objects.create(name="by name")
    given = Tags(data={"tag": "by name"})
    assert given.is_valid(), given.errors
    assert given.validated_data == {"tag": tag}
    assert Tags({"tag": tag}).data == {"tag": "by name"}
    order = Order.objects.create(buyer=User.objects.create_user("of a slug"))
    assert Tags(data={"tag": "by name", "buyer": str(order.buyer_id)}).is_valid()
    assert not Tags(data={"tag": "by name", "buyer": order.buyer_id}).is_valid()
    assert Tags({"tag": tag, "buyer": order}).data["buyer"] == str(order.buyer_id)


def test_hyperlink_contains_the_text_of_an_id(order):
    from django.test import RequestFactory

    class Linked(rest_serializers.Serializer):
        order = rest_serializers.HyperlinkedRelatedField(view_name="order-detail", queryset=Order.objects.all())

    context = {"request": RequestFactory().get("/")}
    url = Linked({"order": order}, context=context).data["order"]
    assert url == f"http://testserver/api/orders/{order.pk}/"
    given = Linked(data={"order": url}, context=context)
    assert given.is_valid(), given.errors
    assert given.validated_data == {"order": order}
    for wrong in (5, 2.0**60, order.pk, "x", url[:-2] + "/", url.replace("orders", "users")):
        assert not Linked(data={"order": wrong}, context=context).is_valid()


def test_path_with_an_invalid_id_is_answered_with_404(api):
    for path in ("orders/x", "orders/<>", "users/x", "users/99999999999999999999999", "lines/-1", "refunds/x"):
        assert api.get(f"/api/{path}/").status_code == 404, path


def test_key_that_is_a_relation_is_text_too(api, order):
    line = Line.objects.create(order=order)
    made = send(api, "post", "/api/refunds/", {"order": str(order.pk)})
    assert made.json() == {"order": str(order.pk), "lines": [str(line.pk)]}
    assert Refund.objects.get().pk == order.pk
    assert api.get(f"/api/refunds/{order.pk}/").json() == made.json()


@each
def test_every_field_has_a_serializer_field(row):
    meta = type("Meta", (), {"model": row, "fields": ("id", "other", "parent")})
    serializer = type("Serializer", (rest_serializers.ModelSerializer,), {"Meta": meta})
    parent = row.objects.create()
    other = row._meta.pk.mint()
    given = serializer(data={"other": str(other), "parent": str(parent.pk)})
    assert given.is_valid(), given.errors
    assert given.validated_data["other"] == other
    saved = given.save()
    assert given.data == {"id": str(saved.pk), "other": str(other), "parent": str(parent.pk)}
    assert serializer(parent).data == {"id": str(parent.pk), "other": None, "parent": None}
    again = serializer(data={"other": str(other)})
    assert not again.is_valid()
    assert again.errors["other"][0].code == "unique"


def test_schema_describes_ids(api, capsys):
    from drf_spectacular.generators import SchemaGenerator

    schema = SchemaGenerator().get_schema(request=None, public=True)
    parts = schema["components"]["schemas"]
    order = parts["Order"]["properties"]
    id = order["id"]
    assert id == {**rest.schema(KINDS["sno"]), "readOnly": True}
    assert re.fullmatch(id["pattern"], str(sno.new()))
    assert not re.fullmatch(id["pattern"], "no id")
    assert order["public"] == {**rest.schema(KINDS["ulid"]), "nullable": True}
    snowflakes = rest.schema(KINDS["snowflake"])
    assert snowflakes["type"] == "string"
    assert snowflakes["pattern"] == f"^{KINDS['snowflake'].format.pattern}$"
    assert order["buyer"] == {**snowflakes, "nullable": True}
    assert order["tags"]["items"] == snowflakes
    assert parts["User"]["properties"]["id"] == {**snowflakes, "readOnly": True}
    assert parts["Line"]["properties"]["order"] == rest.schema(KINDS["sno"])
    assert parts["Redemption"]["properties"]["coupon"] == {**snowflakes, "nullable": True}
    paths = schema["paths"]
    [parameter] = paths["/api/orders/{id}/"]["get"]["parameters"]
    assert parameter["schema"]["type"] == "string"
    [parameter] = paths["/api/users/{id}/"]["get"]["parameters"]
    assert {**snowflakes, "description": parameter["schema"].get("description")} == parameter[
        "schema"
    ] or snowflakes == parameter["schema"]
    assert "could not" not in capsys.readouterr().err


# Traps that are no one test's


def test_typeid_38_default_is_an_importable_function():
    for name, field in ours.FIELDS.items():
        default = field(primary_key=True).default
        assert default is KINDS[name].new
        assert MigrationWriter.serialize(default) == (f"mintage.{name}.new", {f"import mintage.{name}"})


def test_django_21400_one_setting_gives_every_model_its_key():
    from django.conf import settings

    assert settings.DEFAULT_AUTO_FIELD == "mintage.ext.django.SnowflakeAutoField"
    assert type(Tag._meta.pk) is type(Order.tags.through._meta.pk) is ours.SnowflakeAutoField
    assert type(User._meta.pk) is type(Permission._meta.pk) is ours.SnowflakeAutoField
    assert issubclass(ours.SnowflakeAutoField, models.AutoField)


def test_w001_warns_where_processes_share_no_store(monkeypatch):
    monkeypatch.delenv("MINTAGE_STORE", raising=False)
    [warning] = [each for each in checks.run_checks(include_deployment_checks=True) if each.id == "mintage.W001"]
    assert "MINTAGE_STORE" in warning.hint
    assert not [each for each in checks.run_checks() if each.id == "mintage.W001"]
    monkeypatch.setenv("MINTAGE_STORE", "sqlite:///x.db")
    assert not [each for each in checks.run_checks(include_deployment_checks=True) if each.id == "mintage.W001"]


def run_checks(*apps_):
    """Return the output of ``manage.py check`` with more apps, run in a process of its own."""
    environment = {**os.environ, "EXTRA_APPS": json.dumps(apps_)}
    command = [sys.executable, "manage.py", "check"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120).stderr


STARTED = """
from django.contrib.contenttypes.fields import GenericForeignKey
from django.contrib.contenttypes.models import ContentType
from django.db import models
from mintage import sno
from mintage.ext.django import SnoField


class Post(models.Model):
    number = SnoField(default=sno.new())
    type = models.ForeignKey(ContentType, models.CASCADE)
    object_id = models.PositiveIntegerField()
    about = GenericForeignKey("type", "object_id")
"""


@pytest.mark.skipif(VENDOR != "sqlite", reason="checks ask no database")
def test_generated_app_is_warned_of_its_traps():
    call_command("startapp", "blog")
    app, models_ = Path("blog/apps.py"), Path("blog/models.py")
    if "default_auto_field" not in app.read_text():  # Django 6.0 writes none
        app.write_text(app.read_text() + "    default_auto_field = 'django.db.models.BigAutoField'\n")
    assert "mintage." not in run_checks("blog")
    models_.write_text(STARTED)
    said = run_checks("blog")
    assert set(re.findall(r"mintage\.W\d+", said)) == {"mintage.W002", "mintage.W003", "mintage.W004"}
    [line] = [each.strip() for each in app.read_text().splitlines() if "default_auto_field" in each]
    number = app.read_text().splitlines().index(f"    {line}") + 1
    assert f"In {app.resolve()}:{number}, delete the line {line!r} of BlogConfig" in said
    assert "blog.Post have keys that the database counts" in said
    assert "blog.Post.object_id is PositiveIntegerField" in said
    assert "blog.Post.number: (mintage.W003) The default is one ID" in said
    app.write_text(app.read_text().replace(line, f"label = {'blog'!r}"))
    models_.write_text(STARTED.replace("sno.new()", "sno.new").replace("PositiveI", "PositiveBigI"))
    assert "mintage." not in run_checks("blog")


def test_w002_is_silent_if_nothing_is_to_change(monkeypatch):
    from django.conf import settings

    class Named(AppConfig):
        default_auto_field = "django.db.models.BigAutoField"

    config = Named("legacy", import_module("legacy"))
    monkeypatch.setattr(apps, "get_app_configs", lambda: [config])
    counted = SimpleNamespace(label="legacy.Old", pk=models.BigAutoField(primary_key=True, auto_created=True))
    own = SimpleNamespace(label="legacy.Own", pk=models.BigAutoField(primary_key=True))

    def said(*found):
        monkeypatch.setattr(config, "get_models", lambda: [SimpleNamespace(_meta=meta) for meta in found])
        return [each.id for each in ours.checks.check_default_key(None)]

    assert said(counted) == ["mintage.W002"]
    assert said() == said(own) == said(Tag._meta) == []
    monkeypatch.setattr(config, "path", "/lib/site-packages/legacy")
    assert said(counted) == []
    monkeypatch.setattr(config, "path", "/srv/legacy")
    for name in ("django.db.models.BigAutoField", "nothing.at.all"):
        monkeypatch.setattr(settings, "DEFAULT_AUTO_FIELD", name)
        assert said(counted) == []


def test_w005_warns_if_rest_framework_lacks_the_fields(monkeypatch):
    assert ours.checks.check_rest(None) == []
    monkeypatch.setattr(apps, "is_installed", lambda name: name == "rest_framework")
    [warning] = ours.checks.check_rest(None)
    assert (warning.id, warning.hint) == ("mintage.W005", 'Add "mintage.ext.django" to INSTALLED_APPS.')


def test_w006_names_a_declared_serializer_field():
    assert ours.checks.check_serializers(None) == []
    plain = rest_serializers.PrimaryKeyRelatedField

    class Declared(rest_serializers.ModelSerializer):
        buyer = plain(queryset=User.objects.all())
        tags = plain(queryset=Tag.objects.all(), many=True)
        lines = plain(read_only=True, many=True)
        by_code = rest_serializers.SlugRelatedField(slug_field="code", queryset=Coupon.objects.all())
        by_name = rest_serializers.SlugRelatedField(slug_field="name", queryset=Tag.objects.all())
        keyed = plain(queryset=Order.objects.all(), pk_field=rest.IDField("sno"))
        ours = rest.PrimaryKeyRelatedField(queryset=Order.objects.all())

        class Meta:
            model = Order
            fields = "__all__"

    found = ours.checks.check_serializers(None)
    assert {each.id for each in found} == {"mintage.W006"}
    names = [each.msg.split(" is ")[0].rpartition(".")[2] for each in found]
    assert sorted(names) == ["buyer", "by_code", "lines", "tags"]
    assert found[0].hint.startswith("Use mintage.ext.django.rest.")
    del Declared, found
    gc.collect()
    assert ours.checks.check_serializers(None) == []


def test_generators_use_the_store_of_the_settings(monkeypatch):
    from django.conf import settings

    config = apps.get_app_config("mintage")
    monkeypatch.delenv("MINTAGE_STORE", raising=False)
    monkeypatch.setattr(settings, "MINTAGE_STORE", "sqlite:///y.db", raising=False)
    config.ready()
    assert os.environ["MINTAGE_STORE"] == "sqlite:///y.db"
    monkeypatch.setattr(settings, "MINTAGE_STORE", "sqlite:///z.db")
    config.ready()
    assert os.environ["MINTAGE_STORE"] == "sqlite:///y.db"


def test_project_passes_its_checks():
    out = StringIO()
    call_command("check", stdout=out, stderr=out)
    assert "no issues" in out.getvalue()


def test_async_queries_mint():
    import asyncio

    async def made():
        return [await Tag.objects.acreate(name=f"async {number}") for number in range(3)]

    if VENDOR != "sqlite":
        return
    assert len({each.pk for each in asyncio.run(made())}) == 3


def test_set_operations_and_expressions_support_ids():
    row = ROWS["sno", "bytes"]
    made = [row.objects.create(name="set") for _ in range(4)]
    ids = [each.pk for each in made]
    assert row.objects.filter(pk__in=set(ids)).count() == 4
    assert row.objects.filter(models.Q(pk=ids[0]) | models.Q(pk__gte=ids[3]), name="set").count() == 2
    case = models.Case(models.When(pk=ids[2], then=models.Value(0)), default=models.Value(1))
    assert row.objects.filter(name="set").order_by(case, "pk").first().pk == ids[2]
    assert row.objects.filter(pk=ids[0]).annotate(same=models.F("pk")).get().same == ids[0]
    assert row.objects.filter(pk=models.Value(ids[1], output_field=ours.SnoField())).get() == made[1]
    first, second = row.objects.filter(name="set").order_by("pk")[:2]
    row.objects.bulk_update([first, second], ["name"])
    first.other, second.other = sno.new(), sno.new()
    row.objects.bulk_update([first, second], ["other"])
    assert row.objects.get(pk=second.pk).other == second.other
    union = row.objects.filter(pk=ids[0]).values_list("pk").union(row.objects.filter(pk=ids[1]).values_list("pk"))
    assert sorted(itertools.chain(*union)) == ids[:2]
    assert list(row.objects.filter(name="set").order_by("pk").values_list("pk", flat=True).iterator()) == ids


# --- the store in the same database (last, as it deletes the rows) ---------------------------------------------------


def test_commands_of_django_ignore_the_tables_of_a_store():
    with open_store(os.environ["STORE"]) as store:
        assert store.reserve("invoice", 10).last == 10
        before = store.describe()
        call_command("makemigrations", "--check", verbosity=0)
        said = StringIO()
        call_command("sqlflush", stdout=said)
        assert "shop_order" in said.getvalue()
        assert "mintage_" not in said.getvalue()
        call_command("flush", interactive=False, verbosity=0)
        call_command("migrate", verbosity=0)
        assert not Order.objects.exists()
        assert store.reserve("invoice", 10).last == 20
        assert store.describe().identity == before.identity
        assert store.describe().warnings == before.warnings == ()


@pytest.mark.skipif(VENDOR == "sqlite", reason="SQLite refuses a file whose tables are gone")
def test_models_that_would_drop_store_tables_are_reported():
    with open_store(os.environ["STORE"]) as store:
        store.reserve("invoice", 10)
        said = StringIO()
        call_command("inspectdb", "mintage_namespace", stdout=said)
        assert "managed = False" in said.getvalue()
        tables = [name for name in connection.introspection.table_names() if name.startswith("mintage_")]
        with connection.schema_editor() as editor:
            for name in tables:
                editor.execute(editor.sql_delete_table % {"table": editor.quote_name(name)})
        with pytest.raises(errors.StoreError, match="has lost namespaces"):
            store.reserve("invoice", 10)
