"""``"mintage.ext.django"`` in ``INSTALLED_APPS``: what else would be registered by hand."""

from __future__ import annotations

import os

from django.apps import AppConfig, apps
from django.conf import settings

from mintage.ext.django.checks import STORE
from mintage.ext.django.urls import register_converters
from mintage.lease.request import choose_store

__all__ = ["MintageConfig"]


class MintageConfig(AppConfig):  # type: ignore[misc]
    """Registers the converters of URLs, and the fields of Django REST framework and of drf-spectacular where installed.

    The setting ``MINTAGE_STORE`` names the store where the environment does not.
    """

    name = "mintage.ext.django"
    label = "mintage"
    verbose_name = "mintage"

    def ready(self) -> None:
        """Called by Django, when all apps are known.

        :raises ConfigError: ``config.store``, ``config.driver``: of the store's URL.
        """
        if store := getattr(settings, STORE, None):
            # The generators read it at the first ID, in this process and in those that it starts.
            os.environ.setdefault(STORE, str(store))
        # What is wrong with its URL is said now, and the first ID does not wait until its driver is imported. Nothing
        # is connected before that.
        choose_store(None)
        register_converters()
        if apps.is_installed("rest_framework"):
            from mintage.ext.django import rest

            rest.register()
