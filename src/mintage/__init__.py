"""mintage mints unique IDs for distributed systems.

Each format has a module, such as :mod:`mintage.sno` (10 bytes that sort by time), :mod:`mintage.snowflake` (64-bit
integers), :mod:`mintage.uuid` and :mod:`mintage.ulid`; :class:`mintage.Sequence` counts integers. Where an ID contains
a node number, mintage leases it from a store that you already run, so that no two hosts use the same one.
:func:`mintage.inspect` names the fields of any ID.

>>> import mintage
>>> order = mintage.sno.new(meta=7)
>>> order.meta
7
>>> mintage.inspect(order)[0].name
'sno'
>>> mintage.cast(mintage.ulid.ID.parse("01ARZ3NDEKTSV4RRFFQ69G5FAV"), mintage.uuid.UUID)
UUID('01563e3a-b5d3-d676-4c61-efb99302bd5b')
>>> mintage.snowflake.new() < mintage.snowflake.new(), mintage.locality.new().version
(True, 'b')

The classes of :mod:`mintage.errors` say how a caller can react, and the code of an error says why:

>>> try:
...     mintage.sno.ID.parse("brpk4q72xwf2m63")
... except mintage.errors.ParseError as error:
...     error.code
'parse.length'

``__version__`` is the version of the package, such as for a log:

>>> f"mints IDs with mintage {mintage.__version__}"
'mints IDs with mintage ...'
"""

from __future__ import annotations

from mintage import errors
from mintage.installation import VERSION

try:
    from mintage._core.sequence import Sequence
    from mintage.process.forks import load as _load  # now, so that no fork happens in the middle of its import
except ImportError as error:
    from mintage.installation import explain

    explain(error)
    raise

# Type checkers read this as true. To import the one of typing would take longer than to import all of mintage.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from mintage import locality, sno, snowflake
    from mintage.client import AsyncClient, Client
    from mintage.clones import after_restore, before_snapshot, release_all
    from mintage.columns import column
    from mintage.formats.anatomy import Anatomy, inspect
    from mintage.formats.cast import cast, derive
    from mintage.store import Store, open_store

__all__ = [
    "Anatomy",
    "AsyncClient",
    "Client",
    "Sequence",
    "Store",
    "__version__",
    "after_restore",
    "before_snapshot",
    "cast",
    "column",
    "derive",
    "errors",
    "inspect",
    "locality",
    "open_store",
    "release_all",
    "sno",
    "snowflake",
]

__version__ = VERSION


_ELSEWHERE = {
    "Anatomy": "mintage.formats.anatomy",
    "AsyncClient": "mintage.client",
    "Client": "mintage.client",
    "after_restore": "mintage.clones",
    "before_snapshot": "mintage.clones",
    "cast": "mintage.formats.cast",
    "column": "mintage.columns",
    "derive": "mintage.formats.cast",
    "inspect": "mintage.formats.anatomy",
    "release_all": "mintage.clones",
    "Store": "mintage.store",
    "open_store": "mintage.store",
}


def __getattr__(name: str) -> object:
    # A process pays for the formats and functions that it uses.
    module = _ELSEWHERE.get(name)
    if module is not None:
        return getattr(_load(module), name)
    # A format has a module of the same name in the core, with its generator.
    core = _load("mintage._core")
    if name in __all__ or hasattr(getattr(core, name, None), "Generator"):
        return _load(f"mintage.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _register() -> None:
    # A runtime that has these hooks has imported them by now. In any other, the first lease looks for them: to import
    # them may take longer than to import all of mintage.
    import sys

    if sys.modules.get("snapshot_restore_py") is not None:
        from mintage.lease.snapshots import register

        register()


_register()
