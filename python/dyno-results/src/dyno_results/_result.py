"""A summary with its verdict and its latencies: of a run, or of several that were merged."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from . import _html
from ._extras import pandas
from ._histograms import Counts

if TYPE_CHECKING:
    import pandas as pd

#: Kinds of latency: from the intended start (response), from sending (service); `all_...` counts failures too, where there are some.
KINDS = ("response", "service", "all_response", "all_service")
#: Percentiles that always have a column.
PERCENTILES = ("p50", "p90", "p95", "p99", "p99.9")


def _figures(prefix: str, latency: dict[str, Any] | None) -> dict[str, float]:
    """A latency's figures as columns."""
    if not latency:
        return {}
    row = {f"{prefix}_{name}": latency[name] for name in ("count", "mean_us", "min_us", "max_us") if name in latency}
    for name, value in latency["percentiles_us"].items():
        # null: among dropped arrivals, beyond every measured latency.
        row[f"{prefix}_{name}_us"] = float("inf") if value is None else value
    return row


class NoHistograms(ValueError):
    """A result has no histograms of what was asked for, as imported ones may."""


class Result:
    """A summary with its verdict, throughput and latencies."""

    #: summary.json as it is; None for a run that has not come to its end.
    summary_json: dict[str, Any] | None = None

    #: What `dyno run` has ended with; None where the result was opened, not run.
    _ended_with: int | None = None

    @property
    def verdict(self) -> str | None:
        """valid, suspect or invalid; None without a summary."""
        return self.summary_json["verdict"]["trust"] if self.summary_json else None

    @property
    def title(self) -> str:
        """Title of the result."""
        return self.summary_json["title"] if self.summary_json else ""

    @property
    def status(self) -> str:
        """running, complete, interrupted or failed."""
        return self.summary_json["status"] if self.summary_json else "running"

    @property
    def reasons(self) -> list[str]:
        """What speaks against the result, and what to do about it."""
        return [reason["text"] for reason in self.summary_json["verdict"]["reasons"]] if self.summary_json else []

    @property
    def passed(self) -> bool:
        """True if there is a summary and every threshold of it held."""
        return self.summary_json is not None and all(one["passed"] for one in self.summary_json["thresholds"])

    @property
    def thresholds(self) -> pd.DataFrame:
        """One row for each threshold: expression, measured value in the expression's unit, whether it held."""
        rows = (self.summary_json or {}).get("thresholds", [])
        return pandas().DataFrame(rows, columns=["expression", "measured", "passed"])

    @property
    def exit_code(self) -> int | None:
        """Exit code of dyno: 0 valid or suspect, 4 threshold missed, 5 invalid, 130 interrupted; None without a summary."""
        if self._ended_with is not None or not self.summary_json:
            return self._ended_with
        if self.summary_json["status"] == "interrupted":
            return 130
        return 5 if self.verdict == "invalid" else 0 if self.passed else 4

    @property
    def measured(self) -> dict[str, Any] | None:
        """The measured phase as summary.json has it, else the last one; None without a summary."""
        phases = (self.summary_json or {}).get("phases", [])
        return next((phase for phase in phases if phase["name"] == "measure"), phases[-1] if phases else None)

    @property
    def throughput(self) -> float | None:
        """Successful operations per second in the measured phase; None without a summary."""
        return self.measured["throughput"] if self.measured else None

    @property
    def failed(self) -> int | None:
        """Arrivals of the measured phase that did not succeed: failed or dropped; None without a summary."""
        if self.measured is None:
            return None
        return sum(count for outcome, count in self.measured["outcomes"].items() if outcome != "ok")

    def _operations(self) -> list[dict[str, Any]]:
        """Operations of the measured phase."""
        return [metric for metric in (self.measured or {}).get("metrics", []) if metric["name"] != "CLEANUP"]

    @cached_property
    def latencies(self) -> pd.DataFrame:
        """One row for each operation of the measured phase, microseconds.

        Columns have two levels, kind and figure: `latencies["response"]["p99"]`. Response time counts from the intended start,
        service time from sending, both of successes. Where requests failed there are `all_response` and `all_service` too, in
        which a failure counts with at least the time after which it failed. NaN: too few samples. inf: among dropped arrivals.
        """
        metrics = self._operations()
        kinds = [kind for kind in KINDS if kind in KINDS[:2] or any(metric.get(kind) for metric in metrics)]
        known = {name for metric in metrics for kind in kinds for name in (metric.get(kind) or {}).get("percentiles_us", {})}
        names = sorted(known.union(PERCENTILES), key=lambda name: float(name[1:]))
        figures = ["count", "mean", "min", *names, "max"]
        rows = []
        for metric in metrics:
            row: list[float] = []
            for kind in kinds:
                flat = _figures("x", metric.get(kind))
                row += [flat.get("x_count", math.nan)]
                row += [flat.get(f"x_{name}_us", math.nan) for name in figures[1:]]
            rows.append(row)
        pd = pandas()
        columns = pd.MultiIndex.from_product([kinds, figures], names=["kind", "figure"])
        index = pd.Index([metric["name"] for metric in metrics], name="operation", dtype="object")
        frame = pd.DataFrame(rows, index=index, columns=columns, dtype="float64")
        for kind in kinds:
            if frame[(kind, "count")].notna().all():
                frame[(kind, "count")] = frame[(kind, "count")].astype("int64")
        return frame

    @cached_property
    def phases(self) -> pd.DataFrame:
        """One row for each phase: length in seconds, throughput in operations/s, outcomes, the monitors' figures."""
        rows = []
        for phase in (self.summary_json or {}).get("phases", []):
            row = {name: phase.get(name) for name in ("name", "seconds", "throughput", "offered", "arrivals")}
            row["ok"] = phase["outcomes"].get("ok", 0)
            row["users"] = phase["client"].get("users")
            for source, seen in (phase.get("monitor") or {}).items():
                if isinstance(seen, dict):
                    flat = {k: v for k, v in seen.items() if not isinstance(v, (dict, list))}
                    row.update({f"{source}_{name}": value for name, value in flat.items()})
            rows.append(row)
        return pandas().DataFrame(rows)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row for each phase and operation: outcomes and latencies, microseconds, as columns such as `response_p99_us`."""
        rows = []
        for phase in (self.summary_json or {}).get("phases", []):
            for metric in phase["metrics"]:
                row = {"phase": phase["name"], "metric": metric["name"]}
                row.update(metric["outcomes"])
                for kind in ("service", "response", "failed_service", "failed_response", "all_service", "all_response"):
                    row.update(_figures(kind, metric.get(kind)))
                rows.append(row)
        return pandas().DataFrame(rows)

    def _counts(self, phase: str, kind: str) -> dict[str, Counts]:
        """Recorded histograms of successes by operation."""
        raise NotImplementedError

    def percentile(self, p: float, operation: str | None = None, kind: str = "response") -> float:
        """A percentile of the measured phase, microseconds, from the recorded histograms.

        `p` is above 0 and at most 100. Without `operation` the histograms of all operations are added up first. `kind` is
        response or service. It counts successful requests. NaN if fewer than ten samples lie beyond a percentile above 95.
        """
        return percentile([self], p, operation, kind)

    def _repr_html_(self) -> str:
        return _html.card(self)


def percentile(results: Iterable[Result], p: float, operation: str | None, kind: str) -> float:
    """A percentile of all results together, microseconds. Histograms merge, percentiles do not: they are added up first."""
    if not 0 < p <= 100:
        raise ValueError(f"{p}: expected a percentile above 0 and at most 100, such as 99")
    if kind not in KINDS[:2]:
        raise ValueError(f"{kind}: expected response or service")
    whole, greatest = None, 0.0
    names: set[str] = set()
    for result in results:
        phase = result.measured
        if phase is None:
            raise NoHistograms(f"{result!r}: it has no summary, so nothing was measured to the end")
        wanted = [
            metric
            for metric in result._operations()
            if metric.get(kind) and (operation is None or metric["name"].lower() == operation.lower())
        ]
        names.update(metric["name"] for metric in result._operations())
        if not wanted:
            continue
        recorded = result._counts(phase["name"], kind)
        for metric in wanted:
            counts = recorded.get(metric["name"])
            if counts is None or counts.total != metric[kind]["count"]:
                raise NoHistograms(f"{result!r}: no histograms of {metric['name']} were recorded")
            greatest = max(greatest, metric[kind].get("max_us", math.inf))
            if whole is None:
                whole = Counts(counts.unit_ns)
            whole.add(counts)
    if whole is None:
        what = "operations" if operation is None else f"operation {operation}"
        raise KeyError(f"no {what} in the measured phase; there are: {', '.join(sorted(names)) or 'none'}")
    # As dyno reports it: ten samples must lie beyond.
    if 95 < p < 100 and round(whole.total * (100 - p), 6) < 1000:
        return math.nan
    return whole.percentile_us(p, greatest)
