"""The metrics of the service, for Prometheus; and a store that times and counts its verbs.

With several workers, each counts in its own files under ``PROMETHEUS_MULTIPROC_DIR``, and the worker that is scraped
adds them all up. The successor of a worker continues its files, so a service that replaces many has no more of them.
Set that variable before you import this module.
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from itertools import product
from multiprocessing.process import current_process
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, disable_created_metrics, values
from prometheus_client.registry import Collector

from mintage import Sequence, __version__
from mintage._core.lane import Lane
from mintage.errors import CATALOGUE, MintError
from mintage.formats.kinds import NAMES
from mintage.platform import files
from mintage.server.core.events import Refusals
from mintage.server.core.otlp import Instruments
from mintage.server.core.usage import Usage
from mintage.store import Forwarding, Store
from mintage.telemetry import describe_store

HOT: Final = {"alloc": "http", "next": "http", "incr": "redis", "incrby": "redis"}
"""The operations of the hot path, and the interface of each."""
OPERATIONS: Final = frozenset(
    {*HOT, "reserve", "give_back", "mint", "describe", "create", "lease", "inspect", "get", "console", "other"}
)
"""The operations of requests. Any other request counts as ``other``, so that clients cannot create series."""
_KINDS: Final = ("counter", "histogram", "gauge_livemax", "gauge_livemin", "gauge_livemostrecent", "gauge_livesum")
"""The beginnings of the names of a worker's files."""
SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

# The creation times of series tell nothing here, and would double the page.
disable_created_metrics()  # type: ignore[no-untyped-call]
if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
    # Files bear the name of the process instead of its number, and a successor has the name of its predecessor.
    values.ValueClass = values.MultiProcessValue(lambda: current_process().name)  # type: ignore[no-untyped-call]


class Metrics:
    """All metrics of one worker, in a registry of their own. Threads may share it.

    With several workers, a gauge of what each worker has is the sum; a gauge of what all observe, such as the store, is
    the worst value.

    :param has_keys: whether keys are configured, whose names are then a label of counters.
    """

    def __init__(self, *, has_keys: bool = False) -> None:
        self.registry = registry = CollectorRegistry()
        self._directory = directory = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
        try:
            self.usage = Usage(Path(directory, f"usage-{current_process().name}") if directory else None)
        except OSError:
            # On a full disk, this worker counts for itself: nobody should lose the service for the counts.
            self.usage = Usage()
        """The counts of the last day, for people: they cost no series."""
        self._has_keys = has_keys
        by_key = ["key"] if has_keys else []
        self._seen: dict[tuple[str, str, str], tuple[int, int]] = {}
        self._instruments: Instruments | None = None
        """The same metrics for OpenTelemetry, if this process exports them."""

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=registry)

        def histogram(name: str, text: str, *labels: str) -> Histogram:
            return Histogram(name, text, labels, registry=registry, buckets=SECONDS)

        def gauge(name: str, text: str, mode: Any, *labels: str) -> Gauge:
            return Gauge(name, text, labels, registry=registry, multiprocess_mode=mode)

        self._requests = counter("mintage_requests", "Requests answered", "interface", "operation", "code", *by_key)
        self._integers = counter("mintage_integers", "Integers handed out", "namespace", *by_key)
        self._ids = counter("mintage_ids", "IDs minted", "scheme", *by_key)
        self._fallback = counter(
            "mintage_fallback_integers", "Random integers handed out, without the guarantee", "namespace"
        )
        self._failures = counter("mintage_store_failures", "Store verbs that failed or were refused", "verb", "code")
        workers_replaced(registry)
        self._store_seconds = histogram("mintage_store_seconds", "Seconds that a verb of the store took", "verb")
        self._request_seconds = histogram(
            "mintage_request_seconds", "Seconds that a request beyond the hot path took", "interface", "operation"
        )
        self._buffered = gauge(
            "mintage_buffered_integers", "Integers reserved and not yet handed out", "livesum", "namespace"
        )
        self._leases = gauge("mintage_leases", "Node numbers held", "livesum", "scheme")
        self.store_up = gauge("mintage_store_up", "1 while the store answers", "livemin")
        """0 before the first probe of the store."""
        self.clock_offset = gauge(
            "mintage_store_clock_offset_seconds", "This clock less the store's, in seconds", "livemostrecent"
        )
        self.namespace_days = gauge(
            "mintage_namespace_days_left", "Days until a namespace is used up at its present rate", "livemin",
            "namespace",
        )  # fmt: skip
        self.layout_days = gauge(
            "mintage_layout_days_left", "Days until a scheme's layout can hold no later time", "livemin", "scheme"
        )
        self._connections = gauge("mintage_connections", "Connections open", "livesum", "interface")
        self._draining = gauge("mintage_draining", "1 while the service stops", "livemax")
        gauge("mintage_info", "1; its label is the version", "livemax", "version").labels(__version__).set(1)

    def request(
        self, interface: str, operation: str, code: str, seconds: float | None = None, *, key: str = ""
    ) -> None:
        """Count an answer.

        :param code: ``"ok"``, or the code of the error.
        :param seconds: the time that the answer took; ``None`` if it was not measured.
        :param key: the name of a configured key; ``""`` for a request without a known one.
        """
        operation = operation if operation in OPERATIONS else "other"
        self._requests.labels(
            interface, operation, code if code in CATALOGUE or code == "ok" else "service.failed", *self._key(key)
        ).inc()
        if seconds is not None:
            self._request_seconds.labels(interface, operation).observe(seconds)

    def _key(self, name: str) -> tuple[str, ...]:
        return (name,) if self._has_keys else ()

    def integers(self, namespace: str, n: int, key: str = "") -> None:
        """Count integers of a namespace that exists, by the name of a key."""
        self._integers.labels(namespace, *self._key(key)).inc(n)
        self.usage.add("integers", namespace, n, key)

    def ids(self, scheme: str, n: int, key: str = "") -> None:
        """Count IDs of a scheme that exists, by the name of a key."""
        self._ids.labels(scheme, *self._key(key)).inc(n)
        self.usage.add("ids", scheme, n, key)

    def fallback(self, namespace: str, n: int) -> None:
        """Count integers of the last resort."""
        self._fallback.labels(namespace).inc(n)

    def verb(self, store: Store, verb: str, seconds: float, code: str) -> None:
        """Record the time that a verb of the store took, in seconds, and count it if it raised.

        :param code: ``"ok"``, or the code of the error.
        """
        if code != "ok":
            self._failures.labels(verb, code).inc()
        self._store_seconds.labels(verb).observe(seconds)
        if self._instruments is not None:
            attributes = describe_store(store) | {"db.operation.name": verb}
            if code != "ok":
                attributes["error.type"] = code
            self._instruments.verbs.record(seconds, attributes)

    def answer(self, seconds: float, attributes: Mapping[str, str | int]) -> None:
        """Record an HTTP request beyond the hot path for OpenTelemetry, under the names of its conventions."""
        if self._instruments is not None:
            self._instruments.requests.record(seconds, attributes)

    def export(self) -> None:
        """Export all metrics by OpenTelemetry as well, if this process uses that."""
        if "opentelemetry.metrics" in sys.modules:
            # What a predecessor counted was exported as its own.
            own = self._directory and _Files(self._directory, f"counter_{current_process().name}.db")
            self._instruments = Instruments(self.registry, own.collect() if own else ())

    def gather(
        self,
        lane: Lane,
        sequences: Mapping[str, Sequence],
        schemes: Collection[str],
        connections: Mapping[str, Collection[object]],
        *,
        draining: bool,
    ) -> None:
        """Add the counts of the hot path since the last call, and set the gauges.

        :param schemes: the schemes whose node numbers are leased.
        :param connections: the open connections, by interface.
        Never call it from two threads.
        """
        for namespace, key, operation, requests, integers in lane.counts():
            before = self._seen.get((namespace, key, operation), (0, 0))
            self._seen[namespace, key, operation] = (requests, integers)
            if requests > before[0]:
                self._requests.labels(HOT[operation], operation, "ok", *self._key(key)).inc(requests - before[0])
            if integers > before[1]:
                self.integers(namespace, integers - before[1], key)
        for namespace, sequence in sequences.items():
            self._buffered.labels(namespace).set(sequence.buffered)
        for scheme in NAMES:
            self._leases.labels(scheme).set(scheme in schemes)
        for interface, opened in connections.items():
            self._connections.labels(interface).set(len(opened))
        self._draining.set(draining)

    def render(self) -> tuple[bytes, str]:
        """Return the text of all workers' metrics, and its content type."""
        from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

        return generate_latest(self._of_all_workers()), CONTENT_TYPE_PLAIN_0_0_4

    def sums(self, name: str, label: str) -> dict[str, float]:
        """Return the sums of the samples with a name over all workers, by the value of a label."""
        found: defaultdict[str, float] = defaultdict(float)
        for family in self._of_all_workers().collect():
            for sample in family.samples:
                if sample.name == name:
                    found[sample.labels[label]] += sample.value
        return found

    def _of_all_workers(self) -> Collector:
        """Return a collector of the metrics of all workers."""
        return self.registry if self._directory is None else _Files(self._directory)


