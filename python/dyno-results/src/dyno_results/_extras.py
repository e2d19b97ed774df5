"""Packages that are optional, imported when they are needed."""

from __future__ import annotations

import importlib
from types import ModuleType

from ._errors import MissingExtra

#: This code is `dyno` in the wheel dyno-bench, and `dyno_results` in the package of that name.
DISTRIBUTION = "dyno-bench" if __package__ == "dyno" else "dyno-results"


def need(module: str, extra: str, what: str) -> ModuleType:
    """Imports a module, or says which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".", 1)[0]
        raise MissingExtra(f"{what}: {package} is not installed; pip install '{DISTRIBUTION}[{extra}]'") from error


def pandas() -> ModuleType:
    """pandas."""
    return need("pandas", "data", "a data frame")


def pyplot() -> ModuleType:
    """matplotlib.pyplot."""
    return need("matplotlib.pyplot", "plot", "a plot")
