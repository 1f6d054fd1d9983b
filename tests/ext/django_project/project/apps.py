"""Django's own apps, with our primary keys: they name one of Django's themselves."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig
from django.contrib.auth.apps import AuthConfig
from django.contrib.contenttypes.apps import ContentTypesConfig

KEY = "mintage.ext.django.SnowflakeAutoField"


class Auth(AuthConfig):
    default_auto_field = KEY


class ContentTypes(ContentTypesConfig):
    default_auto_field = KEY


class Admin(AdminConfig):
    default_auto_field = KEY
