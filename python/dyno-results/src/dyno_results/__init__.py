"""Opens dyno's run and experiment directories as data frames.

Everything comes from the files; what is not known is missing, never zero. The format is described in docs/run-directory.md.
"""

from ._experiment import Experiment, open_experiment
from ._files import NewerVersion, NotADirectory
from ._run import Run, open_run

__all__ = ["Experiment", "NewerVersion", "NotADirectory", "Run", "open_experiment", "open_run"]
__version__ = "0.1.0"
