"""The errors of mintage: one class for each reaction that a caller can have.

Each error carries a stable dotted ``code``. :data:`CATALOGUE` lists all codes with their class, their HTTP status,
their RESP error prefix, the exit code of the command line, and the remedy.

>>> from mintage.errors import CATALOGUE, LeaseError
>>> [code for code, entry in CATALOGUE.items() if entry.error is LeaseError and entry.http == 503]
['lease.none_free', 'lease.clock']
>>> print(CATALOGUE["config.store"].meaning, CATALOGUE["config.store"].remedy)
A store's URL is malformed, or no such store is known. Correct the URL; see `open_store`.
"""

from __future__ import annotations

__all__ = [
    "CATALOGUE",
    "ArgumentError",
    "ConfigError",
    "Entry",
    "FieldError",
    "GenerationError",
    "LeaseError",
    "MintError",
    "ParseError",
    "RequestError",
    "StoreError",
    "TransientError",
    "UniquenessWarning",
]


class MintError(Exception):
    """The base of all errors of mintage.

    :param message: the offending value, the limit and the remedy.
    :param code: a key of :data:`CATALOGUE`.

    >>> from mintage import sno
    >>> try:
    ...     sno.ID.parse("brpk4q72xwf2m63")
    ... except MintError as error:
    ...     print(error.code, "-", CATALOGUE[error.code].remedy)
    parse.length - Check that the ID was not cut or padded.
    """

    code: str

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(cls: type[MintError], args: tuple[str], state: dict[str, object]) -> MintError:
    error = cls.__new__(cls, *args)  # __init__ needs a code
    error.args = args
    error.__dict__.update(state)
    return error


class ArgumentError(MintError, TypeError):
    """An argument has the wrong type. Correct the call.

    >>> from mintage import sno
    >>> sno.ID.parse(None)
    Traceback (most recent call last):
    mintage.errors.ArgumentError: ...
    """


class ParseError(MintError, ValueError):
    """Text or bytes are not an ID. Reject the input.

    ``position`` is the 0-based index of the first offending character or byte, or ``None`` if the length is wrong.

    >>> from mintage import sno
    >>> try:
    ...     sno.ID.parse("brpk4q72xwf2m63z")
    ... except ParseError as error:
    ...     print(error.code, error.position)
    parse.character 15
    """

    position: int | None

    def __init__(self, message: str, *, code: str, position: int | None = None) -> None:
        super().__init__(message, code=code)
        self.position = position


class FieldError(MintError, ValueError):
    """A field's value does not fit its layout, or the ID has no such field. Correct the value.

    >>> from mintage import sno
    >>> try:
    ...     sno.Generator(7).new_at(-1)
    ... except FieldError as error:
    ...     print(error.code)
    time.range
    """


class ConfigError(MintError, ValueError):
    """The configuration of a generator, layout or store cannot work. Correct it.

    >>> from mintage.store import open_store
    >>> open_store("sqlight:///ids.db")
    Traceback (most recent call last):
    mintage.errors.ConfigError: no store is called 'sqlight': did you mean sqlite? ...
    """


