#!/usr/bin/env python3
"""Runs the programs that dyno stands in for beside dyno, with the same words, on the same server, and compares what both print.

    scripts/test-peers.py DYNO

Lines must be the same but for their numbers, where they follow each other in the same order; shares of operations must be what
the workload says in both. YCSB is the release of Maven Central (scripts/need-ycsb.sh); its report has no 50th percentiles and no
collectors' lines beside the program's own, and is compared without them. Needs Java and redis-server; says what is skipped.
"""

import contextlib
import glob
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

COMMON = "-P workloads/workloada -p recordcount=500 -p operationcount=3000 -threads 3".split()
RUNS = {
    "load": ("load", COMMON),
    "run": ("run", COMMON),
    "a rate": ("run", [*COMMON, "-target", "2000"]),
    "a rate below 0": ("run", [*COMMON, "-target", "-4"]),
    "both intervals": ("run", [*COMMON, "-target", "2000", "-p", "measurement.interval=both"]),
    "intended": ("run", [*COMMON, "-target", "2000", "-p", "measurement.interval=intended"]),
    "histogram": ("run", [*COMMON, "-p", "measurementtype=histogram"]),
    "histogram without buckets": ("run", [*COMMON, "-p", "measurementtype=histogram", "-p", "histogram.buckets=0"]),
    "histogram, whole": ("run", [*COMMON, "-p", "measurementtype=histogram", "-p", "histogram.buckets=2",
                                 "-p", "measurement.histogram.verbose=true"]),
    "percentiles": ("run", [*COMMON, "-p", "hdrhistogram.percentiles=1,2,3,11,12,13,21,99.9"]),
    "JSON": ("run", [*COMMON, "-p", "exporter=site.ycsb.measurements.exporter.JSONMeasurementsExporter"]),
    "JSON array": ("run", [*COMMON, "-p", "exporter=site.ycsb.measurements.exporter.JSONArrayMeasurementsExporter"]),
    "status": ("run", [*COMMON, "-target", "1200", "-s", "-p", "status.interval=1"]),
    "label": ("run", [*COMMON, "-s", "-l", "one: "]),
    "a time": ("run", [*COMMON[:4], "-p", "operationcount=100000000", "-threads", "2", "-p", "maxexecutiontime=2", "-s",
                       "-p", "status.interval=1"]),
    "more threads than operations": ("run", [*COMMON[:4], "-p", "operationcount=3", "-threads", "5"]),
    "workload b": ("run", ["-P", "workloads/workloadb", *COMMON[2:]]),
    "workload c": ("run", ["-P", "workloads/workloadc", *COMMON[2:]]),
    "workload d": ("run", ["-P", "workloads/workloadd", *COMMON[2:]]),
    "workload f": ("run", ["-P", "workloads/workloadf", *COMMON[2:]]),
}
SHARES = {"run": {"READ": 0.5, "UPDATE": 0.5}, "workload b": {"READ": 0.95, "UPDATE": 0.05}}

WORKLOADS = {
    "a": "readproportion=0.5\nupdateproportion=0.5\nrequestdistribution=zipfian",
    "b": "readproportion=0.95\nupdateproportion=0.05\nrequestdistribution=zipfian",
    "c": "readproportion=1\nupdateproportion=0\nrequestdistribution=zipfian",
    "d": "readproportion=0.95\nupdateproportion=0\ninsertproportion=0.05\nrequestdistribution=latest",
    "f": "readproportion=0.5\nupdateproportion=0\nreadmodifywriteproportion=0.5\nrequestdistribution=zipfian",
}


def skip(why):
    print(f"SKIPPED: peers beside dyno: {why}", file=sys.stderr)
    sys.exit(0)


@contextlib.contextmanager
def redis():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1"],
                              stdout=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield port
    finally:
        server.kill()
        server.wait()


def shape(text):
    """Lines without numbers and without what the release of YCSB does not have."""
    lines = []
    for line in text.splitlines():
        if re.search(r"50thPercentile|TOTAL_GC|YCSB Client|Command line|terminator|TerminatorThread", line):
            continue
        line = re.sub(r", 50=\S+", "", line)
        line = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}", "TIME", line)
        line = re.sub(r"-?\d+(\.\d+)?(E-?\d+)?|NaN|∞|�", "N", line)
        # Latencies that fall into bins of 1 ms are the machine's: which lines there are, not how many.
        lines.append(line)
    text = "\n".join(lines)
    # Members of JSON about collectors and the 50th percentile: three lines each.
    text = re.sub(r'"metric" : "TOTAL_GC[^}]*\}?', "", text)
    return text


