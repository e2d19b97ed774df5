#!/usr/bin/env python3
"""Whether a workload that `dyno learn` makes behaves like the traffic that it was learned from.

    scripts/learn-proof.py DYNO [--seconds 20] [--replays 5] [--keep FOLDER] [SOURCE...]

Four programs apply load to a Redis: the example shop (recorded by tcpdump), memtier_benchmark with zipfian keys where it is on PATH and YCSB's
own client (scripts/need ycsb; both through dyno's proxy), and four redis-benchmarks side by side (recorded by MONITOR). What `redis-cli
MONITOR` says of the program and of the workload is the truth: both are read here, and dyno's own figures of them are not used. Latencies are
those of the recording and of the workload, each applied to the same server by turns. Run it on a quiet host. Whatever it starts has a limit
of time; it takes about (3 + 2 REPLAYS) times SECONDS for each source, 5 minutes by default.

With --keep the files stay, and what was recorded there before is taken again. --replays 0 leaves the latencies out.
"""

import argparse
import base64
import collections
import contextlib
import itertools
import math
import pathlib
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINE = re.compile(rb'^(\d+\.\d+) \[\d+ [^\]]*\] "((?:[^"\\]|\\.)*)"(.*)$')
ESCAPED = re.compile(rb"\\x..|\\.")
WORD = re.compile(rb' "((?:[^"\\]|\\.)*)"')
# Commands that fill, and those that a load generator asks before its load.
BESIDE = {b"exists", b"hello", b"client", b"info", b"config", b"command", b"dbsize", b"ping", b"auth", b"cluster", b"select", b"restore",
          b"monitor", b"memory", b"type", b"readonly", b"slowlog", b"latency", b"commandlog", b"module", b"acl", b"role", b"flushall"}
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
# What a workload's file says of itself.
STATED = re.compile(r"over all keys the curves of popularity are off by at most (\S+) % of the requests")
DISPERSION = re.compile(r"in (\d+) ms \(the workload's (\S+)\)")
# Points by which two samples of one popularity may differ.
CHANCE = 1
# Student's two-sided 95 % points by degrees of freedom.
STUDENT = [math.inf, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def child(*args, **options):
    process = subprocess.Popen([str(arg) for arg in args], **options)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(what, ready, seconds=30):
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            sys.exit(f"{what} does not come to be")
        time.sleep(0.05)


def answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Trace:
    """Commands as MONITOR tells them."""

    def __init__(self, path):
        self.times, self.names, self.keys, self.sizes = [], [], [], []
        for line in path.read_bytes().split(b"\n"):
            found = LINE.match(line)
            if not found:
                continue
            name = found[2].lower()
            if name in BESIDE:
                continue
            words = WORD.findall(found[3])
            self.times.append(float(found[1]))
            self.names.append(name)
            if not words:
                continue
            self.keys.append(words[0])
            # What stands behind the key. An escaped byte is one.
            if len(words) > 1:
                self.sizes.append((name, sum(len(ESCAPED.sub(b"x", word)) for word in words[1:])))
        if len(self.times) < 1000:
            sys.exit(f"{path}: {len(self.times)} commands: too few")

    def mix(self):
        counts = collections.Counter(self.names)
        return {name: count / len(self.names) for name, count in counts.items()}

    def hits(self):
        """Share of the requests that a cache of the last used keys would have answered, by the number of these from 0 on (Mattson et
        al., 1970)."""
        tree, last, distances = [0] * (len(self.keys) + 1), {}, collections.Counter()

        def add(at, what):
            while at < len(tree):
                tree[at] += what
                at += at & -at

        def total(at):
            found = 0
            while at:
                found += tree[at]
                at -= at & -at
            return found

        for at, key in enumerate(self.keys, 1):
            if key in last:
                distances[total(at - 1) - total(last[key]) + 1] += 1
                add(last[key], -1)
            add(at, 1)
            last[key] = at
        return [hits / len(self.keys) for hits in itertools.accumulate(distances[size] for size in range(len(last) + 1))]

    def popularity(self):
        """Share of the requests that the n most popular keys have, by n from 0 on."""
        counts = (count for _, count in collections.Counter(self.keys).most_common())
        return [0.0, *(requests / len(self.keys) for requests in itertools.accumulate(counts))]

    def dispersion(self, window):
        counts = collections.Counter(int((at - self.times[0]) / window) for at in self.times)
        whole = int((self.times[-1] - self.times[0]) / window)
        each = [counts[number] for number in range(whole)]
        return statistics.pvariance(each) / statistics.mean(each)

    def size(self, name, percent):
        own = sorted(size for one, size in self.sizes if one == name)
        return own[min(len(own) - 1, int(len(own) * percent / 100))] if own else 0


def value_at(curve, n):
    return curve[min(n, len(curve) - 1)]


def differences(then, now, said):
    """Figures of a workload beside those of what it was learned from, and of what its file has `said` of itself: name, then, now, error,
    whether that is within the goal."""
    hits, own_hits = then.hits(), now.hits()
    keys = len(hits) - 1
    sizes = range(max(len(hits), len(own_hits)))
    worst = max(sizes, key=lambda size: abs(value_at(hits, size) - value_at(own_hits, size)))
    told = sorted({max(1, keys // 100), max(1, keys // 10), max(1, keys // 2), keys, worst})
    shares = lambda curve, told: ", ".join(f"{value_at(curve, size) * 100:.1f}" for size in told)
    off = abs(value_at(hits, worst) - value_at(own_hits, worst)) * 100
    yield f"hits, %, caches of {', '.join(map(str, told))} keys", shares(hits, told), shares(own_hits, told), f"{off:.1f} points", off <= 2
    curve, own_curve = then.popularity(), now.popularity()
    counts = range(max(len(curve), len(own_curve)))
    worst = max(counts, key=lambda n: abs(value_at(curve, n) - value_at(own_curve, n)))
    told = sorted({1, 10, max(1, keys // 10), keys, worst})
    off = abs(value_at(curve, worst) - value_at(own_curve, worst)) * 100
    stated = STATED.search(said)
    bound = float(stated[1]) if stated else 0
    yield (f"requests of the first {', '.join(map(str, told))} keys, %", shares(curve, told), shares(own_curve, told),
           f"{off:.1f} points, stated {bound:.1f} and {CHANCE} by chance", off <= bound + CHANCE)
    mix, own = then.mix(), now.mix()
    worst = max(mix, key=lambda name: abs(mix[name] - own.get(name, 0)))
    share, own_share = mix[worst] * 100, own.get(worst, 0) * 100
    yield f"mix, % {worst.decode()}", f"{share:.2f}", f"{own_share:.2f}", f"{abs(share - own_share):.2f} points", None
    frequent = [name for name, share in mix.items() if share >= 0.01 and then.size(name, 99)]
    for percent in (50, 99):
        both = [(name, then.size(name, percent), now.size(name, percent)) for name in frequent]
        if both:
            name, size, own_size = max(both, key=lambda one: abs(one[2] / one[1] - 1))
            off = abs(own_size / size - 1) * 100
            yield f"p{percent} of values, bytes, {name.decode()}", str(size), str(own_size), f"{off:.1f} %", off <= 5
    stated = dict(DISPERSION.findall(said))
    for milliseconds in (10, 100, 1000):
        index, own = (trace.dispersion(milliseconds / 1e3) for trace in (then, now))
        told = stated.get(str(milliseconds))
        # A factor of two about what the file says: windows of a second are few.
        is_within = told and 0.5 <= (own + 0.1) / (float(told) + 0.1) <= 2
        yield (f"dispersion in {milliseconds} ms", f"{index:.2f}", f"{own:.2f}", f"stated {told}" if told else "not stated",
               bool(is_within) if told else None)


def counts_of(packed):
    """Values and counts of a histogram as HdrHistogram V2 packs it."""
    inner = zlib.decompress(base64.b64decode(packed)[8:])
    _, length, _, digits, lowest = struct.unpack(">iiiiq", inner[:24])
    half_bits = math.ceil(math.log2(2 * 10**digits)) - 1
    unit_bits = int(math.log2(lowest))
    at, end, index = 40, 40 + length, 0
    while at < end:
        number = shift = 0
        while True:
            byte = inner[at]
            at += 1
            # The ninth byte is a whole one.
            number |= (byte if shift == 56 else byte & 127) << shift
            shift += 7
            if byte < 128 or shift > 56:
                break
        count = number >> 1 ^ -(number & 1)
        if count < 0:
            index -= count
            continue
        if count:
            bucket, within = (index >> half_bits) - 1, (index & (1 << half_bits) - 1) + (1 << half_bits)
            value = index if bucket < 0 else within << bucket
            yield value << unit_bits, count
        index += 1


def service_times(log):
    """p50 and p99 of all commands, microseconds: of an operation in steps these, and not the whole."""
    found = {}
    for line in (line for line in log.splitlines() if line.startswith("Tag=")):
        tag, *_, packed = line.split(",")
        parts = tag.removeprefix("Tag=").split(".")
        if parts[0] in ("measure", "replay") and parts[-1] == "service" and len(parts) > 3:
            found.setdefault(".".join(parts[1:-2]), []).append(packed)
    wholes = {name.rsplit(".", 1)[0] for name in found if "." in name}
    counts = collections.Counter()
    for name, all_packed in found.items():
        for packed in all_packed if name not in wholes else ():
            for value, count in counts_of(packed):
                counts[value] += count
    total, ends = counts.total(), []
    for percent in (50, 99):
        left = total * percent / 100
        for value, count in sorted(counts.items()):
            left -= count
            if left <= 0:
                ends.append(value / 1e3)
                break
    return ends


class Proof:
    def __init__(self, program, options, folder):
        self.program, self.options, self.folder = pathlib.Path(program).resolve(), options, folder
        self.seconds, self.replays = options.seconds, options.replays
        self.limit = 120 + 5 * self.seconds
        self.port = free_port()
        self.uri = f"redis://127.0.0.1:{self.port}"

    def done(self, *command, **options):
        """Runs a program to its end, which comes within the limit of time."""
        try:
            return subprocess.run(list(map(str, command)), check=True, timeout=self.limit, **options)
        except subprocess.TimeoutExpired:
            sys.exit(f"{' '.join(map(str, command))}: no end within {self.limit:.0f} s")

    def dyno(self, *args, codes=(0, 5)):
        command = [str(self.program), *map(str, args)]
        try:
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=self.limit)
        except subprocess.TimeoutExpired:
            sys.exit(f"{' '.join(command)}: no end within {self.limit:.0f} s")
        if done.returncode not in codes:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def cli(self, *args):
        return self.done("redis-cli", "-p", self.port, *args, capture_output=True, text=True).stdout.strip()

    @contextlib.contextmanager
    def monitored(self, name):
        path = self.folder / f"{name}.monitor"
        with path.open("wb") as file, child("redis-cli", "-p", self.port, "monitor", stdout=file):
            until("MONITOR", lambda: path.open("rb").read(2) == b"OK")
            yield path
            time.sleep(0.5)

    @contextlib.contextmanager
    def captured(self):
        path = self.folder / "traffic.pcap"
        words = ["-U", "-i", "lo", "-s", "0", "-B", "65536", "-w", path, "tcp", "and", "port", self.port]
        with child("tcpdump", *words, **QUIET):
            # The head of the file is there once packets are taken.
            until("tcpdump", lambda: path.exists() and path.stat().st_size >= 24)
            yield
            time.sleep(1)
        self.dyno("record", path, "-o", "traffic.dyno")

    @contextlib.contextmanager
    def proxied(self):
        proxy = free_port()
        to = ["record", "--listen", f"127.0.0.1:{proxy}", "--to", self.uri, "-o", self.folder / "traffic.dyno"]
        with child(self.program, *to, **QUIET):
            until("the proxy", lambda: answers(proxy))
            yield proxy

    def shop(self):
        if shutil.which("tcpdump") is None:
            return False
        web = free_port()
        shop = ROOT / "docs/examples/web-shop/shop.py"
        with child(sys.executable, shop, "serve", "--redis", f"127.0.0.1:{self.port}", "--port", web, **QUIET):
            until("the shop", lambda: answers(web), 60)
            self.snapshot()
            with self.captured(), self.monitored("then"):
                visit = ["visit", "--shop", f"127.0.0.1:{web}", "--visitors", "20", "--seconds", self.seconds]
                self.done(sys.executable, shop, *visit, **QUIET)
        return True

    def memtier(self):
        if shutil.which("memtier_benchmark") is None:
            return False
        help_text = subprocess.run(["memtier_benchmark", "--help"], capture_output=True, text=True, check=False).stdout
        # Versions before 2.2 know no zipfian keys.
        pattern = "Z:Z" if "zipf" in help_text else "G:G"
        common = ["memtier_benchmark", "--hide-histogram", "--key-maximum", "20000", "-d", "100", "-t", "1"]
        fill = ["-c", "1", "--key-pattern", "P:P", "--ratio", "1:0", "-n", "allkeys"]
        load = ["-c", "8", "--key-pattern", pattern, "--ratio", "1:4", "--distinct-client-seed", "--rate-limiting", "250", "--test-time", int(self.seconds)]
        self.done(*common, *fill, "-p", self.port, **QUIET)
        self.snapshot()
        with self.proxied() as proxy, self.monitored("then"):
            self.done(*common, *load, "-p", proxy, **QUIET)
        return True

    def benchmark(self):
        """It knows no rate, and one kind of command after the other: several at once make a mix."""
        common = ["redis-benchmark", "-r", "20000", "-d", "100", "-p", self.port]
        self.done(*common, "-n", "100000", "-c", "8", "-t", "set", **QUIET)
        self.snapshot()
        with self.monitored("then") as path:
            tests = ("set", "get", "incr", "lpush")
            all_tests = [subprocess.Popen([*map(str, common), "-c", "1", "-n", "100000000", "-t", test], **QUIET) for test in tests]
            time.sleep(min(self.seconds, 10))
            for one in all_tests:
                one.kill()
            for one in all_tests:
                one.wait()
        self.dyno("record", path, "-o", "traffic.dyno")
        return True

    def ycsb(self):
        home = pathlib.Path.home() / ".cache/dyno-ycsb"
        classes = next(home.glob("client-*/RecordStore.class"), None)
        if classes is None or shutil.which("java") is None:
            return False
        client = ["java", "-cp", f"{classes.parent}:{classes.parent}/*", "site.ycsb.Client", "-db", "RecordStore"]
        workload = ["-p", "workload=site.ycsb.workloads.CoreWorkload", "-p", "recordcount=10000", "-threads", "8",
                    "-p", "requestdistribution=zipfian", "-p", f"operationcount={int(2000 * self.seconds)}",
                    "-p", "redis.host=127.0.0.1"]
        load = ["-t", "-target", "2000"]
        self.done(*client, "-load", *workload, "-p", f"redis.port={self.port}", **QUIET)
        self.snapshot()
        with self.proxied() as proxy, self.monitored("then"):
            self.done(*client, *load, *workload, "-p", f"redis.port={proxy}", **QUIET)
        return True

    def snapshot(self):
        """The data before the traffic, for both sides of the comparison of latencies."""
        self.cli("--rdb", self.folder / "data.rdb")
        self.dyno("record", "data.rdb", "-o", "data.dyno")

    def latencies(self, *args):
        """p50 and p99 of the service time of all commands of a run on the data of then, microseconds."""
        self.cli("flushall")
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        self.dyno(*args, "--load-from", "data.dyno", "--out", "run", "--quiet")
        return service_times((self.folder / "run/totals.hlog").read_text())

    def compared_latencies(self, model):
        """Latencies of the recording and of the workload, applied by turns: as `differences`."""
        replay = ["replay", "traffic.dyno", self.uri, "--yes-write", f"127.0.0.1:{self.port}/0"]
        each = [(self.latencies(*replay), self.latencies(*model)) for _ in range(self.replays)]
        for number, percentile in enumerate(("p50", "p99")):
            then, now = ([pair[side][number] for pair in each] for side in (0, 1))
            mean, own = statistics.mean(then), statistics.mean(now)
            half = STUDENT[len(then) - 1] * statistics.stdev(then) / math.sqrt(len(then))
            off = (own / mean - 1) * 100
            yield (f"{percentile} of latency, µs", f"{mean:.1f} ± {half:.1f}", f"{own:.1f}", f"{off:+.1f} %",
                   abs(off) <= 10 or abs(own - mean) <= half)

    def prove(self, name):
        with child("redis-server", "--port", self.port, "--save", "", "--dir", self.folder, stdout=subprocess.DEVNULL):
            until("redis-server", lambda: answers(self.port))
            is_recorded = all((self.folder / file).exists() for file in ("then.monitor", "traffic.dyno", "data.dyno"))
            if not is_recorded and not getattr(self, name)():
                print(f"{name}: skipped: what it needs is not there", flush=True)
                return True
            then = Trace(self.folder / "then.monitor")
            self.dyno("learn", "traffic.dyno", "-o", "work.yaml")
            said = (self.folder / "work.yaml").read_text()
            rate, connections, arrivals = re.search(r"--rate (\S+) --connections (\d+) --arrivals (\w+)", said).groups()
            seconds = then.times[-1] - then.times[0]
            model = ["run", self.uri, "--workload", "work.yaml", "--rate", rate, "--connections", connections, "--arrivals", arrivals,
                     "--warmup", "0s", "--duration", f"{seconds:.1f}s"]
            self.latencies(*model)
            # Once more on its own data, so that MONITOR sees the load and nothing else.
            shutil.rmtree(self.folder / "run")
            with self.monitored("model") as told:
                self.dyno(*model, "--out", "run", "--quiet", "--no-load")
            now = Trace(told)
            print(f"\n{name}: {len(then.times)} commands in {seconds:.1f} s; of the workload {len(now.times)}\n")
            print("| figure | recording | workload | error | |\n|---|---|---|---|---|")
            rows = list(differences(then, now, said))
            rows += self.compared_latencies(model) if self.replays else []
            words = {True: "within the goal", False: "not within the goal", None: ""}
            for *cells, is_within in rows:
                print(f"| {' | '.join(cells)} | {words[is_within]} |")
            sys.stdout.flush()
            return all(is_within is not False for *_, is_within in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("sources", nargs="*", default=["shop", "memtier", "benchmark", "ycsb"])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--replays", type=int, default=5, help="from 2 to 10, or 0")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for all files")
    args = parser.parse_intermixed_args()
    is_within = True
    for name in args.sources:
        with tempfile.TemporaryDirectory() if args.keep is None else contextlib.nullcontext(args.keep / name) as folder:
            folder = pathlib.Path(folder).resolve()
            folder.mkdir(parents=True, exist_ok=True)
            is_within &= Proof(args.program, args, folder).prove(name)
    sys.exit(0 if is_within else 1)


if __name__ == "__main__":
    main()
