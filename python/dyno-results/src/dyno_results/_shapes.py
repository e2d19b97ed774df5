"""What cards and plots ask of results: they know no class of them, so that each of these can draw itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pandas as pd


class ResultShape(Protocol):
    """A run, or several that were merged."""

    summary_json: dict[str, Any] | None

    @property
    def title(self) -> str: ...

    @property
    def status(self) -> str: ...

    @property
    def measured(self) -> dict[str, Any] | None: ...

    @property
    def failed(self) -> int | None: ...

    def _operations(self) -> list[dict[str, Any]]: ...


class RunShape(ResultShape, Protocol):
    """A run."""

    @property
    def intervals(self) -> pd.DataFrame: ...

    @property
    def series(self) -> pd.DataFrame: ...


class ExperimentShape(Protocol):
    """An experiment."""

    name: str
    record: dict[str, Any]

    @property
    def verdict(self) -> str | None: ...

    @property
    def factors(self) -> list[str]: ...

    @property
    def runs(self) -> pd.DataFrame: ...

    @property
    def _ended(self) -> list[dict[str, Any]]: ...

    def _levels(self, line: dict[str, Any]) -> dict[str, Any]: ...

    def percentile(self, p: float, operation: str | None = None, kind: str = "response") -> pd.Series: ...


class ComparisonShape(Protocol):
    """A comparison."""

    found: list[dict[str, Any]]

    @property
    def warnings(self) -> list[str]: ...


def conclusion(figure: dict[str, Any]) -> tuple[str, int | None]:
    """Conclusion about a figure in one word, and how many more runs a side are needed if it is unclear."""
    found = figure["conclusion"]
    if isinstance(found, dict):
        ((word, more),) = found.items()
        return word, more or None
    return found, None
