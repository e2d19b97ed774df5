"""An experiment's directory."""

from __future__ import annotations

import math
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _html, _plot
from ._extras import pandas
from ._files import read_head, read_lines
from ._result import NoHistograms, percentile
from ._run import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: From the best to the worst.
_GRADES = ("valid", "suspect", "invalid")


class Experiment:
    """An experiment's directory: a matrix of cells, and the runs that have ended."""

    #: What `dyno run` has ended with: 0, 4 (a threshold missed) or 5 (a run failed or invalid); None where it was opened, not run.
    exit_code: int | None = None

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        #: experiment.json as it is.
        self.record: dict[str, Any] = read_head(self.path, "experiment.json")
        self.name: str = self.record["name"]

    def __repr__(self) -> str:
        return f"<Experiment {self.name} {self.path}>"

    @cached_property
    def _ended(self) -> list[dict[str, Any]]:
        """Runs that have ended; one that was made again is there once, the last time."""
        ended: dict[Any, dict[str, Any]] = {}
        for line in read_lines(self.path / "journal.jsonl"):
            if line.get("event") == "ended":
                place = (line["cell"], line["repetition"], line["point"])
                ended.pop(place, None)
                ended[place] = line
        return list(ended.values())

    @cached_property
    def factors(self) -> list[str]:
        """Names of the factors, those that a strategy has set last."""
        names = dict.fromkeys(name for cell in self.record["cells"] for name, _ in cell["levels"])
        names.update(dict.fromkeys(line["point"].split("=", 1)[0] for line in self._ended if "=" in line["point"]))
        return list(names)

    @property
    def verdict(self) -> str | None:
        """The worst verdict of the runs that have one: valid, suspect or invalid; None if none has."""
        found = [line["trust"] for line in self._ended if line["trust"] in _GRADES]
        return max(found, key=_GRADES.index) if found else None

    @property
    def passed(self) -> bool:
        """True if runs have ended, all of them complete, and every threshold held."""
        return bool(self._ended) and all(line["passed"] and line["status"] == "complete" for line in self._ended)

    def _levels(self, line: dict[str, Any]) -> dict[str, Any]:
        cells = {cell["number"]: cell["levels"] for cell in self.record["cells"]}
        levels = {name: level for name, level in cells.get(line["cell"], [])}
        if "=" in line["point"]:
            name, level = line["point"].split("=", 1)
            levels[name] = level
        return levels

    def _typed(self, frame: pd.DataFrame) -> pd.DataFrame:
        for name in self.factors:
            if name in frame:
                numbers = pandas().to_numeric(frame[name], errors="coerce")
                if numbers.notna().all():
                    frame[name] = numbers
        return frame

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row for each run that has ended: levels, status, verdict (`trust`), throughput in operations/s, its directory."""
        rows = []
        for line in self._ended:
            row = self._levels(line)
            names = ("cell", "repetition", "status", "trust", "throughput", "passed", "dir")
            row.update({name: line[name] for name in names})
            rows.append(row)
        return self._typed(pandas().DataFrame(rows))

    def open(self, dir: str) -> Run:
        """Opens a run by its directory, as in `runs`."""
        return Run(self.path / dir)

    def _usable(self, line: dict[str, Any]) -> bool:
        """A run that came to its end and is not invalid."""
        return line["status"] == "complete" and line["trust"] != "invalid" and (self.path / line["dir"] / "summary.json").is_file()

    @cached_property
    def _repetitions(self) -> dict[tuple[tuple[str, str], ...], list[dict[str, Any]]]:
        """Usable runs by their levels."""
        groups: dict[Any, list[dict[str, Any]]] = {}
        for line in filter(self._usable, self._ended):
            groups.setdefault(tuple(self._levels(line).items()), []).append(line)
        return groups

    def percentile(self, p: float, operation: str | None = None, kind: str = "response") -> pd.Series:
        """A percentile of each cell, microseconds, under its levels, from the histograms of its repetitions added up.

        Arguments are those of `Run.percentile`. Runs that failed or are invalid do not count.
        """
        name = f"{operation or 'all'} {kind} p{p:g}, us"
        rows = [
            {**dict(levels), name: percentile([self.open(line["dir"]) for line in lines], p, operation, kind)}
            for levels, lines in self._repetitions.items()
        ]
        pd = pandas()
        if not rows:
            return pd.Series([], dtype="float64", name=name)
        frame = self._typed(pd.DataFrame(rows))
        if not self.factors:
            return pd.Series(frame[name].to_list(), index=[self.name], name=name)
        return frame.set_index(self.factors)[name].sort_index()

    @cached_property
    def cells(self) -> pd.DataFrame:
        """One row for each cell: levels, usable runs, mean throughput (operations/s), p50, p99, p99.9 of the response time (µs).

        Percentiles are those of the repetitions' histograms added up. Runs that failed or are invalid do not count.
        """
        rows = []
        for levels, lines in self._repetitions.items():
            opened = [self.open(line["dir"]) for line in lines]
            row: dict[str, Any] = {**dict(levels), "runs": len(lines)}
            row["throughput"] = sum(line["throughput"] for line in lines) / len(lines)
            for p in (50, 99, 99.9):
                try:
                    row[f"p{p:g}_us"] = percentile(opened, p, None, "response")
                except (NoHistograms, KeyError):
                    row[f"p{p:g}_us"] = math.nan
            rows.append(row)
        frame = self._typed(pandas().DataFrame(rows))
        return frame.sort_values(self.factors, ignore_index=True) if rows and self.factors else frame

    def _all(self, what: str) -> pd.DataFrame:
        frames = []
        for line in self._ended:
            if not (self.path / line["dir"] / "run.json").is_file():
                continue
            frame = getattr(self.open(line["dir"]), what).copy()
            levels = {**self._levels(line), "cell": line["cell"], "repetition": line["repetition"], "dir": line["dir"]}
            for at, (name, level) in enumerate(levels.items()):
                # A figure of the same name is what the level has set.
                frame = frame.drop(columns=name, errors="ignore")
                frame.insert(min(at, frame.shape[1]), name, level)
            frames.append(frame)
        pd = pandas()
        return self._typed(pd.concat(frames, ignore_index=True)) if frames else pd.DataFrame()

    @cached_property
    def summary(self) -> pd.DataFrame:
        """`summary` of every run, with its levels."""
        return self._all("summary")

    @cached_property
    def phases(self) -> pd.DataFrame:
        """`phases` of every run, with its levels."""
        return self._all("phases")

    @cached_property
    def series(self) -> pd.DataFrame:
        """`series` of every run, with its levels."""
        return self._all("series")

    @cached_property
    def intervals(self) -> pd.DataFrame:
        """`intervals` of every run, with its levels."""
        return self._all("intervals")

    def plot(self, x: str | None = None, y: str = "throughput", ax: Axes | None = None) -> Axes:
        """Draws a figure over the levels of the factor `x`, a line for each combination of the other factors.

        `y` is throughput (operations/s), or a percentile of the response time such as "p99" (milliseconds). Throughput has the mean
        as a line and each run as a point, invalid runs as crosses; they do not count. Without `x` it is the first factor with
        several levels.
        """
        return _plot.experiment(self, x, y, ax)

    def _repr_html_(self) -> str:
        return _html.experiment(self)


def open_experiment(path: str | os.PathLike[str]) -> Experiment:
    """Opens an experiment's directory."""
    return Experiment(path)
