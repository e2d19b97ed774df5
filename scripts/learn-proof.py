#!/usr/bin/env python3
"""Whether a workload that `dyno learn` makes behaves like the traffic that it was learned from.

    scripts/learn-proof.py DYNO [--seconds 20] [--replays 5] [SOURCE...]

Three programs apply load to a Redis: the example shop, redis-benchmark (memtier_benchmark with normal keys where it is on PATH), and YCSB's
own client (scripts/need ycsb). Each is recorded in a way of its own. What `redis-cli MONITOR` says of the program and of the workload is
the truth: both are read here, and dyno's own figures of them are not used. Latencies are those of the recording and of the workload,
each applied to the same server by turns. Run it on a quiet host.
"""

import argparse
import collections
import contextlib
import json
import math
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINE = re.compile(rb'^(\d+\.\d+) \[\d+ [^\]]*\] "((?:[^"\\]|\\.)*)"(.*)$')
WORD = re.compile(rb' "((?:[^"\\]|\\.)*)"')
# Commands that fill, and those that a load generator asks before its load.
BESIDE = {b"exists", b"hello", b"client", b"info", b"config", b"command", b"dbsize", b"ping", b"auth", b"cluster", b"select", b"restore",
          b"monitor", b"memory", b"type", b"readonly", b"slowlog", b"latency", b"commandlog", b"module", b"acl", b"role", b"flushall"}
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
            self.keys.append(words[0] if words else b"")
            # An escaped byte is one.
            self.sizes.append(sum(len(re.sub(rb"\\x..|\\.", b"x", word)) for word in words))
        if len(self.times) < 1000:
            sys.exit(f"{path}: {len(self.times)} commands: too few")

    def mix(self):
        counts = collections.Counter(self.names)
        return {name: count / len(self.names) for name, count in counts.items()}

    def hits(self, sizes):
        """Share of the requests that caches of so many keys, the last used ones, would have answered (Mattson et al., 1970)."""
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
        return [sum(count for distance, count in distances.items() if distance <= size) / len(self.keys) for size in sizes]

    def popularity(self):
        shares, total = [], 0
        for _, count in collections.Counter(self.keys).most_common():
            total += count
            shares.append(total / len(self.keys))
        return shares

    def dispersion(self, window):
        counts = collections.Counter(int((at - self.times[0]) / window) for at in self.times)
        whole = int((self.times[-1] - self.times[0]) / window)
        each = [counts[number] for number in range(whole)]
        return statistics.pvariance(each) / statistics.mean(each)

    def size(self, name, percent):
        own = sorted(size for one, size in zip(self.names, self.sizes) if one == name)
        return own[min(len(own) - 1, int(len(own) * percent / 100))]


