"""The wheel, installed alone: the program, `import dyno`, and what it says where pandas is missing."""

import os
import subprocess
import sys
import sysconfig
import tempfile
import unittest
from importlib import metadata
from pathlib import Path

import dyno

SCRIPT = Path(sysconfig.get_path("scripts")) / "dyno"


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Neither the environment nor PATH names another program.
        cls.before = dict(os.environ)
        os.environ.pop("DYNO", None)
        os.environ["PATH"] = "/nowhere"
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)

    @classmethod
    def tearDownClass(cls):
        os.environ.clear()
        os.environ.update(cls.before)
        cls.temporary.cleanup()

    def test_the_program_is_the_wheel_s_own(self):
        self.assertTrue(os.path.samefile(dyno.program(), SCRIPT))
        printed = subprocess.run([SCRIPT, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(printed.split()[1], dyno.__version__)
        self.assertEqual(metadata.version("dyno-bench"), dyno.__version__)

    def test_a_run_needs_no_other_package(self):
        run = dyno.run("sim:", users=2, duration=1, out=self.folder / "r")
        self.assertEqual((run.verdict, run.exit_code), ("valid", 0))
        self.assertEqual(run.percentile(50, "read"), run.measured["metrics"][0]["response"]["percentiles_us"]["p50"])
        self.assertIn("READ", run._repr_html_())

    def test_missing_packages_are_named_with_their_extra(self):
        run = dyno.run("sim:", users=2, duration=1, out=self.folder / "m")
        for module, use, extra in (
            ("pandas", lambda: run.latencies, "data"),
            ("matplotlib", lambda: run.plot(), "plot"),
            ("hdrh", lambda: run.histograms, "histograms"),
        ):
            self.assertNotIn(module, sys.modules, "this environment holds the wheel alone")
            with self.assertRaisesRegex(dyno.MissingExtra, rf"is not installed; pip install 'dyno-bench\[{extra}\]'"):
                use()


if __name__ == "__main__":
    unittest.main()
