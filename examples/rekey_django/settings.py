import os
from urllib.parse import unquote, urlsplit

DATABASE_URL = os.environ["DATABASE_URL"]
_parts = urlsplit(DATABASE_URL)
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _parts.path[1:],
        "USER": unquote(_parts.username or ""),
        "PASSWORD": unquote(_parts.password or ""),
        "HOST": _parts.hostname,
        "PORT": _parts.port,
    }
}
MINTAGE_STORE = DATABASE_URL
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["mintage.ext.django", "orders"]
USE_TZ = True
