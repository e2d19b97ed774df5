#!/usr/bin/env python3
"""Measures the tables of docs/reliability.md again: all, or those that are named (make reliability PART='chaos dips').

A table stands in a section that says what makes it:

    <!-- NAME: COMMAND -->
    | head |
    |---|
    | row |

    `COMMAND`, DATE, commit HASH
    <!-- end -->

The command prints the rows, each on a line of its own; what stands before them (CHAOS, say) is left out. What is not measured again
stays as it is. A row that is printed twice, or none at all, is an error.
"""

import datetime
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "reliability.md"
SECTION = re.compile(r"<!-- (?P<name>[a-z-]+): (?P<command>.+?) -->\n(?P<body>.*?)<!-- end -->", re.S)


def output(command):
    """What a command prints, on both streams; it is shown meanwhile."""
    lines = []
    with subprocess.Popen(command, shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        for line in child.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip("\n"))
    return lines, child.returncode


def commit():
    """The commit that is measured; a changed tree is said to be one."""
    short = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    changed = subprocess.run(["git", "status", "--porcelain", "--", "crates"], capture_output=True, text=True, check=True)
    return short.stdout.strip() + (" and changes" if changed.stdout.strip() else "")


def measured(section):
    """A section with rows of today."""
    lines, status = output(section["command"])
    rows = [line[line.index("| "):] for line in lines if re.match(r"^([A-Z]+ |.*\.\.\. [A-Z]+ )?\| ", line)]
    head = section["body"].split("\n|---", 1)[0]
    ruler = re.search(r"^\|---.*$", section["body"], re.M).group(0)
    if status != 0 or not rows or len(set(rows)) < len(rows):
        sys.exit(f"{section['name']}: {len(rows)} rows, exit code {status}: the page stays as it is")
    stamp = f"`{section['command']}`, {datetime.date.today()}, commit {commit()}"
    table = "\n".join([head, ruler, *rows])
    return f"<!-- {section['name']}: {section['command']} -->\n{table}\n\n{stamp}\n<!-- end -->"


def main():
    names = sys.argv[1:]
    text = PAGE.read_text()
    sections = {found["name"]: found for found in SECTION.finditer(text)}
    unknown = [name for name in names if name not in sections]
    if unknown:
        sys.exit(f"{', '.join(unknown)}: known are {', '.join(sections)}")
    for name in names or sections:
        # Each is written once it is there: the next may take an hour.
        text = PAGE.read_text()
        found = next(one for one in SECTION.finditer(text) if one["name"] == name)
        PAGE.write_text(text[: found.start()] + measured(found) + text[found.end() :])


if __name__ == "__main__":
    main()
