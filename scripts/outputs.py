#!/usr/bin/env python3
"""outputs.py PROGRAM: walks docs/first-run.md and the README's first command with real servers, and puts what PROGRAM prints into these
pages. On a host on which other programs run the figures are not the database's: then nothing is changed, and that is said."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# How often a step is tried where other programs disturb it.
TRIES = 5
# The throughput of a comparison: its change, and the ends of the interval, %.
WORSE = re.compile(r"^ *throughput  .* worse by ([\d.]+) % \(-([\d.]+) to -([\d.]+) %\)", re.M)


def fail(why):
    sys.exit(f"{why}: README.md and docs/first-run.md stay as they are")


class Walk:
    """Commands in a folder of their own, which pages call /tmp/bench: paths of this host are no part of them."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, *args, codes=(0,)):
        done = subprocess.run([self.program, *args], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode not in codes:
            fail(f"dyno {' '.join(args)}: exit code {done.returncode}: {done.stderr}")
        return [text.replace(str(self.folder), "/tmp/bench").strip("\n") for text in (done.stdout, done.stderr)]

    def until(self, what, fits, step):
        for _ in range(TRIES):
            found = step()
            if fits(found):
                return found
        fail(f"{what}: other programs disturb this host")

    def valid(self, *args):
        """A run that no program disturbed."""
        return self.until("dyno run", lambda found: found[0].startswith("VALID"), lambda: self.run(*args, codes=(0, 5)))


def block(page, begins, text):
    """Puts text in the place of a fenced block from the line that begins so to the block's end."""
    pattern = re.compile(rf"^{begins}[^\n]*\n.*?(?=^```)", re.M | re.S)
    page, count = pattern.subn(lambda _: text + "\n", page, count=1)
    return page if count == 1 else fail(f"no block with a line that begins with {begins}")


def sentence(page, pattern, text):
    page, count = re.subn(pattern, lambda _: text, page)
    return page if count == 1 else fail(f"{count} sentences are like {pattern}")


def first_run(walk, page):
    summary, progress = walk.valid("run", "--records", "10k", "--duration", "10s")
    page = block(page, re.escape("$ dyno run --records 10k --duration 10s"), f"$ dyno run --records 10k --duration 10s\n{progress}")
    page = block(page, "(?:VALID|SUSPECT)  workloada, 16 users", summary)
    rate = re.search(r"^measure +([\d,]+) operations/s", summary, re.M)[1]
    p50, p99 = re.search(r"^READ +\S+ \S+ +(\S+ \S+) +(\S+ \S+)", summary, re.M).groups()
    page = sentence(page, r"\*\*`measure`\*\*: [\d,]+ operations", f"**`measure`**: {rate} operations")
    page = sentence(page, r"reads took up to [^,]+, 99 % up to [^.]+(\.\d+ [^.]+)?\. ", f"reads took up to {p50}, 99 % up to {p99}. ")
    walk.run("run", "--records", "10k", "--rate", "5k", "--duration", "10s", "--require", "p99(read) < 50ms", "--out", "one", codes=(0, 5))
    wrong = walk.run("run", "--require", "p99(reed) < 50ms", codes=(2,))[1]
    page = block(page, "error: --require: threshold", wrong)

    walk.run("init", "--example", "first")
    always = ["--set", "server.options.appendonly=yes", "--set", "server.options.appendfsync=always"]

    def both():
        for out, more in (("A", []), ("B", always)):
            subprocess.run(["rm", "-rf", walk.folder / out], check=True)
            walk.run("run", "first.yaml", "--quiet", "--out", out, *more, codes=(0, 5))
        return walk.run("compare", "A", "B", codes=(0, 4))

    compared = walk.until("dyno compare", lambda found: "runs of A are" not in found[0] and WORSE.search(found[0]), both)[0]
    page = block(page, "B  against  A", compared)
    by, low, high = WORSE.search(compared).groups()
    low, high = sorted((float(low), float(high)))
    return sentence(
        page,
        r"it costs \d+ % of the throughput; the interval is \d+ to \d+ %",
        f"it costs {float(by):.0f} % of the throughput; the interval is {low:.0f} to {high:.0f} %",
    )


def readme(walk, page):
    summary = walk.valid("run")[0].replace("/tmp/bench", "/home/me")
    return block(page, re.escape("$ dyno run\n"), f"$ dyno run\n{summary}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = os.path.abspath(sys.argv[1])
    pages = {name: (ROOT / name).read_text() for name in ("docs/first-run.md", "README.md")}
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        walk = Walk(program, Path(folder).resolve())
        pages["docs/first-run.md"] = first_run(walk, pages["docs/first-run.md"])
        pages["README.md"] = readme(walk, pages["README.md"])
    for name, text in pages.items():
        (ROOT / name).write_text(text)


main()
