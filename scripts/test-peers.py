#!/usr/bin/env python3
"""Runs the programs that dyno stands in for beside dyno, with the same words, on the same server, and compares what both print.

    scripts/test-peers.py DYNO

Lines must be the same but for their numbers, where they follow each other in the same order; shares of operations must be what
the workload says in both. YCSB is the release of Maven Central (scripts/need ycsb); its report has no 50th percentiles and no
collectors' lines beside the program's own, and is compared without them. redis-benchmark, valkey-benchmark and memtier_benchmark
are those on PATH; the server must have counted the same commands, too. Needs redis-server; says what is skipped.
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
    # Reads alone: of three operations of a mix nobody knows which kinds they are.
    "more threads than operations": ("run", ["-P", "workloads/workloadc", "-p", "recordcount=500", "-p", "operationcount=3",
                                             "-threads", "5"]),
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


REDIS_BENCHMARK = [
    "-q", "--csv", "-t set,get -r 100", "-t lpush,lrange_100 -q", "-P 10 -r 50 -t incr,sadd,hset", "-d 100 -t set,mset",
    "-c 1 -t get", "--threads 2 -t set", "--dbnum 3 -t set", "-3 -t get", "-r 40 -q zadd board:__rand_int__ 1 user:__rand_int__",
    "--csv -r 10 set key:__rand_int__ __data__", "-t ping", "-t nosuch -q", "-t spop,zpopmin --csv",
]
MEMTIER = [
    "", "--hide-histogram", "--ratio 3:2 --pipeline 4", "--key-pattern S:S --key-minimum 1 --key-maximum 30",
    "--key-pattern P:P --ratio 1:0 --key-maximum 99 -n allkeys", "-d 7 --expiry-range 10-20", "--data-size-range 3-9 -R",
    "--data-size-list 3:2,7:1", "--data-offset 3", "--print-percentiles 50,90,99.99", "-x 2 --print-all-runs --hide-histogram",
    "--select-db 2 -P resp3", "--key-pattern Z:G --key-maximum 1000", "--distinct-client-seed --randomize",
]
# Commands that connections and their greetings are made of.
GREETING = {"config|get", "config|resetstat", "config", "info", "hello", "ping", "client|setinfo", "select", "command", "flushall"}


def skip(what, why):
    print(f"SKIPPED: {what} beside dyno: {why}", file=sys.stderr)
    return 0, 0


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


def counted(port):
    """What the server has counted since it was asked last, by command, and its keys; it forgets both."""
    def ask(*words):
        return subprocess.run(["redis-cli", "-p", str(port), *words], capture_output=True, text=True).stdout
    calls = {name: int(n) for name, n in re.findall(r"cmdstat_(\S+?):calls=(\d+)", ask("INFO", "commandstats"))}
    ask("FLUSHALL")
    ask("CONFIG", "RESETSTAT")
    return {name: n for name, n in calls.items() if name not in GREETING}


def report_shape(text):
    """Lines without numbers; progress, and how many steps a distribution has, are the machine's."""
    lines = [line.rsplit("\r", 1)[-1] for line in text.split("\n")]
    lines = [re.sub(r"\s+", " ", re.sub(r"-?\d+(\.\d+)?|-?nan|inf", "N", line)).strip() for line in lines]
    return [line for number, line in enumerate(lines) if number == 0 or line != lines[number - 1] or line == ""]


def beside(program, words, ours, port):
    """The problems of one option set."""
    ran, calls = [], []
    counted(port)
    for line in ([program, *words], [*ours, *words]):
        ran.append(subprocess.run(line, capture_output=True, timeout=120))
        calls.append(counted(port))
    problems = []
    # Tests that came with a later version.
    later = {"xadd", "mget"} - set(calls[0])
    if calls[0] != {name: count for name, count in calls[1].items() if name not in later}:
        problems.append(f"commands: {calls[0]} and {calls[1]}")
    shapes = [[line for line in report_shape(one.stdout.decode()) if not any(name.upper() in line for name in later)] for one in ran]
    if shapes[0] != shapes[1]:
        only = [[line for line in one if line not in other] for one, other in (shapes, shapes[::-1])]
        problems.append(f"only {program} says {only[0]}, only dyno {only[1]}" if any(only) else "the order of lines differs")
    # A run so short is called suspect or invalid, which is no fault of the drop-in.
    if ran[0].returncode != 0 or ran[1].returncode not in (0, 5):
        problems.append(f"exit codes {ran[0].returncode} and {ran[1].returncode}: {ran[1].stderr.decode().strip()}")
    return problems


def tools(dyno):
    """redis-benchmark, valkey-benchmark and memtier_benchmark."""
    if not shutil.which("redis-server") or not shutil.which("redis-cli"):
        return skip("redis-benchmark and memtier_benchmark", "redis-server or redis-cli is not there")
    passed = failed = 0
    for program, name, sets, common in (
        ("redis-benchmark", "redis-benchmark", REDIS_BENCHMARK, ["-n", "1000", "-c", "5"]),
        ("valkey-benchmark", "valkey-benchmark", ["-q", "-t set,get -r 100", "--csv -t lpush,xadd"], ["-n", "1000", "-c", "5"]),
        ("memtier_benchmark", "memtier", MEMTIER, ["-t", "2", "-c", "2"]),
    ):
        if not shutil.which(program):
            skip(program, "it is not on PATH")
            continue
        with redis() as port:
            for line in sets:
                words = line.split()
                length = [] if program != "memtier_benchmark" or "-n" in words else ["-n", "100"]
                place = ["-p", str(port)]
                problems = beside(program, [*place, *common, *length, *words], [dyno, name], port)
                passed, failed = passed + (not problems), failed + bool(problems)
                for problem in problems:
                    print(f"FAILED: {program} {line}: {problem}")
    return passed, failed


def ycsb(dyno):
    home = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "dyno-ycsb")
    jars = glob.glob(f"{home}/client-*/*.jar")
    if not jars or not shutil.which("java"):
        return skip("YCSB", "YCSB or Java is not there (scripts/need ycsb)")
    if not shutil.which("redis-server"):
        return skip("YCSB", "redis-server is not there")
    failed = passed = 0
    # YCSB's layout in Redis, compiled by scripts/need ycsb.
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
    return passed, failed


def main():
    dyno = os.path.abspath(sys.argv[1])
    both = [section(dyno) for section in (ycsb, tools)]
    passed, failed = (sum(one) for one in zip(*both))
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
