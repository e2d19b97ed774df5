"""Runs dyno, and opens what it leaves as data frames.

`run` measures a target or carries out an experiment; `open` reads a directory. Times are in microseconds (columns `..._us`, and all of
`latencies`) or in seconds (columns `..._s`); rates are operations/s. What is not known is missing (NaN, None), never zero.
The format of the directories is described in docs/run-directory.md.
"""

from ._compare import Comparison, compare
from ._errors import (
    DynoError,
    DynoWarning,
    InternalError,
    Interrupted,
    MissingExtra,
    ProgramNotFound,
    TargetUnreachable,
    UsageError,
)
from ._experiment import Experiment, open_experiment
from ._files import NewerVersion, NotADirectory
from ._launch import open, resume, run
from ._merge import Merged, merge
from ._program import program
from ._run import Run, open_run

__all__ = [
    "Comparison",
    "DynoError",
    "DynoWarning",
    "Experiment",
    "InternalError",
    "Interrupted",
    "Merged",
    "MissingExtra",
    "NewerVersion",
    "NotADirectory",
    "ProgramNotFound",
    "Run",
    "TargetUnreachable",
    "UsageError",
    "compare",
    "merge",
    "open",
    "open_experiment",
    "open_run",
    "program",
    "resume",
    "run",
]
__version__ = "0.1.0"
