"""`run`, `open`, `merge` and `compare` on runs made on the spot. DYNO names the command; a simulated server needs nothing else."""

import contextlib
import datetime
import io
import json
import math
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path

import dyno_results as dyno
from dyno_results import _html, _options

DYNO = os.environ.get("DYNO") or shutil.which("dyno")

try:
    import matplotlib

    matplotlib.use("Agg")
except ImportError:
    matplotlib = None

SIMULATED = "sim:?service=100us&distribution=exponential"

#: An experiment as a mapping: two factors, of which one has names as levels.
EXPERIMENT = {
    "name": "loops",
    "target": SIMULATED,
    "workload": {"ycsb": {"workload": "a", "records": 100}},
    "phases": {"load": {"when": "never"}, "measure": {"operations": 20000}},
    "factors": {"users": [1, 2, 4], "seed": [1, 2]},
    "repetitions": 2,
}


class Words(unittest.TestCase):
    def test_keywords_are_options(self):
        given = {"records": 100_000, "no_pin": True, "no_monitor": False, "seed": None, "require": ["p99 < 5ms", "errors < 1"]}
        expected = ["--records=100000", "--no-pin", "--require=p99 < 5ms", "--require=errors < 1"]
        self.assertEqual(_options.words(given), expected)

    def test_values_are_written_as_dyno_reads_them(self):
        given = {
            "rate": 2e4,
            "duration": datetime.timedelta(milliseconds=1500),
            "workload": Path("a/b.yaml"),
            "set": {"users": [1, 8], "phases.load.when": "never"},
            "property": {"readallfields": False},
        }
        expected = ["--rate=20000", "--duration=1500000us", "--workload=a/b.yaml", "--set=users=[1, 8]"]
        expected += ["--set=phases.load.when=never", "--property=readallfields=false"]
        self.assertEqual(_options.words(given), expected)
        with self.assertRaisesRegex(TypeError, "object"):
            _options.words({"rate": object()})

    def test_numbers_of_numpy_are_numbers(self):
        import numpy

        self.assertEqual(_options.words({"users": numpy.int64(4), "rate": numpy.float64(0.5)}), ["--users=4", "--rate=0.5"])

    def test_latencies_have_three_digits(self):
        shown = [_html.latency(us) for us in (0.127, 1.006, 32.14, 461.05, 999.9, 1600, 2.5e6, math.inf, math.nan)]
        self.assertEqual(shown, ["127 ns", "1.01 µs", "32.1 µs", "461 µs", "1.00 ms", "1.60 ms", "2.50 s", "∞", "-"])


