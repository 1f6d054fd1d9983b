"""Every error that mintage raises: one class per thing that a caller can do about it.

Each error carries a stable dotted ``code``. :data:`CATALOGUE` lists all codes with their class, their HTTP status,
their RESP error prefix, the exit code of the command line, and what to do next.
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
    "PassingError",
    "RequestError",
    "StoreError",
    "UniquenessWarning",
]


class MintError(Exception):
    """The base of every mintage error.

    :param message: one sentence with the offending value and the limit.
    :param code: a key of :data:`CATALOGUE`.
    """

    code: str

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(cls: type[MintError], args: tuple[str], state: dict[str, object]) -> MintError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class ArgumentError(MintError, TypeError):
    """An argument has the wrong type: fix the call."""


class ParseError(MintError, ValueError):
    """Text or bytes are not an ID: reject the input.

    ``position`` is the 0-based index of the first offending character or byte, or ``None`` where the length is wrong.
    """

    position: int | None

    def __init__(self, message: str, *, code: str, position: int | None = None) -> None:
        super().__init__(message, code=code)
        self.position = position


class FieldError(MintError, ValueError):
    """A field's value does not fit its layout, or the ID has no such field: correct the value."""


class ConfigError(MintError, ValueError):
    """A generator, layout or store was configured with something that cannot work: correct the configuration."""


