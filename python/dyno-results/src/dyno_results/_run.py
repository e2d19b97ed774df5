"""One run directory."""

from functools import cached_property
from pathlib import Path

import pandas as pd

from . import _histograms
from ._files import read_head, read_json, read_lines


def _figures(prefix, latency):
    """A latency's figures as columns."""
    if not latency:
        return {}
    row = {f"{prefix}_{name}": latency[name] for name in ("count", "mean_us", "min_us", "max_us") if name in latency}
    for name, value in latency["percentiles_us"].items():
        # null: among dropped arrivals, beyond every measured latency.
        row[f"{prefix}_{name}_us"] = float("inf") if value is None else value
    return row


class Run:
    """A run directory, finished or not."""

    def __init__(self, path):
        self.path = Path(path)
        #: run.json as it is: command line, target, facts, settings.
        self.run = read_head(self.path, "run.json")

    def __repr__(self):
        return f"<Run {self.path} {self.run['status']}>"

    @cached_property
    def environment(self):
        """environment.json as it is."""
        return read_json(self.path / "environment.json")

    @cached_property
    def summary_json(self):
        """summary.json as it is; None for a run that has not come to its end."""
        path = self.path / "summary.json"
        return read_json(path) if path.is_file() else None

    @property
    def verdict(self):
        """valid, suspect or invalid; None without a summary."""
        return self.summary_json and self.summary_json["verdict"]["trust"]

    @cached_property
    def phases(self):
        """One row for each phase: length, throughput, outcomes, the monitors' figures."""
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
        return pd.DataFrame(rows)

    @cached_property
    def summary(self):
        """One row for each phase and operation: outcomes and latencies in microseconds."""
        rows = []
        for phase in (self.summary_json or {}).get("phases", []):
            for metric in phase["metrics"]:
                row = {"phase": phase["name"], "metric": metric["name"]}
                row.update(metric["outcomes"])
                for kind in (
                    "service",
                    "response",
                    "failed_service",
                    "failed_response",
                    "all_service",
                    "all_response",
                ):
                    row.update(_figures(kind, metric.get(kind)))
                rows.append(row)
        return pd.DataFrame(rows)

    @cached_property
    def series(self):
        """series.csv: one row for each interval, phase and operation, and TOTAL over arrivals."""
        return pd.read_csv(self.path / "series.csv")

    @cached_property
    def intervals(self):
        """intervals.jsonl: the exact counters of every interval, outcomes as columns `ended_OUTCOME`."""
        rows = []
        for line in read_lines(self.path / "intervals.jsonl"):
            row = {"phase": line["phase"], "start_s": line["second"] + line.get("ms", 0) / 1000}
            if "length_ms" in line:
                row["length_s"] = line["length_ms"] / 1000
            row.update({name: line[name] for name in ("arrivals", "backlog", "busy_ns")})
            row.update({f"ended_{name}": count for name, count in line["ended"].items()})
            rows.append(row)
        frame = pd.DataFrame(rows)
        # An outcome that an interval does not name did not happen in it.
        ended = [name for name in frame.columns if name.startswith("ended_")]
        frame[ended] = frame[ended].fillna(0).astype("int64")
        return frame

    @cached_property
    def histograms(self):
        """HdrHistograms by tag `PHASE.METRIC.OUTCOME.KIND`, all intervals merged; values in units of `unit_ns`' log."""
        return _histograms.read(self.path / "latency.hlog")

    @cached_property
    def events(self):
        """events.jsonl: what happened when, in UTC."""
        frame = pd.DataFrame(read_lines(self.path / "events.jsonl"), columns=["at", "event", "text"])
        frame["at"] = pd.to_datetime(frame["at"], utc=True, format="ISO8601")
        return frame

    @cached_property
    def sources(self):
        """Names of what the monitors watched."""
        path = self.path / "monitor" / "series.json"
        return sorted(read_json(path)["sources"]) if path.is_file() else []

    def monitor(self, source):
        """What a monitor saw: one row for each tick under UTC, a column for each series. Counters are raw; `rates` differentiates."""
        if source not in self.sources:
            raise KeyError(f"{self.path}: no source {source}; there are: {', '.join(self.sources) or 'none'}")
        index = read_json(self.path / "monitor" / "series.json")["sources"][source]
        frame = pd.concat([pd.read_csv(self.path / "monitor" / name) for name in index["files"]], ignore_index=True)
        frame.index = pd.to_datetime(frame.pop("time_ms"), unit="ms", utc=True).rename("time")
        frame.attrs["kinds"] = index["series"]
        return frame

    def rates(self, source):
        """The same with counters as rates per second."""
        frame = self.monitor(source)
        seconds = frame.index.to_series().diff().dt.total_seconds()
        for name, kind in frame.attrs["kinds"].items():
            if kind == "counter" and name in frame:
                frame[name] = frame[name].diff() / seconds
        return frame


def open_run(path):
    """Opens a run directory."""
    return Run(path)
