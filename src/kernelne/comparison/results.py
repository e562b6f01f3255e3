"""Results of a comparison: scores, time and memory of each method, as a table and as a picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kernelne._common.html import html_table
from kernelne.comparison.worker import Scores
from kernelne.errors import ParameterError
from kernelne.io.files import atomic_output
from kernelne.view.figures import new_figure

_MEASURES = {
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "auc": "AUC",
    "average_precision": "average precision",
}


def measure_label(measure: str) -> str:
    """Return the display name of a score: "micro-F1 10 %" for micro_f1_10."""
    base, _, share = measure.rpartition("_")
    return f"{_MEASURES[base]} {share} %" if base in _MEASURES else _MEASURES[measure]


@dataclass(frozen=True)
class MethodResult:
    """Scores, time and memory of one method.

    Attributes
    ----------
    method: name of the method.
    scores: for each measure, the score of each split; empty if the method failed.
    seconds: time of `fit`, of several splits the mean; if a parameter was chosen, of all its fits and the
        validation; None for a control.
    peak_bytes: peak memory of the process during `fit`; None if unknown.
    error: the reason why there are no scores; None if there are.
    chosen: parameters chosen by validation: for each share of training labels, the most frequent choice.
    warnings: messages of the warnings issued.
    estimated_seconds: time of all fits, as estimated beforehand; None if it was not.
    """

    method: str
    scores: Scores = field(default_factory=dict)
    seconds: float | None = None
    peak_bytes: int | None = None
    error: str | None = None
    chosen: dict[str, list[int]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    estimated_seconds: float | None = None

    def mean(self, measure: str) -> float:
        """Return the mean of a score over the splits; nan if the method failed."""
        return float(np.mean(self.scores[measure])) if self.scores else float("nan")

    def cells(self, measures: Iterable[str]) -> list[str]:
        """Return a row of the table: name, scores, seconds, memory in MiB; "–" for unknown values.

        A score is its mean over the splits ± its standard deviation.
        """
        scores = [self._cell(measure) for measure in measures]
        seconds = "–" if self.seconds is None else f"{self.seconds:.2f}"
        memory = "–" if self.peak_bytes is None else f"{self.peak_bytes / 2**20:,.0f}"
        return [self.method, *scores, seconds, memory]

    def _cell(self, measure: str) -> str:
        values = self.scores.get(measure, [])
        several = f" ± {np.std(values):.3f}" if len(values) > 1 else ""
        return f"{np.mean(values):.3f}{several}" if values else "–"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with means and standard deviations of the scores."""
        found: dict[str, Any] = {"method": self.method}
        for measure, values in self.scores.items():
            found |= {measure: float(np.mean(values)), f"{measure}_sd": float(np.std(values))}
        memory = None if self.peak_bytes is None else round(self.peak_bytes / 2**20, 1)
        found |= {"seconds": self.seconds, "estimated_seconds": self.estimated_seconds}
        found |= {"peak_memory_MiB": memory, "chosen": self.chosen}
        return found | {"warnings": list(self.warnings), "error": self.error}


@dataclass(frozen=True)
class Comparison:
    """Results of all methods on one graph; `print` shows a table.

    Attributes
    ----------
    task: "labels" or "links".
    measures: names of the scores; results are sorted by the first.
    results: results of all methods, the best first, failed methods last.
    controls: scores reached without vectors, the best first.
    """

    task: str
    measures: tuple[str, ...]
    results: tuple[MethodResult, ...]
    controls: tuple[MethodResult, ...]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the column names, and a row for each method and control with scores, the best first."""
        columns = ["method", *map(measure_label, self.measures), "seconds", "peak MiB"]
        scored = [result for result in self.results if result.scores]
        ranked = rank([*scored, *self.controls], self.measures[0])
        return columns, [result.cells(self.measures) for result in ranked]

    def __str__(self) -> str:
        columns, rows = self.table()
        widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
        lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
                 for row in (columns, *rows)]  # fmt: skip
        failed = [f"{result.method}: {result.error}" for result in self.results if result.error]
        return "\n".join([*lines, *failed])

    def _repr_html_(self) -> str:
        return html_table(*self.table())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        results = [result.to_dict() for result in self.results]
        controls = [
            {k: v for k, v in c.to_dict().items() if k in {"method", *c.scores}} for c in self.controls
        ]
        return {"task": self.task, "sorted_by": self.measures[0], "results": results, "controls": controls}


def rank(results: Iterable[MethodResult], measure: str) -> tuple[MethodResult, ...]:
    """Sort by the mean of a score, the best first, failed methods last."""
    return tuple(sorted(results, key=lambda r: -r.mean(measure) if r.scores else float("inf")))


def draw_comparison(comparison: Comparison, path: Path, title: str = "", overwrite: bool = False) -> None:
    """Draw scores, seconds and memory as bars to a .png or .svg; the file is written whole or not at all."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise ParameterError("path", str(path), "must end in .png or .svg")
    shown = [result for result in reversed(comparison.results) if result.scores]
    figure = new_figure(11, 1.6 + 0.34 * len(shown))
    axes = figure.subplots(1, 3, sharey=True, width_ratios=[2, 1, 1])
    places = np.arange(len(shown))
    measures = [name for name in comparison.measures if name.startswith(("micro", "auc"))]
    height = 0.8 / len(measures)
    for k, measure in enumerate(measures):
        values = [result.mean(measure) for result in shown]
        offset = 0.4 - height * (k + 0.5)
        bars = axes[0].barh(
            places + offset, values, height, label=measure_label(measure), color=f"C{k}",
            xerr=[np.std(result.scores[measure]) for result in shown], error_kw={"elinewidth": 0.8},
        )  # fmt: skip
        axes[0].bar_label(bars, fmt="%.3f", fontsize=7, padding=2)
        best = max(control.mean(measure) for control in comparison.controls)
        axes[0].axvline(best, color=f"C{k}", linestyle=":", label=f"{measure_label(measure)}, no vectors")
    axes[0].set(yticks=places, yticklabels=[result.method for result in shown], xlim=(0, 1.1))
    figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    for panel, name, values in (
        (axes[1], "seconds", [result.seconds or 0.0 for result in shown]),
        (axes[2], "peak MiB", [(result.peak_bytes or 0) / 2**20 for result in shown]),
    ):
        bars = panel.barh(places, values, 0.6, color="0.6")
        panel.bar_label(bars, fmt="%.3g" if name == "seconds" else "%.0f", fontsize=7, padding=2)
        panel.set_xlabel(name)
        panel.margins(x=0.25)
    if shown and min(result.seconds or 0.0 for result in shown) > 0:
        axes[1].set_xscale("log")
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title)
    with atomic_output(path, overwrite) as temporary:
        figure.savefig(temporary, format=kind, dpi=120)
