"""`dyno run` and `dyno resume`, and the opening of what they leave."""

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _program
from ._errors import DynoError, DynoWarning, InternalError, Interrupted, TargetUnreachable, UsageError
from ._experiment import Experiment
from ._files import NotADirectory
from ._options import RESERVED, words
from ._program import Ended, program
from ._run import Run

_ERRORS: dict[int, type[DynoError]] = {2: UsageError, 3: TargetUnreachable}
_GIVEN: set[Path] = set()
_GIVING = threading.Lock()


def open(path: str | os.PathLike[str]) -> Run | Experiment:
    """Opens a run directory or an experiment's directory."""
    folder = Path(path)
    if (folder / "experiment.json").is_file():
        return Experiment(folder)
    if (folder / "run.json").is_file():
        return Run(folder)
    raise NotADirectory(f"{folder}: neither run.json nor experiment.json in it")


def run(
    target: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    users: int | None = None,
    rate: float | str | None = None,
    duration: Any = None,
    workload: str | os.PathLike[str] | None = None,
    require: str | Sequence[str] = (),
    out: str | os.PathLike[str] | None = None,
    program: str | os.PathLike[str] | None = None,
    progress: bool = False,
    **options: Any,
) -> Run | Experiment:
    """Measures a target, or carries out an experiment, as `dyno run` does. Returns a Run, or an Experiment.

    target: URI such as "redis://127.0.0.1:6379", an experiment (a .yaml file, or a mapping of its keys), or a preset's name.
        Without it a temporary Redis is measured, or SQLite where there is none.
    users: closed loop: users, each with one operation under way (default 16).
    rate: open loop: operations/s, a number or "20k", or one that changes ("ramp:...", "file:...", see docs/rates.md).
    duration: measured time: seconds as a number, "30s", "5m", or a timedelta (default 10 s).
    workload: a letter a to f, a built-in name or a file (default a).
    require: thresholds such as "p99(read) < 5ms", one or several.
    out: the new run directory (default: dyno-runs/TIME-NAME).
    program: path of the program (default: the environment variable DYNO, the wheel's own program, dyno on PATH).
    progress: pass on what dyno prints to standard error while it runs.

    Every other option of `dyno run` is a keyword: `records=100_000` is --records=100000, `no_pin=True` is --no-pin, a list repeats
    the option, a mapping is KEY=VALUE: `set={"users": [1, 8]}`. dyno refuses what it does not know.

    A missed threshold (exit code 4) and an invalid run (5) are results: see `passed`, `verdict` and `exit_code`. dyno's warnings
    are issued as DynoWarning. UsageError, TargetUnreachable and InternalError have dyno's words. Ctrl-C ends the run as in a
    terminal: what was measured is kept, and Interrupted, a KeyboardInterrupt, has it as `result`.
    """
    given = {"users": users, "rate": rate, "duration": duration, "workload": workload}
    given["require"] = [require] if isinstance(require, str) else list(require)
    flags = words({**given, **options}, RESERVED)
    if isinstance(target, Mapping):
        # JSON is YAML.
        with tempfile.TemporaryDirectory(prefix="dyno-") as folder:
            file = Path(folder) / "experiment.yaml"
            file.write_text(json.dumps(target, indent=2), encoding="utf-8")
            new = out or _new(str(target.get("name", "experiment")))
            return _carried_out("run", [os.fspath(file)], flags, new, program, progress)
    positional = [] if target is None else [os.fspath(target)]
    if positional and positional[0].startswith("-"):
        raise TypeError(f"{positional[0]}: a target does not begin with a dash; options are keywords")
    return _carried_out("run", positional, flags, out or _new(_name(positional, workload)), program, progress)


def resume(
    path: str | os.PathLike[str] | Experiment,
    *,
    program: str | os.PathLike[str] | None = None,
    progress: bool = False,
    **options: Any,
) -> Experiment:
    """Goes on with an experiment that was interrupted, as `dyno resume` does; keywords, errors and the result are those of `run`."""
    folder = path.path if isinstance(path, Experiment) else Path(path)
    flags = words(options, {name: why for name, why in RESERVED.items() if name != "no_out"})
    ended = _program.call(_command("resume", [os.fspath(folder)], flags, program, progress), progress)
    found = _finish(ended, folder, level=3)
    assert isinstance(found, Experiment)
    return found


def _command(verb: str, positional: list[str], flags: list[str], given: Any, progress: bool) -> list[str]:
    return [program(given), verb, *positional, *flags, *([] if progress else ["--quiet"])]


def _carried_out(verb: str, positional: list[str], flags: list[str], out: Any, given: Any, progress: bool) -> Any:
    folder = Path(os.fspath(out))
    flags = [*flags, f"--out={folder}"]
    # What was there before is not what this call has made.
    before = _begun(folder)
    ended = _program.call(_command(verb, positional, flags, given, progress), progress)
    return _finish(ended, folder, before is not None)


def _begun(folder: Path) -> Run | Experiment | None:
    """What is in a folder, if anything is."""
    try:
        return open(folder)
    except (OSError, ValueError, KeyError):
        return None


def _finish(ended: Ended, folder: Path, other: bool = False, level: int = 4) -> Run | Experiment:
    """The result of a command, or the error that its exit code says."""
    for text in ended.warnings:
        warnings.warn(text, DynoWarning, stacklevel=level)
    found = None if other else _begun(folder)
    if ended.interrupted or ended.code == 130:
        where = f"; what was measured is in {folder}" if found is not None else ""
        raise Interrupted(f"interrupted{where}", result=found)
    if ended.code not in (0, 4, 5):
        kind = _ERRORS.get(ended.code, InternalError)
        text = ended.error if ended.code >= 0 else f"dyno was ended by signal {-ended.code}"
        raise kind(text, command=ended.command, stderr=ended.stderr, result=found)
    if found is None:
        raise InternalError(f"dyno left no result in {folder}", command=ended.command, stderr=ended.stderr)
    if isinstance(found, Experiment):
        found.exit_code = ended.code
    else:
        found._ended_with = ended.code
    return found


def _name(positional: list[str], workload: Any) -> str:
    """Name of a run: the experiment's or the workload's, as in the directories that dyno makes."""
    text = positional[0] if positional else ""
    if ":" not in text and text:
        return Path(text).stem if text.endswith((".yaml", ".yml")) else text.replace("/", "-")
    name = Path(os.fspath(workload)).stem if workload else "a"
    return f"workload{name}" if len(name) == 1 else name


def _new(name: str) -> Path:
    """A directory under dyno-runs that does not exist yet and was not given to another call."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    base = Path("dyno-runs") / f"{stamp}-{re.sub(r'[^A-Za-z0-9._-]', '-', name)}"
    with _GIVING:
        path, number = base, 1
        while path.exists() or path.absolute() in _GIVEN:
            number += 1
            path = base.with_name(f"{base.name}-{number}")
        _GIVEN.add(path.absolute())
    return path
