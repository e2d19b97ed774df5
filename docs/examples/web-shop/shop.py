#!/usr/bin/env python3
"""A small web shop that keeps everything in Redis, and visitors for it: traffic to record. See docs/own-traffic.md.

    python3 shop.py serve --redis 127.0.0.1:6379 --port 8080     # fills the shop if it is empty
    python3 shop.py visit --shop 127.0.0.1:8080 --visitors 20 --seconds 60
"""

import argparse
import bisect
import http.client
import http.server
import itertools
import json
import random
import socket
import socketserver
import threading
import time

PRODUCTS = 5000
SESSION_S = 1800


class Redis:
    """A connection to Redis, for one thread."""

    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")

    def send(self, *commands):
        """Sends commands in one go, and returns their replies."""
        out = bytearray()
        for command in commands:
            words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
            out += b"*%d\r\n" % len(words)
            for word in words:
                out += b"$%d\r\n%s\r\n" % (len(word), word)
        self.socket.sendall(out)
        return [self.read() for _ in commands]

    def one(self, *words):
        return self.send(words)[0]

    def read(self):
        line = self.replies.readline()
        if not line:
            raise ConnectionError("Redis has closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.replies.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.read() for _ in range(int(rest))]
        return rest


def fill(redis):
    """Makes the products, once."""
    draw = random.Random(7)
    for first in range(0, PRODUCTS, 500):
        commands = []
        for number in range(first, min(first + 500, PRODUCTS)):
            text = "".join(draw.choices("abcdefghij ", k=draw.randint(80, 600)))
            commands.append(("HSET", f"product:{number}", "name", f"Product {number}", "price", draw.randint(100, 9999), "text", text))
            commands.append(("SET", f"stock:{number}", draw.randint(50, 500)))
        redis.send(*commands)


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    address = ("127.0.0.1", 6379)
    of_thread = threading.local()

    def log_message(self, *_):
        pass

    def redis(self):
        if not hasattr(self.of_thread, "redis"):
            self.of_thread.redis = Redis(*self.address)
        return self.of_thread.redis

    def do_GET(self):
        path, redis = self.path.split("/")[1:], self.redis()
        # Every page looks at the session, and makes it last.
        session = self.headers.get("Session", "none")
        who, _ = redis.send(("GET", f"session:{session}"), ("EXPIRE", f"session:{session}", SESSION_S))
        if path[0] == "login":
            redis.one("SET", f"session:{session}", json.dumps({"user": path[1], "since": int(time.time())}), "EX", SESSION_S)
            self.answer({"welcome": path[1]})
        elif path[0] == "product":
            fields = redis.one("HGETALL", f"product:{path[1]}")
            redis.send(("ZINCRBY", "popular", 1, path[1]), ("INCR", f"views:{int(time.time()) // 60}"))
            self.answer({"product": [field.decode() for field in fields]})
        elif path[0] == "popular":
            best = [number.decode() for number in redis.one("ZREVRANGE", "popular", 0, 9)]
            names = redis.send(*[("HGET", f"product:{number}", "name") for number in best]) if best else []
            self.answer({"popular": [name.decode() for name in names]})
        elif path[0] == "cart":
            count = redis.one("HINCRBY", f"cart:{session}", path[1], 1)
            redis.one("EXPIRE", f"cart:{session}", SESSION_S)
            self.answer({"in cart": count})
        elif path[0] == "order":
            cart = redis.one("HGETALL", f"cart:{session}")
            numbers = [number.decode() for number in cart[::2]]
            commands = [("DECR", f"stock:{number}") for number in numbers]
            commands += [("XADD", "orders", "MAXLEN", "~", 10000, "*", "user", who or b"?", "products", ",".join(numbers))]
            redis.send(("MULTI",), *commands, ("DEL", f"cart:{session}"), ("EXEC",))
            self.answer({"ordered": numbers})
        else:
            self.answer({"shop": "open"})

    def answer(self, what):
        body = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Shop(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128


def serve(args):
    Page.address = host_and_port(args.redis)
    redis = Redis(*Page.address)
    if not redis.one("EXISTS", "product:0"):
        fill(redis)
    shop = Shop(("127.0.0.1", args.port), Page)
    print(f"the shop is open: http://127.0.0.1:{shop.server_port}/", flush=True)
    shop.serve_forever()


class Visitor(threading.Thread):
    """A person who looks around: most at what many look at, and seldom buys."""

    # Shares of a Zipf distribution with exponent 1, summed up.
    SHARES = list(itertools.accumulate(1 / rank for rank in range(1, PRODUCTS + 1)))
    count = 0

    def __init__(self, number, address, until, pause_s):
        super().__init__()
        self.draw, self.number, self.address = random.Random(number), number, address
        self.until, self.pause_s = until, pause_s

    def product(self):
        rank = bisect.bisect(self.SHARES, self.draw.random() * self.SHARES[-1])
        # Popular products are not neighbours.
        return rank * 1811 % PRODUCTS

    def run(self):
        shop = http.client.HTTPConnection(*self.address)
        visit = 0
        while time.time() < self.until:
            visit += 1
            session, pages = f"s{self.number}-{visit}", ["popular"]
            if self.draw.random() < 0.4:
                pages.append(f"login/user{self.draw.randint(1, 3000)}")
            pages += [f"product/{self.product()}" for _ in range(self.draw.randint(1, 12))]
            if self.draw.random() < 0.3:
                pages += [f"cart/{self.product()}" for _ in range(self.draw.randint(1, 4))]
                if self.draw.random() < 0.5:
                    pages.append("order")
            for page in pages:
                shop.request("GET", f"/{page}", headers={"Session": session})
                shop.getresponse().read()
                Visitor.count += 1
                time.sleep(self.draw.expovariate(1 / self.pause_s))
                if time.time() >= self.until:
                    return


def visit(args):
    until = time.time() + args.seconds
    visitors = [Visitor(number, host_and_port(args.shop), until, args.pause) for number in range(args.visitors)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    print(f"{Visitor.count} pages", flush=True)


def host_and_port(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    of_serve = commands.add_parser("serve", help="the shop")
    of_serve.add_argument("--redis", default="127.0.0.1:6379")
    of_serve.add_argument("--port", type=int, default=8080, help="0 takes a free one")
    of_serve.set_defaults(run=serve)
    of_visit = commands.add_parser("visit", help="its visitors")
    of_visit.add_argument("--shop", default="127.0.0.1:8080")
    of_visit.add_argument("--visitors", type=int, default=20)
    of_visit.add_argument("--seconds", type=float, default=60)
    of_visit.add_argument("--pause", type=float, default=0.1, help="mean pause between pages, seconds")
    of_visit.set_defaults(run=visit)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
