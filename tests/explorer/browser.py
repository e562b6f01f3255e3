"""A browser without a window, and how long its frames take; the benchmark of the explorer uses it, too."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from kernelne import Labels, write_explorer

#: Drawn by the CPU, and silent on the network.
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
    "--disable-quic",
]  # fmt: skip


def find_chromium() -> str | None:
    """The browser of the system, if there is one."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


def write_large_page(path: Path, n: int) -> None:
    """A page of n nodes in twenty clouds, with labels, and nothing that would take long to compute."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 20, n)
    places = rng.normal(size=(20, 2))[groups] + rng.normal(scale=0.15, size=(n, 2))
    labels = Labels.from_values(np.arange(n), groups)
    write_explorer(places, path, labels, layout="auto", n_nearest=0, overwrite=True)


def settle(page: Any) -> None:
    """Wait until what has been asked for is drawn."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


#: Moves the map in every frame, to and fro, and returns the milliseconds between frames.
_PAN = """frames => new Promise(done => {
  const times = [];
  const step = now => {
    times.push(now);
    if (times.length > frames) return done(times.slice(1).map((time, i) => time - times[i]));
    explorer.move(view => view.pan(times.length % 40 < 20 ? 7 : -7, 3));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


def pan_frames(page: Any, frames: int) -> list[float]:
    """Milliseconds of each frame while the map is moved."""
    times: list[float] = page.evaluate(_PAN, frames)
    return times
