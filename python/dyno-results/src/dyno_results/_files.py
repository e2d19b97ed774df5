"""Reading of the files that make a directory."""

import json
from pathlib import Path

#: Newest version of the format that is read.
VERSION = 1


class NotADirectory(ValueError):
    """The path holds no run or experiment."""


class NewerVersion(ValueError):
    """The directory was written by a later version."""


def read_json(path):
    """A JSON file's content."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def read_head(folder, name):
    """The JSON file that says what a directory is, of a version that can be read."""
    path = Path(folder) / name
    if not path.is_file():
        raise NotADirectory(f"{folder}: no {name} in it")
    head = read_json(path)
    if head["version"] > VERSION:
        raise NewerVersion(f"{folder}: format {head['version']} is newer than this package reads ({VERSION})")
    return head


def read_lines(path):
    """The objects of a JSON lines file. The last line of a killed run may be torn; it is left out."""
    path = Path(path)
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    objects = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            objects.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}:{number}: {error}") from error
    return objects
