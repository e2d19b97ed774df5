"""Adds the static program to the wheel and names the platforms on which it runs."""

import os
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface):
    def initialize(self, version, build_data):
        program, arch = os.environ.get("DYNO_PROGRAM", ""), os.environ.get("DYNO_ARCH", "")
        if not Path(program).is_file() or arch not in ("x86_64", "aarch64"):
            raise SystemExit("set DYNO_PROGRAM to a static dyno and DYNO_ARCH to x86_64 or aarch64; `make dist` does")
        build_data["shared_scripts"] = {program: "dyno"}
        build_data["pure_python"] = False
        # A static program needs no C library of the host: glibc and musl alike.
        build_data["tag"] = f"py3-none-manylinux_2_17_{arch}.manylinux2014_{arch}.musllinux_1_1_{arch}"
