"""Keyword arguments as options of the command. dyno itself refuses what it does not know."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Mapping
from typing import Any

#: Options that the package decides, with the reason.
RESERVED = {
    "json": "the result is read from the run directory",
    "no_out": "a result is read from its run directory; give `out` a temporary folder and remove it afterwards",
    "quiet": "use `progress`; without it dyno prints no progress",
    "help": "help(dyno.run) describes the call, `dyno run --help` every option",
}


def word(value: Any) -> str:
    """A value as a word of a command line."""
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        # A number of NumPy.
        value = value.item()
    if isinstance(value, datetime.timedelta):
        return f"{round(value / datetime.timedelta(microseconds=1))}us"
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{value!r}: expected a text, a number, a path or a timedelta")


def _assigned(value: Any) -> str:
    """The right side of KEY=VALUE: lists and mappings as JSON, which is YAML too."""
    return json.dumps(value) if isinstance(value, (bool, list, tuple, dict)) or value is None else word(value)


def words(options: Mapping[str, Any], reserved: Mapping[str, str] | None = None) -> list[str]:
    """Options as words: `max_age=3` is `--max-age=3`, True a bare flag, False and None nothing; lists repeat, mappings are KEY=VALUE."""
    out: list[str] = []
    for name, value in options.items():
        if reserved and name in reserved:
            raise TypeError(f"{name}: {reserved[name]}")
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            out.append(flag)
        elif isinstance(value, Mapping):
            out += [f"{flag}={key}={_assigned(one)}" for key, one in value.items()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            out += [f"{flag}={word(one)}" for one in value]
        else:
            out.append(f"{flag}={word(value)}")
    return out
