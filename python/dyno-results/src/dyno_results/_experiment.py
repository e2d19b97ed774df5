"""An experiment's directory."""

from functools import cached_property
from pathlib import Path

import pandas as pd

from ._files import read_head, read_lines
from ._run import Run


class Experiment:
    """An experiment's directory: a matrix of cells, and the runs that have ended."""

    def __init__(self, path):
        self.path = Path(path)
        #: experiment.json as it is.
        self.record = read_head(self.path, "experiment.json")
        self.name = self.record["name"]

    def __repr__(self):
        return f"<Experiment {self.name} {self.path}>"

    @cached_property
    def _ended(self):
        """Runs that have ended; one that was made again is there once, the last time."""
        ended = {}
        for line in read_lines(self.path / "journal.jsonl"):
            if line.get("event") == "ended":
                place = (line["cell"], line["repetition"], line["point"])
                ended.pop(place, None)
                ended[place] = line
        return list(ended.values())

    @cached_property
    def factors(self):
        """Names of the factors, those that a strategy has set last."""
        names = dict.fromkeys(name for cell in self.record["cells"] for name, _ in cell["levels"])
        names.update(dict.fromkeys(line["point"].split("=", 1)[0] for line in self._ended if "=" in line["point"]))
        return list(names)

    def _levels(self, line):
        cells = {cell["number"]: cell["levels"] for cell in self.record["cells"]}
        levels = {name: level for name, level in cells.get(line["cell"], [])}
        if "=" in line["point"]:
            name, level = line["point"].split("=", 1)
            levels[name] = level
        return levels

    def _typed(self, frame):
        for name in self.factors:
            if name in frame:
                numbers = pd.to_numeric(frame[name], errors="coerce")
                if numbers.notna().all():
                    frame[name] = numbers
        return frame

    @cached_property
    def runs(self):
        """One row for each run that has ended: levels, status, verdict, throughput, its directory."""
        rows = []
        for line in self._ended:
            row = self._levels(line)
            names = ("cell", "repetition", "status", "trust", "throughput", "passed", "dir")
            row.update({name: line[name] for name in names})
            rows.append(row)
        return self._typed(pd.DataFrame(rows))

    def open(self, dir):
        """Opens a run by its directory, as in `runs`."""
        return Run(self.path / dir)

    def _all(self, what):
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
        return self._typed(pd.concat(frames, ignore_index=True)) if frames else pd.DataFrame()

    @cached_property
    def summary(self):
        """`summary` of every run, with its levels."""
        return self._all("summary")

    @cached_property
    def phases(self):
        """`phases` of every run, with its levels."""
        return self._all("phases")

    @cached_property
    def series(self):
        """`series` of every run, with its levels."""
        return self._all("series")

    @cached_property
    def intervals(self):
        """`intervals` of every run, with its levels."""
        return self._all("intervals")


def open_experiment(path):
    """Opens an experiment's directory."""
    return Experiment(path)