def differences(then, now):
    """Figures of a workload beside those of what it was learned from."""
    keys = len(set(then.keys))
    sizes = sorted({max(1, keys * percent // 100) for percent in range(1, 101)})
    hits = max(abs(a - b) for a, b in zip(then.hits(sizes), now.hits(sizes)))
    a, b = then.popularity(), now.popularity()
    curve = max(abs(a[min(n, len(a) - 1)] - b[min(n, len(b) - 1)]) for n in range(max(len(a), len(b))))
    mix, own = then.mix(), now.mix()
    frequent = [name for name, share in mix.items() if share >= 0.01]
    size = {percent: max(abs(now.size(name, percent) / max(then.size(name, percent), 1) - 1) for name in frequent if name in own)
            for percent in (50, 99)}
    return {
        "hits": hits * 100,
        "curve": curve * 100,
        "mix": max(abs(share - own.get(name, 0)) for name, share in mix.items()) * 100,
        "p50": size[50] * 100,
        "p99": size[99] * 100,
        "dispersion": [(then.dispersion(window), now.dispersion(window)) for window in (0.01, 0.1, 1)],
    }


class Proof:
    def __init__(self, program, seconds, replays, folder):
        self.program, self.seconds, self.replays, self.folder = pathlib.Path(program).resolve(), seconds, replays, folder
        self.port = free_port()
        self.uri = f"redis://127.0.0.1:{self.port}"

    def dyno(self, *args, codes=(0, 5)):
        done = subprocess.run([str(self.program), *map(str, args)], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode not in codes:
            sys.exit(f"dyno {' '.join(map(str, args))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def cli(self, *args):
        command = ["redis-cli", "-p", str(self.port), *args]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    @contextlib.contextmanager
    def monitored(self, name):
        path = self.folder / f"{name}.monitor"
        with path.open("wb") as file, child("redis-cli", "-p", self.port, "monitor", stdout=file):
            until("MONITOR", lambda: path.read_bytes().startswith(b"OK"))
            yield path

    def shop(self):
        """Recorded by MONITOR."""
        web = free_port()
        shop = ROOT / "docs/examples/web-shop/shop.py"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with child(sys.executable, shop, "serve", "--redis", f"127.0.0.1:{self.port}", "--port", web, **quiet):
            until("the shop", lambda: answers(web), 60)
            self.cli("--rdb", str(self.folder / "data.rdb"))
            with self.monitored("shop") as path:
                visit = [sys.executable, shop, "visit", "--shop", f"127.0.0.1:{web}", "--visitors", "20", "--seconds", self.seconds]
                subprocess.run(list(map(str, visit)), check=True, **quiet)
        self.dyno("record", path, "-o", "traffic.dyno")
        self.dyno("record", "data.rdb", "-o", "data.dyno")
        return path

    def proxied(self, name, load, run):
        """Recorded by the proxy, beside MONITOR."""
        subprocess.run(load(self.port), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.cli("--rdb", str(self.folder / "data.rdb"))
        proxy = free_port()
        with self.monitored(name) as path:
            to = ["record", "--listen", f"127.0.0.1:{proxy}", "--to", self.uri, "-o", self.folder / "traffic.dyno"]
            with child(self.program, *to, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
                until("the proxy", lambda: answers(proxy))
                subprocess.run(run(proxy), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.dyno("record", "data.rdb", "-o", "data.dyno")
        return path

    def memtier(self):
        if shutil.which("memtier_benchmark") is None:
            return None
        common = ["memtier_benchmark", "--hide-histogram", "--key-maximum", "20000", "-d", "100", "-t", "1", "-c", "8"]
        fill = ["--key-pattern", "P:P", "--ratio", "1:0", "-n", "allkeys"]
        zipf = ["--key-pattern", "Z:Z", "--ratio", "1:4", "--rate-limiting", "250", "--test-time", str(int(self.seconds))]
        return self.proxied("memtier", lambda port: [*common, *fill, "-p", str(port)], lambda port: [*common, *zipf, "-p", str(port)])

    def benchmark(self):
        common = ["redis-benchmark", "-r", "20000", "-d", "100", "-c", "8"]
        fill = lambda port: [*common, "-p", str(port), "-n", "100000", "-t", "set"]
        # It knows no rate: as many requests as it sends, for a share of the time.
        run = lambda port: [*common, "-p", str(port), "-n", "60000", "-t", "set,get,incr,lpush"]
        return self.proxied("redis-benchmark", fill, run)

    def ycsb(self):
        home = pathlib.Path.home() / ".cache/dyno-ycsb"
        classes = next(home.glob("client-*/RecordStore.class"), None)
        if classes is None or shutil.which("java") is None:
            return None
        client = ["java", "-cp", f"{classes.parent}:{classes.parent}/*", "site.ycsb.Client", "-db", "RecordStore"]
        workload = ["-p", "workload=site.ycsb.workloads.CoreWorkload", "-p", "recordcount=10000", "-threads", "8",
                    "-p", "requestdistribution=zipfian"]
        done = int(2000 * self.seconds)
        words = lambda port, *more: [*client, *more, *workload, "-p", "redis.host=127.0.0.1", "-p", f"redis.port={port}"]
        return self.proxied("YCSB", lambda port: words(port, "-load"),
                            lambda port: words(port, "-t", "-target", "2000", "-p", f"operationcount={done}"))

    def latencies(self, *args):
        """p50 and p99 of the service time of a run on the data of then, the mean over commands by their counts, microseconds."""
        self.cli("flushall")
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        self.dyno(*args, "--load-from", "data.dyno", "--out", "run", "--quiet")
        summary = json.loads((self.folder / "run/summary.json").read_text())
        measured = next(phase for phase in summary["phases"] if phase["name"] in ("measure", "replay"))
        services = [metric["service"] for metric in measured["metrics"] if metric.get("service")]
        # Of few operations there is no 99th percentile.
        known = [(one["count"], one["percentiles_us"]) for one in services if "p99" in one["percentiles_us"]]
        total = sum(count for count, _ in known)
        return [sum(count * percentiles[key] for count, percentiles in known) / total for key in ("p50", "p99")]

    def prove(self, name):
        with child("redis-server", "--port", self.port, "--save", "", "--dir", self.folder, stdout=subprocess.DEVNULL):
            until("redis-server", lambda: answers(self.port))
            path = getattr(self, name)()
            if path is None:
                print(f"{name}: skipped: it is not there")
                return
            then = Trace(path)
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
            print(name, len(then.times), json.dumps(differences(then, Trace(told))))
            replay = ["replay", "traffic.dyno", self.uri, "--yes-write", f"127.0.0.1:{self.port}/0"]
            each = [(self.latencies(*replay), self.latencies(*model)) for _ in range(self.replays)]
            for number, percentile in enumerate(("p50", "p99")):
                then_us, now_us = [[pair[side][number] for pair in each] for side in (0, 1)]
                mean = statistics.mean(then_us)
                half = STUDENT[len(then_us) - 1] * statistics.stdev(then_us) / math.sqrt(len(then_us))
                print(f"  {percentile}: recording {mean:.1f} ± {half:.1f} us, workload {statistics.mean(now_us):.1f} us "
                      f"({(statistics.mean(now_us) / mean - 1) * 100:+.1f} %)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("sources", nargs="*", default=["shop", "memtier", "benchmark", "ycsb"])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--replays", type=int, default=5, help="from 2 to 10")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for all files, which must be empty")
    args = parser.parse_intermixed_args()
    for name in args.sources:
        with tempfile.TemporaryDirectory() if args.keep is None else contextlib.nullcontext(args.keep / name) as folder:
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            Proof(args.program, args.seconds, args.replays, pathlib.Path(folder)).prove(name)


if __name__ == "__main__":
    main()
