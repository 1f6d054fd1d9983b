"""The app ``"mintage.ext.django"`` for ``INSTALLED_APPS``, which registers converters and fields."""

from __future__ import annotations

import os

from django.apps import AppConfig, apps
from django.conf import settings

from mintage.ext.django.checks import STORE
from mintage.ext.django.urls import register_converters
from mintage.lease.request import choose_store

__all__ = ["MintageConfig"]


class MintageConfig(AppConfig):  # type: ignore[misc]
    """The app. It registers converters of URLs, and fields of Django REST framework and drf-spectacular if installed.

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
        if apps.is_installed("rest_framework"):
            from mintage.ext.django import rest

            rest.register()