class _Files(Collector):
    """A collector of the metrics in the files of all workers, or in those that match a pattern."""

    def __init__(self, directory: str, pattern: str = "*.db") -> None:
        self._directory, self._pattern = Path(directory), pattern

    def collect(self) -> Iterable[Metric]:
        """Return the sums over all files."""
        from prometheus_client.multiprocess import MultiProcessCollector

        found = []
        for each in self._directory.glob(self._pattern):
            # A worker that starts has created an empty file, and one that has ended has no gauges any more.
            with suppress(FileNotFoundError):
                if each.stat().st_size:
                    found.append(str(each))
        merged: Iterable[Metric] = MultiProcessCollector.merge(found)  # type: ignore[no-untyped-call]
        return merged


def reserve_files(*processes: str) -> None:
    """Create the files in which processes will count, with their first room; raise OSError if there is none."""
    directory = os.environ["PROMETHEUS_MULTIPROC_DIR"]
    try:
        for kind, process in product(_KINDS, processes):
            files.create_full(os.path.join(directory, f"{kind}_{process}.db"), 1 << 16)
    except OSError as error:
        reason = f"{directory} has no room for metrics: {error.strerror}: free 4 MB for each worker, or set TMPDIR"
        raise OSError(error.errno, reason) from error


def workers_replaced(registry: CollectorRegistry | None = None) -> Counter:
    """Return the counter of workers that were replaced; the process that starts the workers counts them."""
    return Counter("mintage_workers_replaced", "Workers that died and were replaced", registry=registry)


class Metered(Forwarding):
    """A wrapper of a store that times its verbs and counts their failures."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        super().__init__(store)
        self.metrics = metrics
        self._refusals = Refusals()

    def forward(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        """Call a verb of the wrapped store."""
        began, code = time.perf_counter(), "ok"
        try:
            return super().forward(verb, *args, **kwargs)
        except MintError as error:
            code = error.code
            self._refusals.log(error, args[0] if args else "")
            raise
        except Exception:
            code = "store.refused"  # as the keeper reports it
            raise
        finally:
            self.metrics.verb(self, verb, time.perf_counter() - began, code)