def status(lines):
    """Status lines: the kind of each; how many there are is the machine's."""
    return sorted({re.sub(r"\[.*", "[...]", re.sub(r"N current ops/sec; |est completion in .*?(?=\[|$)", "", line)) for line in lines if "TIME" in line})


def json_shape(text):
    return sorted(set(re.findall(r'"metric"\s*:\s*"((?!TOTAL_GC)[^"]*)",\s*"measurement"\s*:\s*"((?!50th)[^"]*)"', text)))


def counts(text):
    return {name: int(n) for name, n in re.findall(r"^\[(\w[\w-]*)\], Operations, (\d+)", text, re.M)}


def compare(name, theirs, ours):
    if "JSON" in name:
        both = [json_shape(one.stdout) for one in (theirs, ours)]
    else:
        both = [[line for line in shape(one.stdout).splitlines() if "TIME" not in line] for one in (theirs, ours)]
        # Metrics that a few milliseconds more or less bring about.
        if "histogram" in name:
            both = [[line for line in one if "Percentile" not in line] for one in both]
    problems = []
    if both[0] != both[1]:
        for line in both[0]:
            if line not in both[1]:
                problems.append(f"only YCSB says: {line}")
        for line in both[1]:
            if line not in both[0]:
                problems.append(f"only dyno says: {line}")
        if not problems:
            problems.append("the order of lines differs")
    errors = [shape(one.stderr).splitlines() for one in (theirs, ours)]
    # The release says a word on each thread's wrapper, the main line one for all.
    talk = [{line for line in one if "TIME" not in line and line} for one in errors]
    for who, only in (("YCSB", talk[0] - talk[1]), ("dyno", talk[1] - talk[0])):
        problems.extend(f"only {who} says on standard error: {line}" for line in sorted(only))
    kinds = [status(one) for one in errors]
    if not set(kinds[1]) <= set(kinds[0]) | {line.replace("[...]", "") for line in kinds[0]}:
        problems.append(f"status lines: {kinds[0]} and {kinds[1]}")
    if theirs.returncode != ours.returncode:
        problems.append(f"exit codes {theirs.returncode} and {ours.returncode}")
    for metric, share in SHARES.get(name, {}).items():
        for who, one in (("YCSB", theirs), ("dyno", ours)):
            found = counts(one.stdout)
            part = found.get(metric, 0) / max(1, sum(found.get(m, 0) for m in SHARES[name]))
            # Five standard errors of 3,000 draws.
            if abs(part - share) > 5 * (share * (1 - share) / 3000) ** 0.5:
                problems.append(f"{who}: {part:.3f} {metric}, not {share}")
    return problems


def main():
    dyno = os.path.abspath(sys.argv[1])
    home = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "dyno-ycsb")
    jars = glob.glob(f"{home}/client-*/*.jar")
    if not jars or not shutil.which("java"):
        skip("YCSB or Java is not there (scripts/need-ycsb.sh)")
    if not shutil.which("redis-server"):
        skip("redis-server is not there")
    failed = passed = 0
    # YCSB's layout in Redis, compiled by scripts/need-ycsb.sh.
    binding = "RecordStore"
    jars += glob.glob(f"{home}/client-*")
    with redis() as port, tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/workloads")
        for letter, text in WORKLOADS.items():
            with open(f"{folder}/workloads/workload{letter}", "w") as file:
                file.write(f"workload=site.ycsb.workloads.CoreWorkload\nreadallfields=true\nscanproportion=0\n{text}\n")
        place = ["-p", "redis.host=127.0.0.1", "-p", f"redis.port={port}"]
        for name, (mode, words) in RUNS.items():
            client = ["java", "-cp", ":".join(jars), "site.ycsb.Client", "-load" if mode == "load" else "-t", "-db"]
            theirs = [*client, binding, *place, *words]
            ours = [dyno, "ycsb", mode, "redis", *place, *words, "--compat-exit"]
            ran = [subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=120) for line in (theirs, ours)]
            problems = compare(name, *ran)
            passed, failed = passed + (not problems), failed + bool(problems)
            for problem in problems:
                print(f"FAILED: {name}: {problem}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
