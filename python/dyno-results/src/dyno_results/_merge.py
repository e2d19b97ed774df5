"""`dyno merge`: several runs as one."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

from . import _program
from ._errors import DynoWarning, InternalError, TargetUnreachable, UsageError
from ._histograms import Counts
from ._options import words
from ._result import Result
from ._run import Run


class Merged(Result):
    """Runs of one load as one: a summary whose percentiles come from the runs' histograms added up."""

    def __init__(self, runs: list[Run], summary: dict[str, Any], exit_code: int):
        #: The runs that were merged.
        self.runs = runs
        self.summary_json = summary
        self._ended_with = exit_code

    def __repr__(self) -> str:
        return f"<Merged {len(self.runs)} runs {self.verdict}, {self.throughput:,.0f} operations/s>"

    def _counts(self, phase: str, kind: str) -> dict[str, Counts]:
        whole: dict[str, Counts] = {}
        for run in self.runs:
            for name, counts in run._counts(phase, kind).items():
                whole.setdefault(name, Counts(counts.unit_ns)).add(counts)
        return whole


def merge(
    *runs: Run | str | os.PathLike[str],
    sequential: bool = False,
    program: str | os.PathLike[str] | None = None,
) -> Merged:
    """Merges runs of one load exactly, as `dyno merge` does.

    The runs were made side by side by several load generators; with `sequential` one after the other, as repetitions: rates are
    then their means. dyno refuses runs that applied different loads.
    """
    opened = [run if isinstance(run, Run) else Run(run) for run in runs]
    command = [_program.program(program), "merge", *(os.fspath(run.path) for run in opened), "--json"]
    ended = _program.call([*command, *words({"sequential": sequential})])
    return Merged(opened, *answer(ended, (0, 4, 5)))


def answer(ended: _program.Ended, accepted: tuple[int, ...]) -> tuple[Any, int]:
    """The JSON that a command has printed and its exit code, or the error that the code says."""
    if ended.interrupted:
        raise KeyboardInterrupt
    for text in ended.warnings:
        warnings.warn(text, DynoWarning, stacklevel=3)
    if ended.code not in accepted:
        kind = {2: UsageError, 3: TargetUnreachable}.get(ended.code, InternalError)
        raise kind(ended.error, command=ended.command, stderr=ended.stderr)
    return json.loads(ended.stdout), ended.code
