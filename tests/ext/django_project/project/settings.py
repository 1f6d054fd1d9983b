from __future__ import annotations

import json
import os

import pymysql

DATABASES = {"default": json.loads(os.environ["DATABASE"])}
if DATABASES["default"]["ENGINE"].endswith("mysql"):
    pymysql.install_as_MySQLdb()

SECRET_KEY = "not a secret"
ALLOWED_HOSTS = ["testserver"]
ROOT_URLCONF = "project.urls"
USE_TZ = True
STATIC_URL = "static/"
AUTH_USER_MODEL = "shop.User"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "mintage.ext.django.SnowflakeAutoField"
MIGRATION_MODULES = {each: f"project.contrib_migrations.{each}" for each in ("auth", "admin", "contenttypes")}
INSTALLED_APPS = [
    "project.apps.Auth",
    "project.apps.ContentTypes",
    "project.apps.Admin",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "mintage.ext.django",
    "shop",
    "legacy",
    *json.loads(os.environ.get("EXTRA_APPS", "[]")),
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
REST_FRAMEWORK = {"DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema"}
SPECTACULAR_SETTINGS = {"TITLE": "shop", "VERSION": "1"}
