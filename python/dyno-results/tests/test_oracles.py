"""SciPy, ruptures and Apache Otava as oracles of dyno's statistics, on runs that `dyno import` makes."""

import csv
import json
import os
import random
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

DYNO = os.environ.get("DYNO") or shutil.which("dyno")

try:
    from scipy import stats
except ImportError:
    stats = None

try:
    import ruptures
except ImportError:
    ruptures = None

try:
    from otava import analysis as otava
except ImportError:
    otava = None

# Long runs of a performance lab: throughput of ten seconds each, one volume with burst credits and one array.
LAB = Path(__file__).resolve().parents[3] / "tests/data/lab-longrun.csv"


def dyno(*words, folder):
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    done = subprocess.run([DYNO, *words], cwd=folder, capture_output=True, text=True, timeout=300, env=environment)
    if done.returncode != 0:
        raise AssertionError(f"dyno {' '.join(words)}: {done.returncode}: {done.stderr}")
    return done.stdout


@unittest.skipUnless(DYNO, "no dyno command: set DYNO")
class Oracles(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def sweep(self, name, values, **columns):
        """An experiment of one cell, a repetition for each value."""
        heads = ["x", *columns]
        rows = [",".join(str(x) for x in row) for row in zip(values, *columns.values())]
        (self.folder / f"{name}.csv").write_text("\n".join([",".join(heads), *rows]) + "\n")
        words = ["import", "csv", f"{name}.csv", "--throughput", "x", "--duration", "100s", "--out", name]
        for head, option in (("n", "--users"), ("r", "--response-us")):
            words += [option, head] if head in columns else []
        dyno(*words, folder=self.folder)

    @unittest.skipUnless(stats, "SciPy is not installed")
    def test_the_rank_test_is_scipy_s(self):
        draw = random.Random(1)
        for number, shift in enumerate((0, 2, 5, 10, 40)):
            one = [round(1000 + draw.gauss(0, 20), 3) for _ in range(8)]
            other = [round(1000 - shift + draw.gauss(0, 20), 3) for _ in range(10)]
            self.sweep(f"a{number}", one)
            self.sweep(f"b{number}", other)
            found = json.loads(dyno("compare", f"a{number}", f"b{number}", "--json", folder=self.folder))
            figure = next(figure for figure in found[0]["figures"] if figure["name"] == "throughput")
            expected = stats.mannwhitneyu(one, other, alternative="two-sided", method="exact").pvalue
            self.assertAlmostEqual(figure["rank_p"], expected, places=9)
            # The decision's own p goes with its interval.
            ratio = figure["ratio"]
            self.assertEqual(figure["p"] >= 0.05, ratio["low"] <= 1 <= ratio["high"])
            self.assertAlmostEqual(figure["means"][0], sum(one) / len(one), places=6)

    @unittest.skipUnless(stats, "SciPy is not installed")
    def test_an_open_queue_has_scipy_s_quantiles(self):
        # The engine with exponential service beside M/M/1's closed form.
        rate, service = 6000, 100e-6
        words = ("run", "sim:?service=100us&distribution=exponential", "--rate", str(rate), "--connections", "512")
        words += ("--ops", "400000", "--workload", "c", "--seed", "3", "--json", "--quiet", "--no-out")
        summary = json.loads(dyno(*words, folder=self.folder))
        phase = next(phase for phase in summary["phases"] if phase["name"] == "measure")
        read = next(metric for metric in phase["metrics"] if metric["name"] == "READ")["response"]
        response = stats.expon(scale=1 / (1 / service - rate))
        self.assertLess(abs(read["mean_us"] / (response.mean() * 1e6) - 1), 0.03)
        for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
            self.assertLess(abs(read["percentiles_us"][name] / (response.ppf(q) * 1e6) - 1), 0.05, name)

    @unittest.skipUnless(ruptures, "ruptures is not installed")
    def test_a_step_is_dated_as_pelt_dates_it(self):
        import numpy

        for seed in range(5):
            draw = random.Random(seed)
            at = 8 + seed
            values = [round((1000 if run < at else 850) + draw.gauss(0, 15), 3) for run in range(24)]
            folders = []
            for number, value in enumerate(values):
                name = f"s{seed}-{number:02}"
                (self.folder / f"{name}.csv").write_text(f"t,x\n10,{value}\n20,{value}\n")
                started = f"2026-01-{number + 1:02}T00:00:00Z"
                words = ("import", "csv", f"{name}.csv", "--time", "t", "--throughput", "x", "--started", started)
                dyno(*words, "--out", name, folder=self.folder)
                folders.append(name)
            found = json.loads(dyno("history", *folders, "--json", folder=self.folder))
            steps = [step["first_run"] for step in found[0]["steps"]]
            signal = numpy.array(values)
            breaks = ruptures.Pelt(model="l2", min_size=4, jump=1).fit(signal).predict(pen=3 * 15**2 * numpy.log(len(values)))
            self.assertEqual(steps, [folders[place] for place in breaks[:-1]])

    @unittest.skipUnless(otava, "apache-otava is not installed")
    @unittest.skipUnless(LAB.is_file(), f"{LAB} is not there")
    def test_alarms_are_among_otava_s_changes(self):
        # Otava takes every point for independent and finds what remembers its past, too: dyno's are a part of its changes.
        # The interval from 1,640 s on holds both levels of the burst: Otava has a change on either side of it.
        for name, changes, alarms in (
            ("single_burst", [28, 163, 164, 195, 222, 244, 261, 283, 332, 346], (163, 164)),
            ("raid0_xfs", [104], (None,)),
        ):
            with LAB.open() as file:
                rows = [row for row in csv.DictReader(file) if row[name]]
            # The last interval is a part of one.
            values = [float(row[name]) for row in rows][:-1]
            theirs = [int(point.index) for point in otava.compute_change_points(values, 50, 0.001)[0]]
            self.assertEqual(theirs, changes)
            lines = ["t_s," + name, *(f"{row['t_s']},{row[name]}" for row in rows[:-1])]
            (self.folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
            dyno("import", "csv", f"{name}.csv", "--time", "t_s", "--throughput", name, "--out", name, folder=self.folder)
            found = json.loads(dyno("explain", name, "--json", folder=self.folder))["runs"][0]["stability"]
            at = None if found["alarm"] is None else found["segments"][found["alarm"]]["range"][0]
            self.assertIn(at, alarms)
            self.assertTrue(at is None or at in theirs)


if __name__ == "__main__":
    unittest.main()
