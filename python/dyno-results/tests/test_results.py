"""The package on runs made on the spot. DYNO names the command; a simulated server needs nothing else."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from dyno_results import NewerVersion, NotADirectory, open_experiment, open_run

DYNO = os.environ.get("DYNO") or shutil.which("dyno")

EXPERIMENT = """
target: "sim:?service=100us&distribution=exponential"
workload: {ycsb: {workload: a, records: 100}}
phases: {load: {when: never}, measure: {operations: 20000}}
factors: {users: [1, 2, 4]}
repetitions: 2
"""


def dyno(*words, folder):
    done = subprocess.run([DYNO, *words], cwd=folder, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"dyno {' '.join(words)}: {done.returncode}: {done.stderr}")
    return done.stdout


@unittest.skipUnless(DYNO, "no dyno command: set DYNO")
class Results(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        (cls.folder / "e.yaml").write_text(EXPERIMENT)
        dyno("run", "e.yaml", "--out", "e", "--quiet", folder=cls.folder)
        words = ("run", "sqlite:s.db", "--records", "1000", "--users", "2", "--duration", "3s", "--out", "r", "--quiet")
        dyno(*words, folder=cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_a_run_is_what_its_files_say(self):
        run = open_run(self.folder / "r")
        summary = json.loads((self.folder / "r" / "summary.json").read_text())
        phase = next(phase for phase in summary["phases"] if phase["name"] == "measure")
        found = run.phases.set_index("name").loc["measure"]
        self.assertEqual(found["throughput"], phase["throughput"])
        self.assertIn(run.verdict, ("valid", "suspect", "invalid"))
        total = run.series.query("phase == 'measure' and metric == 'TOTAL'")
        self.assertEqual(total["ok"].sum(), phase["outcomes"]["ok"])
        counters = run.intervals.query("phase == 'measure'")
        self.assertEqual(counters["ended_ok"].sum(), phase["outcomes"]["ok"])
        self.assertEqual(counters["arrivals"].sum(), phase["arrivals"])
        self.assertIn("begin", set(run.events["event"]))
        self.assertEqual(str(run.events["at"].dt.tz), "UTC")

    def test_histograms_add_up_to_the_summary(self):
        try:
            import hdrh  # noqa: F401
        except ImportError:
            self.skipTest("hdrhistogram is not installed")
        run = open_run(self.folder / "r")
        measured = run.summary.query("phase == 'measure'").set_index("metric")
        for name in ("READ", "UPDATE"):
            merged = run.histograms[f"measure.{name}.ok.response"]
            self.assertEqual(merged.get_total_count(), measured.loc[name, "response_count"])
            for p in (50, 95):
                of_dyno = measured.loc[name, f"response_p{p}_us"]
                # Ranks are rounded in other ways: the neighbouring sample is meant as well; one step of the log is a thousandth.
                rank = 150 / merged.get_total_count()
                low, high = (merged.get_value_at_percentile(p + by) / 1000 for by in (-rank, rank))
                self.assertLessEqual(low * 0.997 - 0.13, of_dyno, f"{name} p{p}")
                self.assertGreaterEqual(high * 1.003 + 0.13, of_dyno, f"{name} p{p}")

    def test_monitors_are_on_one_time_axis_with_the_load(self):
        run = open_run(self.folder / "r")
        self.assertIn("host", run.sources)
        host = run.monitor("host")
        events = run.events.set_index("event")["at"]
        self.assertLess(host.index[0], events["end"].max() if hasattr(events["end"], "max") else events["end"])
        rates = run.rates("host")
        counters = [name for name, kind in host.attrs["kinds"].items() if kind == "counter" and name in rates]
        self.assertTrue((rates[counters].iloc[1:].min() >= 0).any())
        with self.assertRaisesRegex(KeyError, "there are: .*host"):
            run.monitor("hosts")

    def test_an_experiment_has_its_levels(self):
        experiment = open_experiment(self.folder / "e")
        self.assertEqual(experiment.factors, ["users"])
        self.assertEqual(sorted(experiment.runs["users"].unique()), [1, 2, 4])
        self.assertEqual(len(experiment.runs), 6)
        self.assertEqual(experiment.phases.groupby("users")["throughput"].count().to_dict(), {1: 2, 2: 2, 4: 2})
        self.assertEqual(set(experiment.summary["metric"]), {"READ", "UPDATE", "CLEANUP"})
        self.assertEqual(experiment.intervals["ended_ok"].sum(), 6 * 20000)

    def test_what_is_no_directory_is_said_so(self):
        with self.assertRaisesRegex(NotADirectory, "no run.json"):
            open_run(self.folder)
        copy = self.folder / "newer"
        shutil.copytree(self.folder / "r", copy)
        head = json.loads((copy / "run.json").read_text())
        (copy / "run.json").write_text(json.dumps({**head, "version": 99}))
        with self.assertRaisesRegex(NewerVersion, "99"):
            open_run(copy)

    def test_a_torn_last_line_is_left_out_and_no_summary_is_none(self):
        copy = self.folder / "torn"
        shutil.copytree(self.folder / "r", copy)
        (copy / "summary.json").unlink()
        lines = (copy / "intervals.jsonl").read_text()
        (copy / "intervals.jsonl").write_text(lines + lines[:50])
        run = open_run(copy)
        self.assertIsNone(run.verdict)
        self.assertTrue(run.summary.empty)
        self.assertEqual(len(run.intervals), lines.count("\n"))

    def test_an_imported_run_has_gaps_where_nothing_is_known(self):
        (self.folder / "l.csv").write_text("t,x\n10,100\n20,50\n")
        words = ("import", "csv", "l.csv", "--time", "t", "--throughput", "x", "--out", "l")
        dyno(*words, folder=self.folder)
        run = open_run(self.folder / "l")
        self.assertEqual(list(run.intervals["length_s"]), [10, 10])
        self.assertTrue(run.series["service_p99_us"].isna().all())
        self.assertNotIn("service_mean_us", run.summary.columns)


if __name__ == "__main__":
    unittest.main()
