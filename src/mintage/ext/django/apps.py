"""The app ``"mintage.ext.django"`` for ``INSTALLED_APPS``, which registers converters and fields."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.db.backends.signals import connection_created
from django.db.migrations.serializer import BaseSerializer
from django.db.migrations.writer import MigrationWriter

from mintage.ext._drivers import accept_ids
from mintage.ext.django.checks import STORE
from mintage.ext.django.fields import IDField
from mintage.ext.django.urls import register_converters
from mintage.formats.storage import CLASSES, declared
from mintage.lease.request import choose_store

__all__ = ["MintageConfig"]


class MintageConfig(AppConfig):  # type: ignore[misc]
    """The app. It registers IDs with each connection's driver, URLs, migrations, and packages that are installed.

    The packages are Django REST framework, drf-spectacular and django-filter. A driver then accepts IDs in
    ``cursor.execute()``, ``raw()`` and other statements, each in the form of the models' columns. It refuses the IDs of
    a class that the models store in two forms.

    The setting ``MINTAGE_STORE`` names the store if the environment does not.

    Where ``INSTALLED_APPS`` has ``"mintage.ext.django"``, Django makes the app, and paths can have IDs:

    >>> from django.apps import apps
    >>> apps.get_app_config("mintage")
    <MintageConfig: mintage>
    >>> from django.urls import path
    >>> path("orders/<sno:pk>/", lambda request, pk: ...).resolve("orders/brpk4q72xwf2m63l/").kwargs
    {'pk': sno.ID.parse('brpk4q72xwf2m63l')}
    """

    name = "mintage.ext.django"
    label = "mintage"
    verbose_name = "mintage"

    def ready(self) -> None:
        """Register everything. Django calls this when it has loaded all apps.

        :raises ConfigError: ``config.store``, ``config.driver``: of the store's URL.
        """
        if store := getattr(settings, STORE, None):
            # Generators read it at the first ID, in this process and in its children.
            os.environ.setdefault(STORE, str(store))
        # This raises an error of the URL now, and imports the driver before the first ID. It does not connect.
        choose_store(None)
        register_converters()
        MigrationWriter.register_serializer(tuple(CLASSES), _IDSerializer)
        if apps.is_installed("rest_framework"):
            from mintage.ext.django import rest

            rest.register()
        if find_spec("django_filters"):
            from mintage.ext.django import filters

            filters.register()
        connection_created.connect(_accept_values, dispatch_uid="mintage")


class _IDSerializer(BaseSerializer):  # type: ignore[misc]
    """The text of an ID in a migration."""

    def serialize(self) -> tuple[str, set[str]]:
        module = type(self.value).__module__
        return f"{module}.ID.parse({str(self.value)!r})", {f"import {module}"}


def _accept_values(connection: Any, **_: object) -> None:
    """Make the driver of a new connection accept IDs, each in the form of the models' columns."""
    fields = [field for model in apps.get_models(include_auto_created=True) for field in model._meta.local_fields]
    forms = declared((each.kind.python, each.form) for each in fields if isinstance(each, IDField))
    accept_ids(connection.connection, forms)