class PassingError(MintError, RuntimeError):
    """The base of errors that may pass by themselves.

    ``retry_after_ms`` is how many milliseconds to wait before another try can succeed, or ``None`` where waiting does
    not help, or nobody knows how long.
    """

    retry_after_ms: int | None = None

    def __init__(self, message: str, *, code: str, retry_after_ms: int | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after_ms = retry_after_ms


class GenerationError(PassingError):
    """An ID cannot be minted now: wait, or repair what the message names."""


class LeaseError(PassingError):
    """A node number cannot be leased, or was lost."""


class StoreError(PassingError):
    """A store cannot be reached or answered with an error; the driver's error is the ``__cause__``.

    ``is_lasting`` is True where only somebody who changes the configuration can mend it, such as a wrong password.
    """

    is_lasting: bool = False


class RequestError(PassingError):
    """The service refuses a request: correct it, bring the right key, or come back later."""


class UniquenessWarning(RuntimeWarning):
    """IDs may repeat in a case that the message names: there is nowhere to write down who uses which node number."""


class Entry:
    """One row of :data:`CATALOGUE`.

    ``error`` is the class, ``http`` the status, ``resp`` the prefix of a RESP error, ``exit`` the exit code of the
    command line, ``meaning`` what happened and ``remedy`` what to do next.
    """

    # No NamedTuple or dataclass: importing what makes them costs more than all the rest of mintage.
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


def _entries(
    error: type[MintError], http: int, resp: str, exit: int, rows: dict[str, tuple[str, str]]
) -> dict[str, Entry]:
    return {code: Entry(error, http, resp, exit, meaning, remedy) for code, (meaning, remedy) in rows.items()}


CATALOGUE: dict[str, Entry] = {
    **_entries(
        ArgumentError,
        400,
        "ERR",
        2,
        {
            "argument.type": (
                "An argument has the wrong type.",
                "Pass the type that the message names.",
            ),
        },
    ),
    **_entries(
        ParseError,
        400,
        "ERR",
        65,
        {
            "parse.length": (
                "The text or bytes have the wrong length.",
                "Check that the ID was not cut or padded.",
            ),
            "parse.character": (
                "A character is outside the scheme's alphabet.",
                "Look at the position that the message names; parsing never guesses case or look-alikes.",
            ),
            "parse.unknown": (
                "The value is not an ID of any known scheme.",
                "Check the value; see `mintage schemes`.",
            ),
        },
    ),
    **_entries(
        FieldError,
        400,
        "ERR",
        65,
        {
            "field.range": (
                "A field's value is outside its range.",
                "Use a value within the limits in the message.",
            ),
            "field.format": (
                "A field's text is malformed, such as a MAC address.",
                "Use the form in the message.",
            ),
            "field.version": (
                "A UUID is not of version b, so it has no such field.",
                "Look at `.version` before reading locality's fields.",
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
    ),
    **_entries(
        ConfigError,
        500,
        "ERR",
        78,
        {
            "config.layout": (
                "A layout's fields are malformed or do not fit.",
                "Correct the field declaration.",
            ),
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
                "Use what `Generator.snapshot()` gave; pass `store=` where it was leased.",
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
            "config.form": (
                "IDs of a scheme are not stored in such a form.",
                "Use one of the forms in the message.",
            ),
            "config.setting": (
                "A setting of the service has no such value, or there is no such setting.",
                "Correct the setting that the message names; see `mintage serve --help`.",
            ),
            "config.insecure": (
                "The service would be open to everybody: it has no keys, and an address beyond loopback.",
                "Configure keys, or say `--insecure` where the network lets nobody in.",
            ),
            "config.plan": (
                "A plan of Spark may give other rows, or the same in another order, when a part of it is run again.",
                "Do what the message says: name the columns of an `order`, or pass `checkpoint=True`.",
            ),
            "config.volatile": (
                "A Redis server forgets what it stores: it has no append-only file.",
                "Turn on `appendonly`, or add `volatile=1` to the URL if you accept repeated IDs after a crash of it.",
            ),
        },
    ),
    **_entries(
        ConfigError,
        400,
        "ERR",
        78,
        {
            "config.node": (
                "A node number is outside its layout.",
                "Use a node number within the limits.",
            ),
            "config.name": (
                "The name of a pool or namespace is malformed.",
                "Use 1 to 128 letters, digits and `. _ : @ -`.",
            ),
            "config.span": (
                "`span_ms` is out of range.",
                "Use 1,000 to 86,400,000 milliseconds.",
            ),
        },
    ),
    **_entries(
        ConfigError,
        409,
        "ERR",
        78,
        {
            "config.pool": (
                "A pool's node numbers mean something else than the generator's.",
                "Name another pool.",
            ),
            "config.namespace": (
                "The namespace exists already.",
                "Use it as it is, or take another name.",
            ),
        },
    ),
    **_entries(
        GenerationError,
        503,
        "TRYAGAIN",
        75,
        {
            "clock.rollback": (
                "The clock went back further than the generator may wait.",
                "Wait `retry_after_ms`, or repair the clock.",
            ),
            "sequence.exhausted": (
                "All sequence numbers of this tick are used; or, without `retry_after_ms`, a namespace is used up.",
                "Wait `retry_after_ms`, or spread the load over more nodes; or make another namespace.",
            ),
        },
    ),
    **_entries(
        GenerationError,
        410,
        "ERR",
        65,
        {
            "namespace.retired": (
                "The namespace was retired: it has ended for good, and its name never starts again.",
                "Take another name.",
            ),
        },
    ),
    **_entries(
        GenerationError,
        500,
        "ERR",
        70,
        {
            "clock.range": (
                "The clock is outside what the layout can hold.",
                "Repair the clock, or choose a layout that lasts longer.",
            ),
            "fork.shared_node": (
                "A forked child holds its parent's node number.",
                "Make a new generator in the child, with a node number of its own.",
            ),
            "generator.closed": (
                "The generator, sequence or client was closed.",
                "Make a new one.",
            ),
        },
    ),
    **_entries(
        GenerationError,
        500,
        "ERR",
        71,
        {
            "system.random": (
                "The operating system gave no random bytes.",
                "Give the generator an explicit node number.",
            ),
        },
    ),
    **_entries(
        LeaseError,
        503,
        "TRYAGAIN",
        75,
        {
            "lease.none_free": (
                "Every node number of a pool is leased, or may still be in use.",
                "Wait `retry_after_ms`; stop a holder, or use a layout with more node numbers.",
            ),
            "lease.clock": (
                "This clock is far from the store's.",
                "Set the clock; run NTP.",
            ),
        },
    ),
    **_entries(
        LeaseError,
        409,
        "ERR",
        70,
        {
            "lease.lost": (
                "A lease could not be extended: its node number was granted to another, or revoked.",
                'Make a new generator, or let this one move by itself: `on_lease_lost="move"`.',
            ),
        },
    ),
    **_entries(
        LeaseError,
        409,
        "ERR",
        65,
        {
            "lease.unknown": (
                "A node number was never leased.",
                "See `mintage leases list`.",
            ),
            "lease.history": (
                "`new_at` was asked for times in which others may have had the node number, or `new` mints.",
                "Make a generator with `never_used=True` for old rows, and ask it for times before that.",
            ),
        },
    ),
    **_entries(
        StoreError,
        503,
        "TRYAGAIN",
        75,
        {
            "store.unavailable": (
                "A store cannot be reached, or did not answer in time.",
                "Wait `retry_after_ms`: it is tried again by itself. Check that the server runs.",
            ),
        },
    ),
    **_entries(
        StoreError,
        500,
        "ERR",
        69,
        {
            "store.refused": (
                "A store answered with an error, such as a wrong password or a missing right.",
                "Repair what the message names.",
            ),
            "store.schema": (
                "A store's tables were made by a newer mintage.",
                "Upgrade mintage.",
            ),
        },
    ),
    **_entries(
        RequestError,
        400,
        "ERR",
        65,
        {
            "request.malformed": (
                "A request to the service is not of its form.",
                "Correct what the message names; see the reference of HTTP or of the Redis protocol.",
            ),
        },
    ),
    **_entries(
        RequestError,
        401,
        "NOAUTH",
        77,
        {
            "request.key": (
                "A request brought no key, or one that the service does not know.",
                "Bring a key that the service is configured with; see `mintage keys new`.",
            ),
        },
    ),
    **_entries(
        RequestError,
        403,
        "NOPERM",
        77,
        {
            "request.rights": (
                "A key has no right to what was asked.",
                "Give the key the right that the message names.",
            ),
            "request.namespaces": (
                "The service makes no more namespaces: there are `max_namespaces` of them.",
                "Raise `max_namespaces`, or create the namespace in the store: `mintage namespaces create`.",
            ),
        },
    ),
    **_entries(
        RequestError,
        404,
        "ERR",
        65,
        {
            "request.path": (
                "The service has nothing at this path.",
                "See the reference of HTTP.",
            ),
            "request.namespace": (
                "There is no such namespace, and the service makes none at first use.",
                "Create it, or turn on `auto_create`.",
            ),
        },
    ),
    **_entries(
        RequestError,
        405,
        "ERR",
        65,
        {
            "request.method": (
                "A path of the service has no such method.",
                "Use one of the methods in the header `Allow`.",
            ),
        },
    ),
    **_entries(
        RequestError,
        413,
        "ERR",
        65,
        {
            "request.size": (
                "A request is larger than the service reads.",
                "Ask for less at once, or raise `max_request_bytes`.",
            ),
        },
    ),
    **_entries(
        RequestError,
        429,
        "TRYAGAIN",
        75,
        {
            "request.rate": (
                "A namespace or a key is asked more often than its rate allows.",
                "Wait `retry_after_ms`; ask for more at once, or raise the rate.",
            ),
        },
    ),
    **_entries(
        RequestError,
        503,
        "TRYAGAIN",
        75,
        {
            "request.busy": (
                "The service has too much to do, or is stopping.",
                "Wait `retry_after_ms`, or ask another instance.",
            ),
        },
    ),
    **_entries(
        RequestError,
        500,
        "ERR",
        70,
        {
            "service.failed": (
                "The service has a fault.",
                "Look in its log for the trace id, and please report it.",
            ),
        },
    ),
}
"""Every error code, its class and what it maps to."""