class Folder(unittest.TestCase):
    """Each test runs in a temporary folder of its own class."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        cls.before = os.getcwd()
        os.chdir(cls.folder)

    @classmethod
    def tearDownClass(cls):
        os.chdir(cls.before)
        cls.temporary.cleanup()


@unittest.skipUnless(DYNO, "no dyno command: set DYNO")
class Measured(Folder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        options = {"users": 4, "duration": 2, "records": 1000, "program": DYNO}
        cls.run_ = dyno.run(SIMULATED, require=["p50(read) < 1s", "throughput > 1"], out="r", **options)
        cls.other = dyno.run(SIMULATED, seed=2, **options)

    def test_the_result_is_the_directory_s(self):
        summary = json.loads(Path("r/summary.json").read_text())
        phase = summary["phases"][-1]
        self.assertEqual((self.run_.verdict, self.run_.exit_code, self.run_.passed), ("valid", 0, True))
        self.assertEqual((self.run_.throughput, self.run_.failed), (phase["throughput"], 0))
        self.assertEqual(list(self.run_.thresholds["passed"]), [True, True])
        self.assertIn("phases.measure.users", {one["key"] for one in self.run_.run["settings"] if one["source"] == "--users"})
        again = dyno.open("r")
        self.assertIsInstance(again, dyno.Run)
        self.assertEqual((again.exit_code, again.throughput), (0, self.run_.throughput))
        self.assertIn("valid", repr(again))

    def test_without_out_it_is_where_the_command_puts_it(self):
        self.assertEqual(self.other.path.parent, Path("dyno-runs"))
        self.assertRegex(self.other.path.name, r"^\d{8}-\d{6}-workloada$")

    def test_latencies_are_the_summary_s(self):
        frame = self.run_.latencies
        self.assertEqual(list(frame.index), ["READ", "UPDATE"])
        self.assertEqual(list(frame.columns.levels[0]), ["response", "service"])
        for metric in self.run_.measured["metrics"]:
            if metric["name"] == "CLEANUP":
                continue
            for kind in ("response", "service"):
                figures = frame.loc[metric["name"], kind]
                self.assertEqual(figures["count"], metric[kind]["count"])
                self.assertEqual(figures["mean"], metric[kind]["mean_us"])
                self.assertEqual(figures["max"], metric[kind]["max_us"])
                for name in ("p50", "p90", "p95", "p99", "p99.9"):
                    expected = metric[kind]["percentiles_us"].get(name, math.nan)
                    self.assertTrue(figures[name] == expected or math.isnan(expected) and math.isnan(figures[name]), name)

    def test_percentiles_of_histograms_are_dyno_s(self):
        compared = 0
        for operation, row in self.run_.latencies.iterrows():
            for kind in ("response", "service"):
                for name in ("p50", "p90", "p95", "p99", "p99.9"):
                    found = self.run_.percentile(float(name[1:]), operation.lower(), kind)
                    expected = row[(kind, name)]
                    self.assertTrue(found == expected or math.isnan(found) and math.isnan(expected), f"{operation} {kind} {name}")
                    compared += not math.isnan(found)
                self.assertEqual(self.run_.percentile(100, operation, kind), row[(kind, "max")])
        self.assertGreaterEqual(compared, 16)
        both = self.run_.percentile(99)
        each = [self.run_.percentile(99, name) for name in ("READ", "UPDATE")]
        self.assertTrue(min(each) <= both <= max(each))
        self.assertTrue(math.isnan(self.run_.percentile(99.999)), "too few samples lie beyond it")
        for wrong, words in ((0, "expected a percentile"), (101, "expected a percentile")):
            with self.assertRaisesRegex(ValueError, words):
                self.run_.percentile(wrong)
        with self.assertRaisesRegex(KeyError, "no operation scan.*READ, UPDATE"):
            self.run_.percentile(99, "scan")
        with self.assertRaisesRegex(ValueError, "response or service"):
            self.run_.percentile(99, kind="lag")

    def test_a_torn_or_missing_total_falls_back_to_the_log(self):
        copy = Path("totals")
        shutil.copytree("r", copy)
        lines = (copy / "totals.hlog").read_text().splitlines(keepends=True)
        (copy / "totals.hlog").write_text("".join(line for line in lines if "READ" not in line))
        self.assertEqual(dyno.open(copy).percentile(99, "READ"), self.run_.percentile(99, "READ"))
        (copy / "totals.hlog").unlink()
        self.assertEqual(dyno.open(copy).percentile(99, "READ"), self.run_.percentile(99, "READ"))
        (copy / "latency.hlog").unlink()
        with self.assertRaisesRegex(ValueError, "no histograms of READ"):
            dyno.open(copy).percentile(99, "READ")

    def test_a_run_without_a_summary_has_no_figures(self):
        copy = Path("killed")
        shutil.copytree("r", copy)
        (copy / "summary.json").unlink()
        run = dyno.open(copy)
        self.assertEqual((run.verdict, run.throughput, run.exit_code, run.passed, run.reasons), (None, None, None, False, []))
        self.assertTrue(run.latencies.empty)
        self.assertIn("no summary", run._repr_html_())
        with self.assertRaisesRegex(ValueError, "no summary"):
            run.percentile(99)

    def test_intervals_cover_the_phase(self):
        measured = self.run_.intervals.query("phase == 'measure'")
        self.assertAlmostEqual(measured["length_s"].sum(), self.run_.measured["seconds"], places=6)
        operations = (measured["throughput"] * measured["length_s"]).sum()
        self.assertAlmostEqual(operations, self.run_.measured["outcomes"]["ok"], places=3)
        # 10,000/s by the server's law; a partial interval must not look like a dip.
        self.assertGreater(measured["throughput"].min(), 8000)

    def test_merged_runs_have_the_percentiles_of_all_samples(self):
        merged = dyno.merge(self.run_, self.other.path, sequential=True, program=DYNO)
        counts = [run.latencies.loc["READ", ("response", "count")] for run in (self.run_, self.other)]
        self.assertEqual(merged.latencies.loc["READ", ("response", "count")], sum(counts))
        for operation in ("READ", "UPDATE"):
            for p in (50, 95, 99):
                self.assertEqual(merged.percentile(p, operation), merged.latencies.loc[operation, ("response", f"p{p}")])
        self.assertIn("merged", merged._repr_html_())
        with self.assertRaisesRegex(dyno.UsageError, "same run"):
            dyno.merge("r", "r", program=DYNO)

    def test_a_comparison_is_a_frame(self):
        compared = dyno.compare(self.run_, self.other, program=DYNO)
        figures = compared.figures.set_index("figure")
        self.assertEqual(figures.loc["throughput", "before"], self.run_.throughput)
        self.assertEqual(figures.loc["throughput", "after"], self.other.throughput)
        self.assertEqual(figures.loc["throughput", "conclusion"], "unclear")
        self.assertGreater(figures.loc["throughput", "more_runs"], 0)
        self.assertTrue(any("one run" in words for words in compared.warnings))
        self.assertIn("unclear", compared._repr_html_())
        self.assertEqual(dyno.compare("r", self.other, fail_on="unclear", program=DYNO).exit_code, 4)
        with self.assertRaisesRegex(dyno.UsageError, "nowhere"):
            dyno.compare("r", "nowhere", program=DYNO)

    def test_the_card_is_escaped(self):
        copy = Path("hostile")
        shutil.copytree("r", copy)
        hostile = "<script>alert('x')</script>"
        summary = json.loads((copy / "summary.json").read_text())
        summary["title"] = summary["database"] = summary["phases"][-1]["name"] = hostile
        summary["verdict"]["trust"] = hostile
        summary["verdict"]["reasons"] = [{"check": hostile, "trust": hostile, "text": hostile}]
        summary["thresholds"][0]["expression"] = hostile
        summary["phases"][-1]["metrics"][0]["name"] = hostile
        (copy / "summary.json").write_text(json.dumps(summary))
        card = dyno.open(copy)._repr_html_()
        self.assertNotIn("<script", card)
        self.assertGreaterEqual(card.count("&lt;script&gt;"), 8)
        self.assertNotIn("'x'", card)
        plain = self.run_._repr_html_()
        for words in (">valid</span>", "operations/s", "p50(read) &lt; 1s: held", "READ", "p99.9"):
            self.assertIn(words, plain)

    @unittest.skipUnless(matplotlib, "matplotlib is not installed")
    def test_a_plot_has_both_panels(self):
        above, below = self.run_.plot()
        self.assertEqual((above.get_ylabel(), below.get_ylabel()), ("operations/s", "response time, ms"))
        shown = above.get_lines()[0].get_ydata()
        self.assertTrue(len(shown) >= 1 and min(shown) > 8000, shown)
        self.assertEqual(len(below.get_lines()), 4)
        self.assertLess(max(below.get_lines()[0].get_ydata()), 10)
        above.figure.savefig(io.BytesIO(), format="png")
        matplotlib.pyplot.close("all")

    def test_a_missed_threshold_is_a_result(self):
        missed = dyno.run(SIMULATED, users=2, duration=1, require="p99(read) < 1us", out="missed", program=DYNO)
        self.assertEqual((missed.exit_code, missed.passed, missed.verdict), (4, False, "valid"))
        self.assertEqual(dyno.open("missed").exit_code, 4)
        self.assertIn("missed", missed._repr_html_())

    def test_an_invalid_run_is_a_result(self):
        # A server that can answer a hundredth of what is asked, and arrivals that may not wait: most are dropped.
        options = {"rate": 100_000, "connections": 1, "queue": 1, "duration": 1, "out": "invalid", "program": DYNO}
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            invalid = dyno.run("sim:?service=1ms", **options)
        self.assertEqual((invalid.exit_code, invalid.verdict), (5, "invalid"))
        self.assertGreater(invalid.failed, 0)
        self.assertTrue(invalid.reasons)
        self.assertTrue([one for one in seen if one.category is dyno.DynoWarning and "invalid" in str(one.message)])
        self.assertIn("all_response", invalid.latencies)
        self.assertTrue(math.isinf(invalid.latencies["all_response"]["p99"].max()), "a dropped arrival is beyond every latency")


@unittest.skipUnless(DYNO, "no dyno command: set DYNO")
class Refused(Folder):
    def test_what_dyno_refuses_is_said_in_its_words(self):
        with self.assertRaisesRegex(dyno.UsageError, r"unknown option --userz; did you mean --users\?") as caught:
            dyno.run("sim:", userz=4, program=DYNO)
        self.assertEqual((caught.exception.exit_code, caught.exception.result), (2, None))
        self.assertIsInstance(caught.exception, ValueError)
        with self.assertRaisesRegex(dyno.UsageError, "is no target"):
            dyno.run("nothing", program=DYNO)
        with self.assertRaisesRegex(dyno.UsageError, "--users.*expected a whole number"):
            dyno.run("sim:", users="many", program=DYNO)
        with self.assertRaisesRegex(dyno.UsageError, "--rate"):
            dyno.run("sim:", users=1, rate=10, program=DYNO)
        self.assertFalse(Path("dyno-runs").exists())

    def test_what_the_package_decides_is_refused(self):
        for name in ("json", "no_out", "quiet", "help"):
            with self.assertRaisesRegex(TypeError, name):
                dyno.run("sim:", program=DYNO, **{name: True})
        with self.assertRaisesRegex(TypeError, "does not begin with a dash"):
            dyno.run("--help", program=DYNO)

    def test_a_missing_server_is_unreachable(self):
        with self.assertRaisesRegex(dyno.TargetUnreachable, "127.0.0.1:1: connection refused") as caught:
            dyno.run("redis://127.0.0.1:1", duration=1, program=DYNO)
        self.assertIsInstance(caught.exception, ConnectionError)
        self.assertEqual(caught.exception.exit_code, 3)

    def test_a_directory_that_is_there_stays_as_it_is(self):
        dyno.run("sim:", duration=1, out="there", program=DYNO)
        before = Path("there/summary.json").read_bytes()
        with self.assertRaisesRegex(dyno.UsageError, "must be new") as caught:
            dyno.run("sim:", duration=1, out="there", program=DYNO)
        self.assertIsNone(caught.exception.result, "an earlier run is not this one's result")
        self.assertEqual(Path("there/summary.json").read_bytes(), before)

    def test_another_directory_is_neither(self):
        with self.assertRaisesRegex(dyno.NotADirectory, "neither run.json nor experiment.json"):
            dyno.open(".")

    def program(self, text):
        path = Path("program.sh")
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def test_an_internal_error_and_a_silent_program(self):
        with self.assertRaisesRegex(dyno.InternalError, r"^the disk is full$") as caught:
            dyno.run("sim:", program=self.program("echo note >&2; echo 'error: the disk is full' >&2; exit 1"))
        self.assertEqual(caught.exception.stderr, "note\nerror: the disk is full\n")
        with self.assertRaisesRegex(dyno.InternalError, "left no result"):
            dyno.run("sim:", program=self.program("exit 0"))
        with self.assertRaisesRegex(dyno.InternalError, "ended by signal 9"):
            dyno.run("sim:", program=self.program("kill -9 $$"))

    def test_the_program_is_found_or_named(self):
        before = os.environ.get("DYNO")
        try:
            os.environ["DYNO"] = "/nowhere/dyno"
            with self.assertRaisesRegex(dyno.ProgramNotFound, "DYNO: /nowhere/dyno is no program"):
                dyno.run("sim:")
            with self.assertRaisesRegex(dyno.ProgramNotFound, "program: ./absent is no program"):
                dyno.program("./absent")
            os.environ["DYNO"] = os.fspath(DYNO)
            self.assertEqual(dyno.program(), os.path.abspath(DYNO))
        finally:
            os.environ.pop("DYNO")
            if before is not None:
                os.environ["DYNO"] = before

    def test_the_package_has_the_program_s_version(self):
        printed = subprocess.run([DYNO, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(printed.split()[1], dyno.__version__)


@unittest.skipUnless(DYNO, "no dyno command: set DYNO")
class Interruption(Folder):
    def interrupt_once(self, begun):
        """Ctrl-C for this process once something is there."""

        def wait():
            end = time.monotonic() + 60
            while time.monotonic() < end and not begun():
                time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        return thread

    def test_ctrl_c_keeps_what_was_measured(self):
        log = Path("stopped/intervals.jsonl")
        thread = self.interrupt_once(lambda: log.is_file() and '"measure"' in log.read_text())
        with self.assertRaises(KeyboardInterrupt) as caught, warnings.catch_warnings():
            warnings.simplefilter("ignore", dyno.DynoWarning)
            dyno.run("null:", users=1, duration="120s", no_load=True, warmup="0s", out="stopped", program=DYNO)
        thread.join()
        self.assertIsInstance(caught.exception, dyno.Interrupted)
        result = caught.exception.result
        self.assertEqual((result.status, result.exit_code), ("interrupted", 130))
        self.assertGreater(result.throughput, 0)
        self.assertLess(result.measured["seconds"], 119)
        self.assertIn("interrupted", result._repr_html_())

    def test_an_interrupted_experiment_is_resumed(self):
        plan = {
            "name": "pieces",
            "target": "null:",
            "workload": {"ycsb": {"workload": "c", "records": 100}},
            "phases": {"load": {"when": "never"}, "measure": {"duration": "2s", "warmup": "0s"}},
            "factors": {"users": [1, 2]},
        }
        journal = Path("pieces/journal.jsonl")
        thread = self.interrupt_once(lambda: journal.is_file() and '"event":"run"' in journal.read_text())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dyno.DynoWarning)
            with self.assertRaises(dyno.Interrupted) as caught:
                dyno.run(plan, out="pieces", program=DYNO)
            thread.join()
            self.assertIsInstance(caught.exception.result, dyno.Experiment)
            resumed = dyno.resume(caught.exception.result, program=DYNO)
        self.assertEqual(sorted(resumed.runs.query("status == 'complete'")["users"]), [1, 2])
        self.assertIn(resumed.exit_code, (0, 5))


@unittest.skipUnless(DYNO, "no dyno command: set DYNO")
class Experiments(Folder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.experiment = dyno.run(EXPERIMENT, set={"users": [1, 4]}, program=DYNO)

    def test_a_mapping_is_an_experiment(self):
        self.assertIsInstance(self.experiment, dyno.Experiment)
        self.assertRegex(os.fspath(self.experiment.path), r"^dyno-runs/\d{8}-\d{6}-loops$")
        self.assertEqual((self.experiment.exit_code, self.experiment.verdict, self.experiment.passed), (0, "valid", True))
        self.assertEqual(len(self.experiment.runs), 8)
        self.assertIsInstance(dyno.open(self.experiment.path), dyno.Experiment)

    def test_cells_have_percentiles_of_merged_repetitions(self):
        cells = self.experiment.cells
        self.assertEqual(list(zip(cells["users"], cells["seed"], cells["runs"])), [(1, 1, 2), (1, 2, 2), (4, 1, 2), (4, 2, 2)])
        p99 = self.experiment.percentile(99)
        self.assertEqual(p99.index.names, ["users", "seed"])
        self.assertEqual(list(p99), list(cells["p99_us"]))
        runs = self.experiment.runs.query("users == 4 and seed == 1")["dir"]
        merged = dyno.merge(*(self.experiment.open(one) for one in runs), sequential=True, program=DYNO)
        self.assertEqual(p99.loc[(4, 1)], merged.percentile(99))
        read = self.experiment.percentile(99, "read").loc[(4, 1)]
        self.assertEqual(read, merged.latencies.loc["READ", ("response", "p99")])

    def test_levels_of_a_factor_are_compared(self):
        figures = dyno.compare(self.experiment, by="seed", program=DYNO).figures
        self.assertEqual(sorted(figures["cell"].unique()), ["users=1", "users=4"])

    def test_the_card_is_a_table_of_runs(self):
        card = self.experiment._repr_html_()
        self.assertEqual(card.count("<tr>"), 9)
        for words in ("loops", "users", "seed", ">valid</span>", "held"):
            self.assertIn(words, card)
        copy = Path("hostile")
        shutil.copytree(self.experiment.path, copy)
        for name in ("experiment.json", "journal.jsonl"):
            text = (copy / name).read_text().replace('"loops"', '"<script>"').replace('"seed"', '"<img src=x>"')
            (copy / name).write_text(text.replace('"trust":"valid"', '"trust":"<script>"'))
        card = dyno.open(copy)._repr_html_()
        self.assertNotIn("<script", card)
        self.assertNotIn("<img", card)
        self.assertIn("&lt;img src=x&gt;", card)

    @unittest.skipUnless(matplotlib, "matplotlib is not installed")
    def test_plots_have_a_line_for_each_other_level(self):
        ax = self.experiment.plot(x="users")
        self.assertEqual([line.get_label() for line in ax.get_lines()], ["seed 1", "seed 2"])
        self.assertEqual(list(ax.get_lines()[0].get_xdata()), [1, 4])
        p99 = self.experiment.plot(x="users", y="p99")
        expected = list(self.experiment.percentile(99).xs(1, level="seed") / 1000)
        self.assertEqual(list(p99.get_lines()[0].get_ydata()), expected)
        with self.assertRaisesRegex(KeyError, "no factor user; there are: users, seed"):
            self.experiment.plot(x="user")
        with self.assertRaisesRegex(ValueError, "mean: expected throughput, or a percentile"):
            self.experiment.plot(y="mean")
        ax.figure.savefig(io.BytesIO(), format="png")
        matplotlib.pyplot.close("all")

    @unittest.skipUnless(matplotlib, "matplotlib is not installed")
    def test_an_experiment_without_factors_has_one_cell(self):
        plan = {name: value for name, value in EXPERIMENT.items() if name != "factors"}
        single = dyno.run(plan, out="single", program=DYNO)
        self.assertEqual(list(single.cells["runs"]), [2])
        self.assertEqual(list(single.percentile(99).index), ["loops"])
        self.assertEqual(len(single.plot().get_lines()), 1)
        self.assertEqual(len(single.plot(y="p99").get_lines()), 1)
        matplotlib.pyplot.close("all")

    def test_options_of_a_run_are_refused(self):
        with self.assertRaisesRegex(dyno.UsageError, "--users does not go with an experiment: use --set users="):
            dyno.run(EXPERIMENT, users=4, program=DYNO)

    def test_imported_results_have_gaps(self):
        Path("lab.csv").write_text("n,x\n1,100\n2,150\n")
        words = ["import", "csv", "lab.csv", "--throughput", "x", "--users", "n", "--factor", "n", "--duration", "60s", "--out", "lab"]
        subprocess.run([DYNO, *words], check=True, capture_output=True, timeout=60)
        lab = dyno.open("lab")
        self.assertEqual(list(lab.cells["throughput"]), [100, 150])
        self.assertTrue(lab.cells["p99_us"].isna().all())
        self.assertEqual(lab.verdict, "suspect")


@unittest.skipUnless(DYNO, "no dyno command: set DYNO")
class Servers(Folder):
    def test_progress_goes_to_standard_error(self):
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            dyno.run("sim:", duration=1, progress=True, program=DYNO)
        self.assertIn("measure:", shown.getvalue())

    def test_sqlite(self):
        run = self.quietly("sqlite:s.db", users=2, duration=2, records=1000, workload="b")
        self.assertIn("host", run.monitors)
        self.assertEqual(list(run.monitors), run.sources)
        self.assertEqual(len(run.monitors["host"]), len(run.monitor("host")))
        self.assertEqual(list(run.latencies.index), ["READ", "UPDATE"])
        self.assertGreater(run.percentile(50, "read"), 0)

    @unittest.skipUnless(shutil.which("redis-server"), "no redis-server on PATH")
    def test_a_temporary_redis(self):
        run = self.quietly("spawn:redis", rate=2000, duration=2, records=1000, warmup="0s")
        self.assertIn("Redis", run.summary_json["database"])
        self.assertIn(("phases.measure.rate", "--rate"), [(one["key"], one["source"]) for one in run.run["settings"]])
        self.assertGreater(run.measured["offered"], 0)
        self.assertGreater(run.percentile(50, "read"), 0)
        self.assertGreater(len(run.monitors), 1)

    def quietly(self, *words, **options):
        # Other programs of this machine may make a run suspect or invalid.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dyno.DynoWarning)
            return dyno.run(*words, program=DYNO, **options)


if __name__ == "__main__":
    unittest.main()
