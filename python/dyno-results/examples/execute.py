"""Executes the example notebook on an experiment made on the spot: `execute.py FOLDER`; DYNO names the command."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

EXPERIMENT = """
target: "sim:?service=100us&distribution=exponential"
workload: {ycsb: {workload: a, records: 100}}
phases: {load: {when: never}, measure: {operations: 40000}}
factors: {users: [1, 2, 4, 8, 16]}
repetitions: 2
"""


def main(folder):
    folder = Path(folder)
    (folder / "users.yaml").write_text(EXPERIMENT)
    words = [os.environ["DYNO"], "run", "users.yaml", "--out", "experiment", "--quiet"]
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    notebook = nbformat.read(Path(__file__).with_name("experiment.ipynb"), as_version=4)
    os.environ["DYNO_EXPERIMENT"] = str(folder / "experiment")
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    if len(pictures) < 3:
        sys.exit(f"the notebook shows {len(pictures)} pictures, not three")
    nbformat.write(notebook, folder / "executed.ipynb")


if __name__ == "__main__":
    main(sys.argv[1])
