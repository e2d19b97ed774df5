"""The histogram log, merged by tag."""

from __future__ import annotations

import base64
import math
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from ._errors import MissingExtra
from ._extras import DISTRIBUTION

_COOKIE, _COMPRESSED = 0x1C849303, 0x1C849304
_HEADER = struct.Struct(">iiiiqqd")


class Counts:
    """How often each latency was counted: HdrHistogram's buckets for three significant digits. Counts of several add up."""

    def __init__(self, unit_ns: int):
        #: Length of a unit in nanoseconds.
        self.unit_ns = unit_ns
        #: Samples by bucket.
        self.buckets: Counter[int] = Counter()

    @property
    def total(self) -> int:
        """Samples."""
        return sum(self.buckets.values())

    def add(self, other: Counts) -> None:
        """Adds the samples of another."""
        if other.unit_ns != self.unit_ns:
            raise ValueError(f"histograms in units of {self.unit_ns} and {other.unit_ns} ns cannot be merged exactly")
        self.buckets.update(other.buckets)

    def percentile_us(self, p: float, greatest_us: float = math.inf) -> float:
        """A percentile (0 to 100) in microseconds by dyno's rule: the end of its bucket, never above `greatest_us`. NaN if empty."""
        total = self.total
        if not total:
            return math.nan
        # The next float below p, times the samples: HdrHistogram's rule.
        below = math.nextafter(min(max(p, 0.0), 100.0), -math.inf)
        wanted = min(max(math.ceil(max(below, 0.0) * total / 100.0), 1), total)
        seen = 0
        for bucket in sorted(self.buckets):
            seen += self.buckets[bucket]
            if seen >= wanted:
                break
        end_ns = highest(bucket) * self.unit_ns + self.unit_ns - 1
        return min(end_ns / 1000, greatest_us)


def highest(bucket: int) -> int:
    """The highest value in units that falls into a bucket."""
    if bucket < 2048:
        return bucket
    doubling = (bucket >> 10) - 1
    return (((bucket & 1023) + 1024 + 1) << doubling) - 1


def decode(text: str, log_ns: int) -> Counts:
    """A histogram of the log: HdrHistogram V2, compressed, in base64. `log_ns` is the length of the log's unit in nanoseconds."""
    packed = base64.b64decode(text)
    cookie, length = struct.unpack_from(">ii", packed)
    if cookie & ~0xF0 != _COMPRESSED:
        raise ValueError(f"no compressed histogram of version 2 (cookie {cookie:#x})")
    raw = zlib.decompress(packed[8 : 8 + length])
    cookie, length, offset, digits, lowest, _, _ = _HEADER.unpack_from(raw)
    if cookie & ~0xF0 != _COOKIE or digits != 3 or offset != 0:
        raise ValueError(f"no histogram of version 2 with three digits (cookie {cookie:#x}, {digits} digits, offset {offset})")
    counts = Counts(log_ns << (max(lowest, 1).bit_length() - 1))
    bucket, at, end = 0, _HEADER.size, _HEADER.size + length
    while at < end:
        value, shift = 0, 0
        while True:
            byte = raw[at]
            at += 1
            # The ninth byte has eight bits.
            if shift == 56:
                value |= byte << shift
                break
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        value = (value >> 1) ^ -(value & 1)
        if value < 0:
            bucket -= value
        else:
            if value:
                counts.buckets[bucket] += value
            bucket += 1
    return counts


def _lines(path: Path) -> Iterable[tuple[str, str]]:
    """Tag and histogram of each line. A last line that a kill has torn is left out."""
    text = Path(path).read_text(encoding="utf-8")
    for line in text[: text.rfind("\n") + 1].splitlines():
        if line.startswith("Tag="):
            tag, rest = line[4:].split(",", 1)
            yield tag, rest.rsplit(",", 1)[1]


def counts(path: Path, wanted: Callable[[str], bool] = lambda tag: True) -> dict[str, Counts]:
    """Counts by tag, the lines of each tag added up."""
    with open(path, encoding="utf-8") as file:
        found = re.search(r"Values in (nano|micro)seconds", file.readline())
    if not found:
        raise ValueError(f"{path}:1: expected the unit of the values")
    log_ns = {"nano": 1, "micro": 1000}[found[1]]
    merged: dict[str, Counts] = {}
    for tag, packed in _lines(path):
        if wanted(tag):
            part = decode(packed, log_ns)
            if tag in merged:
                merged[tag].add(part)
            else:
                merged[tag] = part
    return merged


def read(path, wanted=None):
    """HdrHistograms of the package hdrhistogram by tag. Lines of one tag add up; percentiles are to be taken from the sum."""
    try:
        from hdrh.histogram import HdrHistogram
    except ImportError as error:
        words = f"histograms: hdrhistogram is not installed; pip install '{DISTRIBUTION}[histograms]'"
        raise MissingExtra(words) from error
    decoded = {}
    for tag, packed in _lines(path):
        if wanted is None or wanted(tag):
            decoded.setdefault(tag, []).append(HdrHistogram.decode(packed.encode()))
    merged = {}
    for tag, parts in decoded.items():
        lowest = min(part.lowest_trackable_value for part in parts)
        # Two significant bits more than the greatest value, so that every part fits.
        highest = max(max(part.get_max_value() for part in parts), 2 * lowest) * 4
        whole = HdrHistogram(lowest, highest, 3)
        for part in parts:
            whole.add(part)
        merged[tag] = whole
    return merged
