"""One run directory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _histograms, _plot
from ._extras import pandas
from ._files import read_head, read_json, read_lines
from ._histograms import Counts
from ._result import Result

if TYPE_CHECKING:
    import numpy
    import pandas as pd


class Monitors(Mapping):
    """What the monitors saw, by source: `run.monitors["host"]` is `run.monitor("host")`."""

    def __init__(self, run: Run):
        self._run = run

    def __getitem__(self, source: str) -> pd.DataFrame:
        return self._run.monitor(source)

    def __iter__(self) -> Iterator[str]:
        return iter(self._run.sources)

    def __len__(self) -> int:
        return len(self._run.sources)

    def __repr__(self) -> str:
        return f"<Monitors {', '.join(self._run.sources) or 'none'}>"


class Run(Result):
    """A run directory, finished or not."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        #: run.json as it is: command line, target, facts, settings.
        self.run: dict[str, Any] = read_head(self.path, "run.json")
        summary = self.path / "summary.json"
        self.summary_json = read_json(summary) if summary.is_file() else None

    def __repr__(self) -> str:
        figures = "" if self.throughput is None else f" {self.verdict}, {self.throughput:,.0f} operations/s"
        return f"<Run {self.path} {self.run['status']}{figures}>"

    @property
    def title(self) -> str:
        """Title of the run."""
        return self.summary_json["title"] if self.summary_json else self.path.name

    @property
    def status(self) -> str:
        """running, complete, interrupted or failed."""
        return self.run["status"]

    @cached_property
    def environment(self) -> dict[str, Any]:
        """environment.json as it is."""
        return read_json(self.path / "environment.json")

    @cached_property
    def series(self) -> pd.DataFrame:
        """series.csv: one row for each interval, phase and operation, latencies in microseconds, and TOTAL over arrivals."""
        return pandas().read_csv(self.path / "series.csv")

    @cached_property
    def intervals(self) -> pd.DataFrame:
        """One row for each interval: its begin and length in seconds, exact counters, `throughput` in operations/s.

        Outcomes are columns `ended_OUTCOME`. The first and the last interval of a phase are as long as they lie within it.
        """
        rows = []
        for line in read_lines(self.path / "intervals.jsonl"):
            row = {"phase": line["phase"], "start_s": line["second"] + line.get("ms", 0) / 1000}
            row["length_s"] = self._length(line["phase"], row["start_s"], line.get("length_ms"))
            row.update({name: line[name] for name in ("arrivals", "backlog", "busy_ns")})
            row.update({f"ended_{name}": count for name, count in line["ended"].items()})
            rows.append(row)
        frame = pandas().DataFrame(rows)
        # An outcome that an interval does not name did not happen in it.
        ended = [name for name in frame.columns if name.startswith("ended_")]
        frame[ended] = frame[ended].fillna(0).astype("int64")
        if "length_s" in frame:
            ok = frame["ended_ok"] if "ended_ok" in frame else 0
            frame.insert(3, "throughput", ok / frame["length_s"].where(frame["length_s"] > 0))
        return frame

    def _length(self, phase: str, start_s: float, length_ms: float | None) -> float:
        """Seconds of an interval that lie within its phase; NaN if that cannot be told."""
        if length_ms is not None:
            return length_ms / 1000
        plans = self.run.get("plans", {})
        # The warm-up's plan is that of the phase that follows it.
        plan = plans.get(phase) or next((plan for plan in plans.values() if phase == "warmup" and plan.get("warmup_s")), None)
        if plan is None or "interval_s" not in plan:
            return float("nan")
        warmup = plan.get("warmup_s") or 0
        begin, end = (0, warmup) if phase == "warmup" else (warmup, float("inf"))
        summed = next((one for one in (self.summary_json or {}).get("phases", []) if one["name"] == phase), None)
        if summed is not None:
            end = begin + summed["seconds"]
        return max(0.0, min(start_s + plan["interval_s"], end) - max(start_s, begin))

    @cached_property
    def histograms(self) -> dict[str, Any]:
        """HdrHistograms by tag `PHASE.METRIC.OUTCOME.KIND`, all intervals merged, values in the log's unit; needs hdrhistogram.

        `percentile` needs no further package and has dyno's own rule for ranks.
        """
        return _histograms.read(self.path / "latency.hlog")

    def _counts(self, phase: str, kind: str) -> dict[str, Counts]:
        start, end = f"{phase}.", f".ok.{kind}"
        counted = {metric["name"]: metric[kind]["count"] for metric in self._operations() if metric.get(kind)}
        found: dict[str, Counts] = {}
        # Totals are the log added up, where the run came to its end.
        for name in ("totals.hlog", "latency.hlog"):
            if (self.path / name).is_file():
                read = _histograms.counts(self.path / name, lambda tag: tag.startswith(start) and tag.endswith(end))
                found = {tag[len(start) : -len(end)]: counts for tag, counts in read.items()}
                if all(name in found and found[name].total == count for name, count in counted.items()):
                    break
        return found

    @cached_property
    def events(self) -> pd.DataFrame:
        """events.jsonl: what happened when, in UTC."""
        frame = pandas().DataFrame(read_lines(self.path / "events.jsonl"), columns=["at", "event", "text"])
        frame["at"] = pandas().to_datetime(frame["at"], utc=True, format="ISO8601")
        return frame

    @cached_property
    def sources(self) -> list[str]:
        """Names of what the monitors watched."""
        path = self.path / "monitor" / "series.json"
        return sorted(read_json(path)["sources"]) if path.is_file() else []

    @property
    def monitors(self) -> Monitors:
        """What the monitors saw, by source."""
        return Monitors(self)

    def monitor(self, source: str) -> pd.DataFrame:
        """What a monitor saw: one row for each tick under UTC, a column for each series. Counters are raw; `rates` differentiates."""
        if source not in self.sources:
            raise KeyError(f"{self.path}: no source {source}; there are: {', '.join(self.sources) or 'none'}")
        pd = pandas()
        index = read_json(self.path / "monitor" / "series.json")["sources"][source]
        frame = pd.concat([pd.read_csv(self.path / "monitor" / name) for name in index["files"]], ignore_index=True)
        frame.index = pd.to_datetime(frame.pop("time_ms"), unit="ms", utc=True).rename("time")
        frame.attrs["kinds"] = index["series"]
        return frame

    def rates(self, source: str) -> pd.DataFrame:
        """The same with counters as rates per second."""
        frame = self.monitor(source)
        seconds = frame.index.to_series().diff().dt.total_seconds()
        for name, kind in frame.attrs["kinds"].items():
            if kind == "counter" and name in frame:
                frame[name] = frame[name].diff() / seconds
        return frame

    def plot(self, axes: Any = None) -> numpy.ndarray:
        """Draws throughput (operations/s) and response times (p50 and p99, milliseconds) of the measured phase over time (seconds).

        `axes` are two of matplotlib to draw on; without them a figure is made. Returns both.
        """
        return _plot.run(self, axes)


def open_run(path: str | os.PathLike[str]) -> Run:
    """Opens a run directory."""
    return Run(path)
