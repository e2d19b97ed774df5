"""Executes the Python blocks of README files one after the other, each file in a folder of its own: `readme.py FILE...`.

Values that a block leaves as its last line are printed, as in a notebook.
"""

import ast
import os
import re
import sys
import tempfile


def execute(path):
    with open(path, encoding="utf-8") as file:
        blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
    if not blocks:
        sys.exit(f"{path}: no Python in it")
    names = {}
    for number, block in enumerate(blocks, 1):
        print(f">>> {os.path.basename(os.path.dirname(path))}, block {number}")
        tree = ast.parse(block)
        for statement in tree.body:
            code = ast.unparse(statement)
            if isinstance(statement, ast.Expr):
                value = eval(code, names)
                if value is not None:
                    print(f"{code}\n{value}")
            else:
                exec(code, names)


for file in sys.argv[1:]:
    file = os.path.abspath(file)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        execute(file)
        os.chdir("/")
