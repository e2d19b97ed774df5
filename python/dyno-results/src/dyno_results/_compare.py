"""`dyno compare`: is B better than A?"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, Union

from . import _html, _program
from ._experiment import Experiment
from ._extras import pandas
from ._merge import answer
from ._options import words
from ._run import Run
from ._shapes import conclusion

if TYPE_CHECKING:
    import pandas as pd

Side = Union[Run, Experiment, str, "os.PathLike[str]"]

_RESERVED = {
    "json": "the comparison is read as JSON",
    "format": "the comparison is read as JSON; `html=FILE` writes a page beside it",
    "out": "the comparison is returned; `html=FILE` writes a page beside it",
}


class Comparison:
    """What `dyno compare` has found, the second side against the first."""

    def __init__(self, found: list[dict[str, Any]], exit_code: int):
        #: Everything that was found, as `dyno compare --json` prints it.
        self.found = found
        #: 0, or 4 if `fail_on` applies.
        self.exit_code = exit_code

    def __repr__(self) -> str:
        figures = [figure for part in self.found for figure in part["figures"]]
        counted = [(word, sum(conclusion(figure)[0] == word for figure in figures)) for word in ("better", "worse", "same", "unclear")]
        return f"<Comparison {', '.join(f'{count} {word}' for word, count in counted if count) or 'nothing to compare'}>"

    @cached_property
    def figures(self) -> pd.DataFrame:
        """One row for each cell and figure.

        `before` and `after` are the means of the sides in `unit` (ops/s or us); `ratio` is after/before, `low` and `high` its 95 %
        interval, missing where a side has one run; `p` is of that ratio, by the same test, and missing where a side has fewer than four runs; `conclusion` is better,
        worse, same or unclear. `more_runs` is how many more runs a side an unclear figure asks for; it is missing where nobody can say.
        """
        rows = []
        for part in self.found:
            for figure in part["figures"]:
                word, more = conclusion(figure)
                row = {"cell": part["cell"], "first": part["first"], "second": part["second"]}
                row.update({"figure": figure["name"], "unit": figure["unit"]})
                row.update({"before": figure["means"][0], "after": figure["means"][1]})
                row.update({"ratio": figure["ratio"]["value"], "low": figure["ratio"]["low"], "high": figure["ratio"]["high"]})
                rows.append({**row, "p": figure["p"], "conclusion": word, "more_runs": more})
        names = ["cell", "first", "second", "figure", "unit", "before", "after", "ratio", "low", "high", "p", "conclusion", "more_runs"]
        frame = pandas().DataFrame(rows, columns=names)
        frame[["low", "high", "p"]] = frame[["low", "high", "p"]].astype("float64")
        frame["more_runs"] = frame["more_runs"].astype("Int64")
        return frame

    @property
    def warnings(self) -> list[str]:
        """What limits the comparison."""
        return [text for part in self.found for text in part["warnings"]]

    def _repr_html_(self) -> str:
        return _html.comparison(self)


def compare(a: Side, b: Side | None = None, *more: Side, program: str | os.PathLike[str] | None = None, **options: Any) -> Comparison:
    """Compares results as `dyno compare` does: the first is the baseline.

    A side is a run, an experiment, or a folder of runs that are repetitions of each other. `compare(experiment, by="engine")` compares
    the levels of a factor within one experiment. Every other option of `dyno compare` is a keyword too: `margin=2` (per cent of
    throughput), `latency_margin=5` (per cent), `fail_on="worse"`, `html=FILE`.
    """
    sides = [side.path if isinstance(side, (Run, Experiment)) else side for side in (a, b, *more) if side is not None]
    flags = words(options, _RESERVED)
    command = [_program.program(program), "compare", *(os.fspath(side) for side in sides), *flags, "--json"]
    return Comparison(*answer(_program.call(command), (0, 4)))
