"""Apps of Django with our primary keys, as they name a key class of Django themselves."""

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
