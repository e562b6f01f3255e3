"""Shared code of the figures: drawing, and scores on CiteSeer against one parameter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from common import Cell, Section, Store, classify, number, paper_scores, scores_by_share, table

STYLE = {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}


@contextmanager
def panels(store: Store, name: str, caption: str, rows: int, columns: int) -> Iterator[tuple[Any, str]]:
    """Yield axes (rows, columns) to draw on and Markdown that shows them; saved as folder/plots/NAME.svg.

    The same results give the same file, byte for byte.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE | {"svg.hashsalt": name}):
        figure, axes = plt.subplots(
            rows, columns, figsize=(2.6 * columns, 2.6 * rows), squeeze=False, layout="constrained"
        )
        yield axes, f"![{caption}](plots/{name}.svg)"
        path = store.folder / "plots" / f"{name}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


@dataclass(frozen=True)
class Sweep:
    """Micro-F1 on CiteSeer of some models against one of their parameters."""

    experiment: str
    title: str
    models: tuple[str, ...]
    parameter: str
    paper_value: Any  # the value in the paper's tables
    remark: str
    log: bool = False

    def run(
        self, store: Store, values: tuple[Any, ...], shares: tuple[int, ...], seeds: int, splits: int
    ) -> None:
        for seed in range(seeds):
            for value in values:
                for model in self.models:
                    key = self._key(model, seed, splits, value)
                    store.fill(self.experiment, lambda key=key: classify(shares=shares, **key), **key)

    def render(
        self, store: Store, values: tuple[Any, ...], shares: tuple[int, ...], seeds: int, splits: int
    ) -> list[Section]:
        paper = paper_scores()
        rows, cells = [], []
        caption = f"{self.title}; a cross is the paper's figure, from its tables"
        with panels(store, self.experiment, caption, 1, len(self.models)) as (axes, image):
            for ax, model in zip(axes[0], self.models, strict=True):
                ours = {
                    value: scores_by_share(
                        store.read(self.experiment, **self._key(model, seed, splits, value))
                        for seed in range(seeds)
                    )
                    for value in values
                }
                for share in shares:
                    label, printed = f"{model}, {share} %", paper["citeseer", model, share]
                    cells.append(Cell(label, printed, ours.get(self.paper_value, {}).get(share)))
                    rows.append([label, *(number(ours[v].get(share)) for v in values), str(cells[-1])])
                    there = [v for v in values if share in ours[v]]
                    line = ax.plot(there, [ours[v][share] for v in there], marker=".", label=f"{share} %")[0]
                    ax.plot([self.paper_value], [printed], "x", color=line.get_color())
                if self.log:
                    ax.set_xscale("log", base=2)
                ax.set(title=model, xlabel=self.parameter, ylabel="micro-F1")
                ax.set_xticks(values, [f"{v:g}" for v in values])
            axes[0, 0].legend(title="in training")
        head = [f"{self.parameter} = {v:g}" for v in values]
        beside = f"at {self.paper_value:g}: paper / ours / difference"
        text = f"{image}\n\n{self.remark} Mean of {seeds} × {splits} splits.\n\n"
        return [Section(self.title, text + table(["model, in training", *head, beside], rows), cells)]

    def _key(self, model: str, seed: int, splits: int, value: Any) -> dict[str, Any]:
        key = {"graph": "citeseer", "model": model, "seed": seed, "splits": splits}
        return key | {self.parameter: value}