class TransientError(MintError, RuntimeError):
    """The base of errors that a later retry may not meet, without a change by the caller.

    ``retry_after_ms`` is the number of milliseconds after which a retry can succeed. It is ``None`` if waiting does not
    help, or if the time is unknown.

    >>> error = LeaseError("all 64 node numbers are leased", code="lease.none_free", retry_after_ms=1500)
    >>> isinstance(error, TransientError), error.retry_after_ms
    (True, 1500)
    """

    retry_after_ms: int | None = None

    def __init__(self, message: str, *, code: str, retry_after_ms: int | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after_ms = retry_after_ms


class GenerationError(TransientError):
    """A generator cannot mint an ID now. Wait, or do what the message says.

    >>> from mintage.store import open_store
    >>> store = open_store("memory:GenerationError")
    >>> _ = store.create_namespace("tickets", maximum=100)
    >>> _ = store.reserve("tickets", 100)
    >>> try:
    ...     store.reserve("tickets", 1)
    ... except GenerationError as error:
    ...     print(error.code, error.retry_after_ms)
    namespace.exhausted None
    """


class LeaseError(TransientError):
    """A store refuses to lease a node number, or a lease was lost.

    >>> from mintage.store import open_store
    >>> try:
    ...     open_store("memory:LeaseError").revoke("orders", 7)
    ... except LeaseError as error:
    ...     print(error.code)
    lease.unknown
    """


class StoreError(TransientError):
    """A store is unreachable, or answered with an error; the driver's error is the ``__cause__``.

    ``is_lasting`` is True if only a change of the configuration helps, such as another password.

    >>> from mintage.store import open_store
    >>> try:
    ...     open_store("http://127.0.0.1:1").now_ms()
    ... except StoreError as error:
    ...     print(error.code, error.is_lasting)
    store.unavailable False
    """

    is_lasting: bool = False


class RequestError(TransientError):
    """The service refuses a request. Correct the request, send another key, or retry later.

    >>> error = RequestError("the key allows 60 requests a second", code="request.rate", retry_after_ms=250)
    >>> CATALOGUE[error.code].http, error.retry_after_ms
    (429, 250)
    """


class UniquenessWarning(RuntimeWarning):
    """IDs may repeat in the case that the message names, as nothing records which process uses which node number.

    Turn the warning into an error where repeated IDs are not acceptable:

    >>> import warnings
    >>> from mintage import sno
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", UniquenessWarning)
    ...     generator = sno.Generator(7)
    """


class Entry:
    """A row of :data:`CATALOGUE`.

    ``error`` is the class, ``http`` the HTTP status, ``resp`` the prefix of a RESP error, ``exit`` the exit code of the
    command line, ``meaning`` the explanation, and ``remedy`` the advice.

    >>> CATALOGUE["lease.clock"]
    Entry(LeaseError, http=503, resp='TRYAGAIN', exit=75)
    """

    # Not a NamedTuple or dataclass: the import of their module costs more than the rest of mintage.
    __slots__ = ("error", "exit", "http", "meaning", "remedy", "resp")

    def __init__(self, error: type[MintError], http: int, resp: str, exit: int, meaning: str, remedy: str) -> None:
        self.error = error
        self.http = http
        self.resp = resp
        self.exit = exit
        self.meaning = meaning
        self.remedy = remedy

    def __repr__(self) -> str:
        return f"Entry({self.error.__name__}, http={self.http}, resp={self.resp!r}, exit={self.exit})"


_PREFIXES = {401: "NOAUTH", 403: "NOPERM", 429: "TRYAGAIN", 503: "TRYAGAIN"}
"""The prefix of a RESP error by the HTTP status, where it is not ``ERR``."""

_CODES: dict[tuple[type[MintError], int, int], dict[str, tuple[str, str]]] = {
    (ArgumentError, 400, 2): {
        "argument.type": (
            "An argument has the wrong type.",
            "Pass the type that the message names.",
        ),
    },
    (ParseError, 400, 65): {
        "parse.length": (
            "The text or bytes have the wrong length.",
            "Check that the ID was not cut or padded.",
        ),
        "parse.character": (
            "A character is outside the scheme's alphabet.",
            "Correct the character at the position in the message; parsing never guesses case or look-alikes.",
        ),
        "parse.unknown": (
            "The value is not an ID of any known scheme.",
            "Check the value; see `mintage schemes`.",
        ),
    },
    (FieldError, 400, 65): {
        "field.range": (
            "A field's value is outside its range.",
            "Use a value within the limits in the message.",
        ),
        "field.format": (
            "A field's text is malformed, such as a MAC address.",
            "Write it as the message shows.",
        ),
        "field.version": (
            "A UUID is not of version b, so it has no such field.",
            "Check `.version` before you read locality's fields.",
        ),
        "time.naive": (
            "A datetime has no time zone.",
            "Give it one, such as `datetime.now(timezone.utc)`.",
        ),
        "time.range": (
            "A time is outside what the layout can hold.",
            "See the limits in the message.",
        ),
        "time.order": (
            "IDs of this scheme or layout do not sort by time.",
            "Keep a column for the time, or use a scheme whose IDs sort by it.",
        ),
    },
    (ConfigError, 500, 78): {
        "config.bounds": (
            "Sequence bounds leave too few numbers.",
            "Leave at least 6 numbers between them.",
        ),
        "config.policy": (
            "A policy or mode has no such value.",
            "Use one of the values in the message.",
        ),
        "config.clock": (
            "A clock is not usable.",
            "Pass a ManualClock, or a callable that returns nanoseconds.",
        ),
        "config.wait": (
            "`max_wait_ms` is out of range.",
            "Use a whole number of milliseconds, 0 or more.",
        ),
        "config.snapshot": (
            "A snapshot is malformed, or of a leased generator and restored without a store.",
            "Pass the value that `Generator.snapshot()` returned; add `store=` if the generator was leased.",
        ),
        "config.buffer": (
            "A buffer has items of another type, is read-only, not contiguous, or not a whole number of IDs.",
            "Pass a writable, contiguous buffer of the items and the size in the message.",
        ),
        "config.store": (
            "A store's URL is malformed, or no such store is known.",
            "Correct the URL; see `open_store`.",
        ),
        "config.home": (
            "`MINTAGE_HOME` is not an absolute path.",
            "Set it to the absolute path of a directory, or to nothing.",
        ),
        "config.driver": (
            "A store's driver is not installed.",
            "Install the extra that the message names.",
        ),
        "config.platform": (
            "The service runs on Linux and macOS only.",
            "Run it there, or in WSL, and name it as the store: http://….",
        ),
        "config.form": (
            "A scheme has no such storage form.",
            "Use one of the forms in the message.",
        ),
        "config.setting": (
            "A setting of the service has no such value, or there is no such setting.",
            "Correct the setting that the message names; see `mintage serve --help`.",
        ),
        "config.insecure": (
            "The service would accept every client: it has no keys, and its address is not loopback.",
            "Configure keys, or pass `--insecure` if only trusted clients reach the network.",
        ),
        "config.plan": (
            "A plan of Spark may give other rows, or the same in another order, when a part of it is run again.",
            "Name the columns of an `order`, or pass `checkpoint=True`.",
        ),
        "config.volatile": (
            "A server can lose acknowledged writes, such as a Redis server without an append-only file.",
            "Make the server keep all writes; or accept repeated IDs after a crash, by `volatile=1` in the URL.",
        ),
    },
    (ConfigError, 400, 78): {
        "config.layout": (
            "There is no such layout, or its fields are malformed or do not fit.",
            "Use a name in the message, or correct the field declaration.",
        ),
        "config.node": (
            "A node number is outside its layout, or outside the share of its pool.",
            "Use a node number within the limits.",
        ),
        "config.name": (
            "The name of a pool or namespace is malformed.",
            "Replace other characters, such as spaces and slashes, by `-`.",
        ),
        "config.span": (
            "`span_ms` is out of range.",
            "Use 1,000 to 86,400,000 milliseconds.",
        ),
    },
    (ConfigError, 409, 78): {
        "config.pool": (
            "The pool belongs to another layout than the generator's, or is said to be unused but was used.",
            "Name another pool; wait for the end of its quarantine.",
        ),
        "config.namespace": (
            "The namespace exists already.",
            "Use it as it is, or take another name.",
        ),
    },
    (GenerationError, 503, 75): {
        "clock.rollback": (
            "The clock went back further than the generator may wait.",
            "Wait `retry_after_ms`, or repair the clock.",
        ),
        "sequence.exhausted": (
            "All sequence numbers of this tick are used.",
            "Wait `retry_after_ms`, or spread the load over more nodes.",
        ),
    },
    (GenerationError, 409, 65): {
        "namespace.exhausted": (
            "The namespace is at its maximum, or has fewer integers left than were asked for.",
            "Create another namespace; trying again does not help.",
        ),
    },
    (GenerationError, 410, 65): {
        "namespace.retired": (
            "The namespace was retired: it has ended for good, and its name never starts again.",
            "Take another name.",
        ),
    },
    (GenerationError, 500, 70): {
        "clock.range": (
            "The clock is outside what the layout can hold.",
            "Repair the clock, or choose a layout that lasts longer.",
        ),
        "fork.shared_node": (
            "A forked child has its parent's node number.",
            "Create a generator in the child, with a node number of its own.",
        ),
        "generator.closed": (
            "The generator, sequence or client was closed.",
            "Create a new one.",
        ),
    },
    (GenerationError, 500, 71): {
        "system.random": (
            "The operating system gave no random bytes.",
            "Give the generator an explicit node number.",
        ),
    },
    (LeaseError, 503, 75): {
        "lease.none_free": (
            "Every node number of a pool is leased, or may still be in use.",
            "Wait `retry_after_ms`; stop a holder, or use a layout with more node numbers unless you chose one.",
        ),
        "lease.clock": (
            "This clock is far from the store's.",
            "Set the clock; run NTP.",
        ),
    },
    (LeaseError, 409, 70): {
        "lease.lost": (
            "A lease could not be extended: its node number was granted to another holder, or revoked.",
            'Create a new generator, or let this one take another node number: `on_lease_lost="move"`.',
        ),
    },
    (LeaseError, 409, 65): {
        "lease.unknown": (
            "A node number was never leased.",
            "See `mintage leases list`.",
        ),
        "lease.history": (
            "`new_at` was called with a time in which another holder may have minted, or in which `new` mints.",
            "Create a generator with `never_used=True` for old rows, and pass it earlier times.",
        ),
    },
    (StoreError, 503, 75): {
        "store.unavailable": (
            "A store cannot be reached, or did not answer in time.",
            "Wait `retry_after_ms`; mintage retries. Check that the server runs.",
        ),
    },
    (StoreError, 500, 69): {
        "store.refused": (
            "A store answered with an error, for example because of a wrong password or a missing right.",
            "Check what mintage needs there: the account's password and rights, the database, and free space.",
        ),
        "store.schema": (
            "A store's tables were made by a newer mintage.",
            "Upgrade mintage.",
        ),
    },
    (RequestError, 400, 65): {
        "request.malformed": (
            "A request to the service is malformed.",
            "Correct the request as the message says; see the reference of HTTP or of the Redis protocol.",
        ),
    },
    (RequestError, 401, 77): {
        "request.key": (
            "A request has no key, or a key that the service does not know.",
            "Send a key that the service is configured with; see `mintage keys new`.",
        ),
    },
    (RequestError, 403, 77): {
        "request.rights": (
            "The key has no right to this request.",
            "Give the key the right that the message names.",
        ),
        "request.namespaces": (
            "The service creates no more namespaces: it has `max_namespaces` of them.",
            "Raise `max_namespaces`, or create the namespace in the store: `mintage namespaces create`.",
        ),
    },
    (RequestError, 404, 65): {
        "request.path": (
            "The service has nothing at this path.",
            "See the reference of HTTP.",
        ),
        "request.namespace": (
            "The namespace does not exist, and the service creates none at first use.",
            "Create it, or turn on `auto_create`.",
        ),
    },
    (RequestError, 405, 65): {
        "request.method": (
            "A path of the service has no such method.",
            "Use one of the methods in the header `Allow`.",
        ),
    },
    (RequestError, 409, 65): {
        "request.stale": (
            "The state changed after the console's form was made, or the form was sent twice.",
            "Read what the action does now, and confirm that.",
        ),
    },
    (RequestError, 413, 65): {
        "request.size": (
            "A request is larger than the service accepts.",
            "Ask for less at once, or raise `max_request_bytes`.",
        ),
    },
    (RequestError, 429, 75): {
        "request.rate": (
            "The requests for a namespace or with a key exceed its rate.",
            "Wait `retry_after_ms`; ask for more IDs in one request, or raise the rate.",
        ),
    },
    (RequestError, 503, 75): {
        "request.busy": (
            "The service is overloaded or stopping.",
            "Wait `retry_after_ms`, or ask another instance.",
        ),
    },
    (RequestError, 500, 70): {
        "service.failed": (
            "The service failed because of a bug.",
            "Find the trace id in its log, and please report the bug.",
        ),
    },
}
"""Meaning and remedy of each code, by its class, HTTP status and exit code."""

CATALOGUE: dict[str, Entry] = {
    code: Entry(error, http, _PREFIXES.get(http, "ERR"), exit_code, meaning, remedy)
    for (error, http, exit_code), codes in _CODES.items()
    for code, (meaning, remedy) in codes.items()
}
"""All error codes, each with its class, statuses and remedy."""
