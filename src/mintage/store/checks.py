"""The checks of every verb's arguments: types and limits, before the store is asked.

:class:`mintage.store.Store` adds them to the verbs of each subclass, so that no store can omit one.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from mintage import rules
from mintage.errors import ArgumentError, ConfigError, FieldError, LeaseError
from mintage.rules import LATEST_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from mintage.rules import Lease, Segment


def _acquire(
    pool: str, *, nodes: range, layout: str, holder: str, now_ms: int, span_ms: int, never_used: bool = False
) -> None:
    rules.check_name(pool, "pool")
    rules.check_nodes(nodes)
    rules.check_text(layout, "layout", 1, 500)
    rules.check_text(holder, "holder", 0, 200)
    rules.check_int(now_ms, "now_ms", 0, LATEST_MS)
    rules.check_span(span_ms)
    _check_flag(never_used, "never_used")


def _check_flag(value: bool, what: str) -> None:
    if not isinstance(value, bool):
        raise ArgumentError(f"{what} is {type(value).__name__}, not bool", code="argument.type")


def _extend(lease: Lease, *, now_ms: int, next_token: str) -> None:
    rules.check_lease(lease)
    rules.check_int(now_ms, "now_ms", 0, LATEST_MS)
    rules.check_token(next_token)


def _release(lease: Lease, *, used_until_ms: int) -> None:
    rules.check_lease(lease)
    rules.check_int(used_until_ms, "used_until_ms")


def _revoke(pool: str, node: int) -> None:
    rules.check_name(pool, "pool")
    rules.check_int(node, "node")
    if not 0 <= node < rules.MAX_NODES:
        raise LeaseError(
            f"a node number outside 0..{rules.MAX_NODES - 1} of pool {pool!r} was never leased; "
            "see mintage leases list",
            code="lease.unknown",
        )


def _create_pool(
    pool: str,
    *,
    layout: str,
    span_ms: int = rules.SPAN_MS,
    never_used: bool = False,
    history_ms: int | None = None,
    nodes: range | None = None,
    wider_from_ms: int | None = None,
) -> None:
    rules.check_name(pool, "pool")
    rules.check_text(layout, "layout", 1, 500)
    rules.check_span(span_ms)
    _check_flag(never_used, "never_used")
    if history_ms is not None:
        rules.check_int(history_ms, "history_ms", 0, rules.MAX_HISTORY_MS)
    if nodes is not None:
        rules.check_nodes(nodes)
    if wider_from_ms is not None:
        rules.check_int(wider_from_ms, "wider_from_ms", 0, LATEST_MS)
        if nodes is None:
            raise ConfigError(
                f"wider_from_ms {wider_from_ms} is given without nodes: give the whole share as well",
                code="config.node",
            )


def _reserve(namespace: str, count: int, *, holder: str | None = None) -> None:
    rules.check_name(namespace, "namespace")
    rules.check_count(count)
    if holder is not None:
        rules.check_text(holder, "holder", 0, 200)


def _give_back(segment: Segment, first_unused: int) -> None:
    rules.check_segment(segment)
    rules.check_int(first_unused, "first_unused")


def _create_namespace(
    namespace: str, *, start: int | None = None, maximum: int = rules.MAX_INTEGER, stride: int = 1, offset: int = 0
) -> None:
    rules.check_name(namespace, "namespace")
    rules.create_namespace(namespace, "", start=start, maximum=maximum, stride=stride, offset=offset)


def _raise_floor(namespace: str, value: int) -> None:
    rules.check_name(namespace, "namespace")
    rules.check_value(value)


def _retire(namespace: str) -> None:
    rules.check_name(namespace, "namespace")


def _list_pools(after: str = "", limit: int = rules.MAX_COUNT) -> None:
    _check_page(after, limit, "pool")


def _list_leases(pool: str | None = None, after: int = -1, limit: int = rules.MAX_COUNT) -> None:
    if pool is not None:
        rules.check_name(pool, "pool")
    rules.check_int(after, "after", -1, rules.MAX_NODES - 1)
    rules.check_int(limit, "limit", 1, rules.MAX_COUNT)
    if pool is None and after >= 0:
        raise FieldError(f"after {after} is a node number of no pool: name the pool as well", code="field.range")


def _get_pool(pool: str) -> None:
    rules.check_name(pool, "pool")


def _list_grants(pool: str, node: int, before_ms: int = LATEST_MS, limit: int = rules.MAX_COUNT) -> None:
    rules.check_name(pool, "pool")
    rules.check_int(node, "node", 0, rules.MAX_NODES - 1)
    rules.check_int(before_ms, "before_ms", 0, LATEST_MS)
    rules.check_int(limit, "limit", 1, rules.MAX_COUNT)


def _get_namespace(namespace: str) -> None:
    rules.check_name(namespace, "namespace")


def _list_runs(namespace: str, before: int = rules.MAX_INTEGER, limit: int = rules.MAX_COUNT) -> None:
    rules.check_name(namespace, "namespace")
    rules.check_int(before, "before", 0, rules.MAX_INTEGER)
    rules.check_int(limit, "limit", 1, rules.MAX_COUNT)


def _list_namespaces(after: str = "", limit: int = rules.MAX_COUNT) -> None:
    _check_page(after, limit, "namespace")


def _check_page(after: str, limit: int, what: str) -> None:
    if after != "":
        rules.check_name(after, what)
    rules.check_int(limit, "limit", 1, rules.MAX_COUNT)


_CHECKS: Final[dict[str, Callable[..., None]]] = {
    "acquire": _acquire,
    "extend": _extend,
    "release": _release,
    "revoke": _revoke,
    "create_pool": _create_pool,
    "reserve": _reserve,
    "give_back": _give_back,
    "create_namespace": _create_namespace,
    "raise_floor": _raise_floor,
    "retire": _retire,
    "list_pools": _list_pools,
    "list_leases": _list_leases,
    "list_grants": _list_grants,
    "get_pool": _get_pool,
    "get_namespace": _get_namespace,
    "list_runs": _list_runs,
    "list_namespaces": _list_namespaces,
}


def guard(store: type[Any]) -> None:
    """Wrap the verbs that a class defines with the checks of their arguments."""
    for name, check in _CHECKS.items():
        if name in vars(store):
            setattr(store, name, _guarded(vars(store)[name], check))


def _guarded(verb: Callable[..., Any], check: Callable[..., None]) -> Callable[..., Any]:
    @wraps(verb)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        check(*args, **kwargs)
        return verb(self, *args, **kwargs)

    return checked
