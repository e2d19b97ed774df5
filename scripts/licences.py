#!/usr/bin/env python3
"""licences.py [TARGET]: the licence texts of every library in the program, on standard output.

Libraries are those that cargo links for TARGET (x86_64-unknown-linux-musl) with the default features, without what only builds or tests
need. A text that several share is written once, below their names. A library whose package holds no text is named with what stands for it:
dyno's own LICENSE where Apache-2.0 is one of its licences, nothing where its licence asks for no notice.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

NAMES = re.compile(r"^(licen[cs]e|copying|notice|unlicense|copyright)", re.IGNORECASE)

# Licences without conditions.
NO_NOTICE = {"0BSD", "CC0-1.0", "Unlicense"}


def libraries(target):
    """Packages that the program links, by what cargo resolves."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    meta = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    packages = {package["id"]: package for package in meta["packages"]}
    nodes = {node["id"]: node for node in meta["resolve"]["nodes"]}
    own = set(meta["workspace_members"])
    root = next(id for id in own if packages[id]["name"] == "dyno-cli")
    seen, todo = set(), [root]
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        for dep in nodes[at]["deps"]:
            # `kind` is null for what is linked, else "dev" or "build".
            if any(kind["kind"] is None for kind in dep["dep_kinds"]):
                todo.append(dep["pkg"])
    found = [packages[id] for id in seen if id not in own]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def texts(package):
    """Licence texts in a package's folder."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(file for file in folder.iterdir() if file.is_file() and NAMES.match(file.name))
    return [file.read_text(encoding="utf-8", errors="replace").strip() for file in files]


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else "x86_64-unknown-linux-musl"
    by_text, without, lost = {}, [], []
    for package in libraries(target):
        licence = package["license"] or ""
        name = f"{package['name']} {package['version']} ({licence or 'see its text'})"
        own = texts(package)
        for text in own:
            by_text.setdefault(" ".join(text.split()), (text, []))[1].append(name)
        if own:
            continue
        if "Apache-2.0" in licence:
            without.append(f"{name}: under Apache-2.0, whose text is that of dyno's LICENSE")
        elif licence in NO_NOTICE:
            without.append(f"{name}: asks for no notice")
        else:
            lost.append(name)
    if lost:
        sys.exit(f"no text of a licence: {', '.join(lost)}")
    print("Libraries in dyno, and their licences.\n")
    print("\n".join(without))
    for text, names in sorted(by_text.values(), key=lambda entry: entry[1]):
        print("\n" + "=" * 100)
        print("\n".join(names))
        print("=" * 100 + "\n")
        print(text)


if __name__ == "__main__":
    main()
