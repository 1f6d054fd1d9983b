"""IDs as arguments and results of Celery's tasks, in the serializer ``json`` of kombu.

>>> from kombu.utils import json
>>> from mintage import sno
>>> from mintage.ext.kombu import register
>>> register()
>>> json.loads(json.dumps({"order": sno.ID.parse("brpk4q72xwf2m63l")}))
{'order': sno.ID.parse('brpk4q72xwf2m63l')}
"""

from __future__ import annotations

from mintage.formats.storage import CLASSES
from mintage.installation import missing

try:
    from kombu.utils.json import register_type
except ModuleNotFoundError as error:
    raise missing(error, "kombu") from None

__all__ = ["register"]


def register() -> None:
    """Make kombu's JSON carry IDs, for the whole process: a task receives the ID that its caller sent.

    Call it where the application of Celery is made, so that the callers and the workers both do. A snowflake is an
    ``int``, which kombu carries as a number.
    """
    for python, kind in CLASSES.items():
        register_type(python, f"mintage.{kind.name}", str, kind.read)
