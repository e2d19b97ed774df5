"""Cards for notebooks. Names and texts come from servers and files: all of them are escaped."""

from __future__ import annotations

import html
import math
from typing import Any

from ._shapes import ComparisonShape, ExperimentShape, ResultShape, conclusion

#: Colours of dyno's pages, readable on light and dark.
_COLOURS = {"valid": "#00694d", "suspect": "#8a5300", "invalid": "#b03a00"}
_COLOURS.update({"better": "#00694d", "worse": "#b03a00"})
_CARD = "border:1px solid #8888;border-radius:6px;padding:.6em .9em;display:inline-block;max-width:60em"
_LEFT, _RIGHT = "text-align:left;padding:1px .7em 1px 0", "text-align:right;padding:1px 0 1px .9em"
#: Rows of a card.
_ROWS = 30
_REASONS = 3


def text(value: Any) -> str:
    """A text that is safe in a page."""
    return html.escape(str(value), quote=True)


def chip(word: str) -> str:
    """A verdict."""
    style = f"background:{_COLOURS.get(word, '#565656')};color:#fff;border-radius:4px;padding:1px .5em;font-weight:600"
    return f'<span style="{style}">{text(word)}</span>'


def latency(us: float | None) -> str:
    """Microseconds with a unit that fits, three digits."""
    if us is None or math.isnan(us):
        return "-"
    if math.isinf(us):
        return "∞"
    for unit, size in (("s", 1e6), ("ms", 1e3), ("µs", 1.0)):
        if us >= size * 0.9995:
            return f"{_digits(us / size)} {unit}"
    return f"{us * 1e3:.0f} ns"


def _digits(value: float) -> str:
    places = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:,.{places}f}"


def table(head: list[str], rows: list[list[str]], left: int) -> str:
    """A table of cells that are HTML already; the first `left` columns are texts, the others numbers."""
    sides = [_LEFT if at < left else _RIGHT for at in range(len(head))]
    heads = "".join(f'<th style="{side}">{text(name)}</th>' for side, name in zip(sides, head))
    body = "".join("<tr>" + "".join(f'<td style="{side}">{cell}</td>' for side, cell in zip(sides, row)) + "</tr>" for row in rows[:_ROWS])
    more = f"<div>and {len(rows) - _ROWS:,} more</div>" if len(rows) > _ROWS else ""
    return f'<table style="margin:.4em 0;border-collapse:collapse"><tr>{heads}</tr>{body}</table>{more}'


def card(result: ResultShape) -> str:
    """A run: verdict, throughput, thresholds, reasons, and one table of latencies."""
    title = text(result.title)
    summary, phase = result.summary_json, result.measured
    if summary is None or phase is None:
        return f'<div style="{_CARD}"><b>{title}</b>: {text(result.status)}, no summary</div>'
    parts = [f"<div>{chip(summary['verdict']['trust'])} <b>{title}</b> on {text(summary['database'])}</div>"]
    if summary["status"] != "complete":
        parts.append(f"<div><b>{text(summary['status'])}</b>: this is what was measured until then</div>")
    ok = phase["outcomes"].get("ok", 0)
    parts.append(
        f"<div>{text(phase['name'])}: <b>{phase['throughput']:,.0f} operations/s</b>, {ok:,} in {phase['seconds']:,.1f} s, "
        f"{result.failed:,} failed or dropped</div>"
    )
    for one in summary["thresholds"]:
        word = "held" if one["passed"] else "<b>missed</b>"
        measured = "unknown" if one["measured"] is None else f"{one['measured']:,.6g}"
        parts.append(f"<div>{text(one['expression'])}: {word} (measured {measured})</div>")
    reasons = summary["verdict"]["reasons"]
    parts += [f"<div>{text(one['trust'])} {text(one['check'])}: {text(one['text'])}</div>" for one in reasons[:_REASONS]]
    if len(reasons) > _REASONS:
        parts.append(f"<div>and {len(reasons) - _REASONS} more reasons</div>")
    rows = []
    for metric in result._operations():
        found = metric.get("response") or {"count": 0, "percentiles_us": {}}
        figures = {"mean": found.get("mean_us"), "max": found.get("max_us"), **{k: _known(v) for k, v in found["percentiles_us"].items()}}
        shown = [latency(figures.get(name)) for name in ("mean", "p50", "p99", "p99.9", "max")]
        rows.append([text(metric["name"]), *shown, f"{found['count']:,}"])
    parts.append(table(["response time", "mean", "p50", "p99", "p99.9", "max", "count"], rows, 1))
    return f'<div style="{_CARD}">{"".join(parts)}</div>'


def _known(value: float | None) -> float:
    # null: among dropped arrivals.
    return math.inf if value is None else value


def experiment(found: ExperimentShape) -> str:
    """An experiment: its verdicts and a table of runs."""
    ended = found._ended
    chips = " ".join(chip(found.verdict) for _ in (1,) if found.verdict)
    head = f"<div>{chips} <b>{text(found.name)}</b>: {len(ended):,} runs of {len(found.record['cells']):,} cells have ended</div>"
    rows = []
    for line in ended:
        levels = found._levels(line)
        marks = [text(levels.get(name, "")) for name in found.factors] + [str(line["repetition"])]
        state = chip(line["trust"]) if line["status"] == "complete" else text(line["status"])
        rows.append([*marks, state, "held" if line["passed"] else "<b>missed</b>", f"{line['throughput']:,.0f}"])
    names = [*found.factors, "repetition", "verdict", "thresholds", "operations/s"]
    return f'<div style="{_CARD}">{head}{table(names, rows, len(names) - 1)}</div>'


def comparison(found: ComparisonShape) -> str:
    """A comparison: one row for each figure."""
    rows = []
    for part in found.found:
        for figure in part["figures"]:
            word, more = conclusion(figure)
            ratio = figure["ratio"]
            means = [latency(mean) if figure["unit"] == "us" else f"{mean:,.0f}" for mean in figure["means"]]
            change = f"{(ratio['value'] - 1) * 100:+.1f} %"
            if ratio["low"] is not None:
                change += f" [{(ratio['low'] - 1) * 100:+.1f}, {(ratio['high'] - 1) * 100:+.1f}]"
            note = f" ({more} more runs a side)" if more else ""
            rows.append([text(part["cell"]), text(figure["name"]), chip(word) + note, *means, change])
    warnings = "".join(f"<div>{text(words)}</div>" for words in dict.fromkeys(found.warnings))
    sides = {(part["first"], part["second"]) for part in found.found}
    head = "".join(f"<div><b>{text(second)}</b> against <b>{text(first)}</b></div>" for first, second in sides) if len(sides) == 1 else ""
    shown = table(["cell", "figure", "conclusion", "before", "after", "change [95 %]"], rows, 3)
    return f'<div style="{_CARD}">{head}{shown}{warnings}</div>'
