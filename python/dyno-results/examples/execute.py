"""Executes the example notebook as it is and as `dyno bexhoma jupyter` serves it: `execute.py FOLDER`; DYNO names the command.

As it is, it runs an experiment itself: users against a simulated server whose law is known. It is executed once more on a directory, and
on what bexhoma's flags leave of a Redis of this host, where there is one. Prints a line that begins with SKIPPED where there is none.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).with_name("experiment.ipynb").resolve()

#: Two factors.
EXPERIMENT = """
target: "sim:?service=100us&distribution=exponential"
workload: {ycsb: {workload: a, records: 100}}
phases: {load: {when: never}, measure: {operations: 40000}}
factors: {users: [1, 4], workload.ycsb.workload: [a, c]}
repetitions: 2
"""

#: Two rounds of two repetitions at a target: the factors are names, and the loop is open.
BEXHOMA = (
    "bexhoma ycsb -dbms Redis -sf 1 -xwl a -xop 4 -xtb 500 -xnlf 2 -xnbf 2,4 -nlp 2 -nlt 4 -nbt 4 -nc 2 -m -mc -ma "
    "--local --scale 1000 --resultfolder results -q run"
)

#: Little's law in a closed loop without think time: users that wait are all users.
LAW = "assert laws['error'].abs().max() < 0.05, laws"


def dyno(words, folder, accepted=(0,)):
    done = subprocess.run([os.environ["DYNO"], *words], cwd=folder, stdout=subprocess.DEVNULL)
    if done.returncode not in accepted:
        sys.exit(f"dyno {' '.join(words)}: exit code {done.returncode}")


def execute(notebook, experiment, folder, then=None):
    """Executes it on an experiment, or on the one that it makes; four pictures and two cards are expected."""
    if then:
        notebook.cells.append(nbformat.v4.new_code_cell(then))
    os.environ.pop("DYNO_EXPERIMENT", None)
    if experiment:
        os.environ["DYNO_EXPERIMENT"] = str(experiment)
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = sum("image/png" in output.get("data", {}) for output in outputs)
    cards = sum("border-radius" in output.get("data", {}).get("text/html", "") for output in outputs)
    if (pictures, cards) != (4, 2):
        sys.exit(f"the notebook on {experiment} shows {pictures} pictures and {cards} cards, not four and two")


def sources(notebook):
    """What its cells say."""
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def served(folder):
    """The notebook that `dyno bexhoma jupyter` serves, asked of its server, and the experiment that it is told of."""
    command = [os.environ["DYNO"], "bexhoma", "jupyter", "--resultfolder", "results"]
    with open(folder / "jupyter.log", "w") as log:
        child = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            url = child.stdout.readline().strip()
            base, token = url.split("/notebooks/")[0], url.split("?token=")[1]
            asked = f"{base}/api/contents/experiment.ipynb?token={token}"
            until = time.monotonic() + 120
            while True:
                try:
                    with urllib.request.urlopen(asked, timeout=30) as answer:
                        content = json.load(answer)["content"]
                    break
                except (urllib.error.URLError, ConnectionError):
                    if child.poll() is not None or time.monotonic() > until:
                        sys.exit(f"nothing is served at {base}:\n{(folder / 'jupyter.log').read_text()}")
                    time.sleep(0.2)
            notebook = nbformat.from_dict(content)
            if sources(notebook) != sources(nbformat.read(NOTEBOOK, as_version=4)):
                sys.exit(f"dyno serves another notebook than {NOTEBOOK}: build it anew")
            experiments = [path for path in (folder / "results").iterdir() if path.is_dir()]
            return notebook, experiments[0]
        finally:
            child.send_signal(signal.SIGINT)
            if child.wait(timeout=60) != 130:
                sys.exit(f"dyno bexhoma jupyter ended with {child.returncode}, not with 130")


def main(folder):
    folder = Path(folder).resolve()
    (folder / "two.yaml").write_text(EXPERIMENT)
    dyno(["run", "two.yaml", "--out", "experiment", "--quiet"], folder)
    for experiment, then in ((None, LAW), (folder / "experiment", None)):
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        execute(notebook, experiment, folder, then)
    if not list(folder.glob("dyno-runs/*-users/experiment.json")):
        sys.exit("the notebook has run no experiment of its own")
    if not shutil.which("redis-server"):
        print("SKIPPED: the notebook of dyno bexhoma jupyter: no redis-server on PATH")
        return
    # 4 and 5 are about this machine.
    dyno(BEXHOMA.split(), folder, accepted=(0, 4, 5))
    execute(*served(folder), folder)


if __name__ == "__main__":
    main(sys.argv[1])
