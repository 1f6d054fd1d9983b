"""The checks of every verb's arguments: types and limits, before the store is asked.

:class:`mintage.store.Store` adds them to the verbs of each subclass, so that no store can omit one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial, wraps
from typing import Any, Final

from mintage import rules
from mintage.errors import ArgumentError, ConfigError, FieldError, LeaseError
from mintage.rules import LATEST_MS


def _check_flag(value: bool, what: str) -> None:
    if not isinstance(value, bool):
        raise ArgumentError(f"{what} is {type(value).__name__}, not bool", code="argument.type")


_ARGUMENTS: Final[dict[str, tuple[Callable[..., None], tuple[Any, ...]]]] = {
    "pool": (rules.check_name, ("pool",)),
    "namespace": (rules.check_name, ("namespace",)),
    "nodes": (rules.check_nodes, ()),
    "layout": (rules.check_text, ("layout", 1, 500)),
    "holder": (rules.check_text, ("holder", 0, 200)),
    "now_ms": (rules.check_int, ("now_ms", 0, LATEST_MS)),
    "span_ms": (rules.check_span, ()),
    "never_used": (_check_flag, ("never_used",)),
    "history_ms": (rules.check_int, ("history_ms", 0, rules.MAX_HISTORY_MS)),
    "wider_from_ms": (rules.check_int, ("wider_from_ms", 0, LATEST_MS)),
    "lease": (rules.check_lease, ()),
    "next_token": (rules.check_token, ()),
    "used_until_ms": (rules.check_int, ("used_until_ms",)),
    "count": (rules.check_int, ("count", 1, rules.MAX_COUNT)),
    "segment": (rules.check_segment, ()),
    "first_unused": (rules.check_int, ("first_unused",)),
    "value": (rules.check_int, ("value", 0, rules.MAX_INTEGER)),
    "before": (rules.check_int, ("before", 0, rules.MAX_INTEGER)),
    "before_ms": (rules.check_int, ("before_ms", 0, LATEST_MS)),
    "limit": (rules.check_int, ("limit", 1, rules.MAX_COUNT)),
}
"""The check of a parameter by its name, with its arguments after the value. ``None`` passes if it is the default."""


def _revoke(pool: str, node: int) -> None:
    rules.check_int(node, "node")
    if not 0 <= node < rules.MAX_NODES:
        raise LeaseError(
            f"a node number outside 0..{rules.MAX_NODES - 1} of pool {pool!r} was never leased",
            code="lease.unknown",
        )


def _create_pool(nodes: range | None = None, wider_from_ms: int | None = None, **_: Any) -> None:
    if wider_from_ms is not None and nodes is None:
        raise ConfigError(
            f"wider_from_ms {wider_from_ms} is given without nodes: give the whole share as well",
            code="config.node",
        )


def _create_namespace(namespace: str, **terms: Any) -> None:
    rules.create_namespace(namespace, "", **terms)


def _list_names(what: str, after: str = "", **_: Any) -> None:
    if after != "":
        rules.check_name(after, what)


def _list_leases(pool: str | None = None, after: int = -1, **_: Any) -> None:
    rules.check_int(after, "after", -1, rules.MAX_NODES - 1)
    if pool is None and after >= 0:
        raise FieldError(f"after {after} is a node number of no pool: name the pool as well", code="field.range")


def _list_grants(node: int, **_: Any) -> None:
    rules.check_int(node, "node", 0, rules.MAX_NODES - 1)


_VERBS: Final[dict[str, Callable[..., None]]] = {
    "revoke": _revoke,
    "create_pool": _create_pool,
    "create_namespace": _create_namespace,
    "list_pools": partial(_list_names, "pool"),
    "list_namespaces": partial(_list_names, "namespace"),
    "list_leases": _list_leases,
    "list_grants": _list_grants,
}
"""The check of a verb's other parameters, and of those that depend on each other."""


def guard(store: type[Any], verbs: type[Any]) -> None:
    """Wrap the verbs that a class defines with the checks of their arguments, as the class ``verbs`` declares them."""
    for name in verbs.__abstractmethods__ & vars(store).keys():
        setattr(store, name, _guarded(vars(store)[name], vars(verbs)[name]))


_signature: Final = cache(inspect.signature)


def _guarded(verb: Callable[..., Any], declared: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        signature = _signature(declared)
        _, *given = signature.bind(self, *args, **kwargs).arguments.items()
        for name, value in given:
            if name in _ARGUMENTS and not (value is None and signature.parameters[name].default is None):
                check, limits = _ARGUMENTS[name]
                check(value, *limits)
        if declared.__name__ in _VERBS:
            _VERBS[declared.__name__](**dict(given))
        return verb(self, *args, **kwargs)

    return checked
