"""The histogram log, merged by tag."""

from pathlib import Path


def read(path, wanted=None):
    """HdrHistograms by tag. Lines of one tag add up; percentiles are to be taken from the sum."""
    try:
        from hdrh.histogram import HdrHistogram
    except ImportError as error:
        raise ImportError("histograms need the package hdrhistogram: pip install dyno-results[histograms]") from error
    decoded = {}
    text = Path(path).read_text(encoding="utf-8")
    for line in text[: text.rfind("\n") + 1].splitlines():
        if not line.startswith("Tag="):
            continue
        tag, rest = line[4:].split(",", 1)
        if wanted is None or wanted(tag):
            decoded.setdefault(tag, []).append(HdrHistogram.decode(rest.rsplit(",", 1)[1].encode()))
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
