"""Plots with matplotlib."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ._extras import pandas, pyplot

if TYPE_CHECKING:
    import numpy
    from matplotlib.axes import Axes

    from ._shapes import ExperimentShape, RunShape


def run(result: RunShape, axes: Any = None) -> numpy.ndarray:
    """Throughput and response times of the measured phase over time."""
    plt = pyplot()
    if axes is None:
        _, axes = plt.subplots(2, 1, sharex=True, figsize=(8, 5), layout="constrained")
    above, below = axes
    phase = result.measured["name"] if result.measured else "measure"
    over_time = result.intervals.query("phase == @phase")
    # A piece of an interval at an edge has few operations: its rate says little.
    whole = over_time[over_time["length_s"] >= over_time["length_s"].max() / 2] if len(over_time) else over_time
    begin = over_time["start_s"].min() if len(over_time) else 0
    above.plot(whole["start_s"] - begin, whole["throughput"], marker=".")
    above.set(ylabel="operations/s", title=_plain(result.title))
    series = result.series.query("phase == @phase and metric not in ['TOTAL', 'CLEANUP']")
    series = series[series["second"].isin(whole["start_s"])] if len(whole) else series
    for name, rows in series.groupby("metric"):
        line = below.plot(rows["second"] - begin, rows["response_p50_us"] / 1e3, marker=".", label=f"{_plain(name)} p50")
        p99 = rows["response_p99_us"] / 1e3
        below.plot(rows["second"] - begin, p99, marker=".", linestyle="--", color=line[0].get_color(), label=f"{_plain(name)} p99")
    below.set(xlabel="time, s", ylabel="response time, ms")
    for one in (above, below):
        _from_zero(one)
    if len(series):
        below.legend(fontsize="small")
    return axes


def experiment(found: ExperimentShape, x: str | None, y: str, ax: Axes | None) -> Axes:
    """A figure over the levels of a factor."""
    plt, pd = pyplot(), pandas()
    if x is not None and x not in found.factors:
        raise KeyError(f"no factor {x}; there are: {', '.join(found.factors) or 'none'}")
    percentile = re.fullmatch(r"p(\d+(?:\.\d+)?)", y)
    if y != "throughput" and not percentile:
        raise ValueError(f"{y}: expected throughput, or a percentile such as p99")
    runs = found.runs.query("status == 'complete'") if len(found.runs) else found.runs
    if runs.empty:
        raise ValueError(f"{found!r}: no run is complete")
    x = x or next((name for name in found.factors if runs[name].nunique() > 1), next(iter(found.factors), None))
    others = [name for name in found.factors if name != x and runs[name].nunique() > 1]
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    trusted = runs[runs["trust"] != "invalid"]
    values: Any
    if percentile:
        values = found.percentile(float(percentile[1])).rename("value").div(1e3).reset_index()
    else:
        values = trusted.rename(columns={"throughput": "value"})[[*found.factors, "value"]]
        values = values.groupby(found.factors, as_index=False)["value"].mean() if found.factors else values.mean().to_frame().T
    place = (lambda frame: frame[x]) if x else (lambda frame: pd.Series(found.name, index=frame.index))
    groups = values.groupby(others[0] if len(others) == 1 else others) if others else [("", values)]
    for level, group in groups:
        levels = level if isinstance(level, tuple) else (level,)
        label = ", ".join(f"{name} {_plain(one)}" for name, one in zip(others, levels))
        group = group.sort_values(x) if x else group
        line = ax.plot(place(group), group["value"], marker="o", label=label or None)
        if not percentile:
            mine = trusted
            for name, one in zip(others, levels):
                mine = mine[mine[name] == one]
            ax.scatter(place(mine), mine["throughput"], color=line[0].get_color(), s=10, alpha=0.6)
    bad = runs[runs["trust"] == "invalid"]
    if len(bad) and not percentile:
        ax.scatter(place(bad), bad["throughput"], color="red", marker="x", label="invalid runs")
    ylabel = f"{y} of the response time, ms" if percentile else "operations/s"
    ax.set(xlabel=_plain(x or ""), ylabel=ylabel, title=_plain(found.name))
    if x and runs[x].nunique() <= 12 and pd.api.types.is_numeric_dtype(runs[x]):
        ax.set_xticks(sorted(set(runs[x].tolist())))
    _from_zero(ax)
    if others or (len(bad) and not percentile):
        ax.legend(fontsize="small")
    return ax


def _from_zero(ax: Axes) -> None:
    """Lets an axis begin at zero, with room above the greatest value."""
    greatest = ax.dataLim.y1
    ax.set_ylim(0, greatest * 1.08 if 0 < greatest < float("inf") else None)


def _plain(name: Any) -> str:
    """A name in which matplotlib sees no formula."""
    return str(name).replace("$", r"\$")
