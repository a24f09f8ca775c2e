"""Metrics for Prometheus. Counts of bandits are read from the bandits when Prometheus asks."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from sketchbandit_service.bandit import Bandit

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_COUNTERS = {
    "decisions": "Decisions made",
    "rewards": "Rewards received",
    "defaults": "Shown arms whose reward did not come in time",
}
_GAUGES = {
    "reward_sum": "Sum of all rewards",
    "open_decisions": "Decisions waiting for their reward",
    "policy_bytes": "Memory of the policy",
    "sketch_rows": "Rows of the sketch",
    "certificate": "Bound on the spectral error of the sketch",
    "candidates": "Candidates that learn beside the policy",
}
_VALUES = {
    "value": "What a candidate would have earned, on average",
    "low": "The lower end of its interval",
    "high": "The upper end of its interval",
}


class Instruments:
    """The registry, and the metrics that are counted as things happen."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.commit_seconds = self._histogram("commit_seconds", "Time of a group commit", _SECONDS)
        self.commit_records = self._histogram(
            "commit_records", "Records in a group commit", (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
        )
        self.commit_failures = self._counter("commit_failures", "Commits that failed")
        self.damaged_records = self._counter("damaged_records", "Records changed in the database")
        self.estimates_left_out = self._counter(
            "estimates_left_out", "Propensities that were not estimated for lack of time"
        )
        self.judgements_left_out = self._counter(
            "judgements_left_out", "Decisions about which candidates were not asked for lack of time"
        )
        self._request_seconds = self._histogram("request_seconds", "Time of a request", _SECONDS, ("route",))
        self._responses = self._counter("responses", "Responses by status", ("status",))
        self._children: dict[tuple[str, int], tuple[Histogram, Counter]] = {}

    def saw(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        found = self._children.get((route, status))
        if found is None:
            found = self._request_seconds.labels(route), self._responses.labels(str(status))
            self._children[route, status] = found
        found[0].observe(seconds)
        found[1].inc()

    def watch(self, bandits: Callable[[], Iterable[Bandit]], quarantined: Callable[[], int]) -> None:
        """Report on these bandits too, and on how many are out of service."""
        self.registry.register(_Bandits(bandits))
        told = "Bandits that are out of service"
        Gauge("sketchbandit_quarantined_bandits", told, registry=self.registry).set_function(quarantined)

    def exposition(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(f"sketchbandit_{name}", text, labels, registry=self.registry)

    def _histogram(
        self, name: str, text: str, buckets: tuple[float, ...], labels: tuple[str, ...] = ()
    ) -> Histogram:
        return Histogram(f"sketchbandit_{name}", text, labels, buckets=buckets, registry=self.registry)


class _Bandits(Collector):
    def __init__(self, bandits: Callable[[], Iterable[Bandit]]) -> None:
        self._bandits = bandits

    def collect(self) -> Iterable[Metric]:
        counters = {
            name: CounterMetricFamily(f"sketchbandit_{name}", text, labels=["bandit"])
            for name, text in _COUNTERS.items()
        }
        gauges = {
            name: GaugeMetricFamily(f"sketchbandit_{name}", text, labels=["bandit"])
            for name, text in _GAUGES.items()
        }
        values = {
            name: GaugeMetricFamily(f"sketchbandit_candidate_{name}", text, labels=["bandit", "candidate"])
            for name, text in _VALUES.items()
        }
        for bandit in self._bandits():
            label = [bandit.name]
            for name, counter in counters.items():
                counter.add_metric(label, getattr(bandit.accounts.totals, name))
            known = bandit.about(is_one_of_many=True)
            sketch = known.described.sketch
            gauges["reward_sum"].add_metric(label, bandit.accounts.totals.reward_sum)
            gauges["open_decisions"].add_metric(label, len(bandit.open))
            gauges["policy_bytes"].add_metric(label, known.nbytes)
            gauges["sketch_rows"].add_metric(label, sketch["rows"])
            if sketch["certificate"] is not None:
                gauges["certificate"].add_metric(label, sketch["certificate"])
            gauges["candidates"].add_metric(label, len(bandit.shadows))
            for candidate in bandit.shadows:
                told = candidate.value
                for name, value in told.candidate._asdict().items() if told is not None else ():
                    if value is not None:
                        values[name].add_metric([bandit.name, candidate.name], value)
        return [*counters.values(), *gauges.values(), *values.values()]
