"""The program dyno: where it is, and how it is started and ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO

from ._errors import ProgramNotFound


def program(path: str | os.PathLike[str] | None = None) -> str:
    """Path of the program: `path`, else the environment variable DYNO, else the wheel's own program, else `dyno` on PATH."""
    for given, name in ((path, "program"), (os.environ.get("DYNO") or None, "DYNO")):
        if given is not None:
            # A file of this folder comes before one of that name on PATH.
            found = shutil.which(os.path.abspath(given)) or shutil.which(os.fspath(given))
            if found is None:
                raise ProgramNotFound(f"{name}: {os.fspath(given)} is no program")
            return os.path.abspath(found)
    found = _of_the_wheel() or shutil.which("dyno")
    if found is None:
        raise ProgramNotFound("there is no program dyno: install dyno-bench, put dyno on PATH, or set DYNO to its path")
    return os.path.abspath(found)


def _of_the_wheel() -> str | None:
    """The program that the wheel dyno-bench has installed."""
    try:
        files = metadata.files("dyno-bench") or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == "dyno" and file.parent.name == "bin":
            return shutil.which(str(Path(str(file.locate()))))
    return None


@dataclass
class Ended:
    """A command that has ended."""

    command: list[str]
    code: int
    stdout: str
    stderr: str
    #: Ctrl-C came while it was under way.
    interrupted: bool

    @property
    def error(self) -> str:
        """What it says is wrong, or else all that it says."""
        _, mark, text = ("\n" + self.stderr).partition("\nerror: ")
        return (text if mark else self.stderr).strip() or f"dyno ended with {self.code} and said nothing"

    @property
    def warnings(self) -> list[str]:
        """Its warnings, each once."""
        lines = self.stderr.splitlines()
        return list(dict.fromkeys(line[len("warning: ") :] for line in lines if line.startswith("warning: ")))


def call(command: list[str], progress: bool = False) -> Ended:
    """Starts a command and waits for its end. Ctrl-C is passed on, so that dyno ends the run and keeps what was measured.

    The command has a session of its own: a terminal's or a kernel's Ctrl-C reaches Python alone, and dyno gets each of them once.
    """
    said: list[str] = []

    def listen(stream: IO[str]) -> None:
        with stream:
            for line in stream:
                said.append(line)
                if progress and not line.startswith("warning: "):
                    sys.stderr.write(line)
                    sys.stderr.flush()

    interrupted = False
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        try:
            listener = threading.Thread(target=listen, args=(process.stderr,), daemon=True)
            listener.start()
            while True:
                try:
                    code = process.wait()
                    # Something that dyno has left running may hold the other end.
                    listener.join(timeout=5)
                    break
                except KeyboardInterrupt:
                    interrupted = True
                    process.send_signal(signal.SIGINT)
        finally:
            # Something else than Ctrl-C has ended the wait.
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(timeout=30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        printed.seek(0)
        stdout = printed.read().decode("utf-8", errors="replace")
    return Ended(command, code, stdout, "".join(said), interrupted)
