"""Runs the examples of docs/gallery.md; writes what they print into the page, and their pictures beside it.

    KERNELNE_DATA=FOLDER python docs/_tools/gallery.py [NAME ...]

FOLDER holds the graphs; NAME is the name of a picture, such as cora, to run only its example.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
PAGE = DOCS / "gallery.md"
#: An example: its code, what it prints, and its picture.
EXAMPLE = re.compile(
    r"```python\n(?P<code>.*?)```\n\n```text\n(?P<printed>.*?)```\n\n!\[[^\]]*\]\(images/gallery/(?P<name>\w+)\.webp\)",
    re.DOTALL,
)
WIDTH = 1000


def main(names: list[str]) -> None:
    page = PAGE.read_text("utf-8")
    for example in EXAMPLE.finditer(page):
        if names and example["name"] not in names:
            continue
        printed = run(example["code"], example["name"])
        print(example["name"], printed, sep="\n", flush=True)
        made = example[0].replace(f"```text\n{example['printed']}```", f"```text\n{printed}```")
        page = page.replace(example[0], made)
        PAGE.write_text(page, "utf-8")


def run(code: str, name: str) -> str:
    """Run an example in a folder of links to the graphs; keep its picture, and return what it prints."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcdefaults()
    plt.rcParams.update(
        {"figure.dpi": 130, "figure.figsize": (7.0, 4.2), "figure.constrained_layout.use": True}
    )
    plt.close("all")
    data = Path(os.environ["KERNELNE_DATA"]).resolve()
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for path in data.glob("*.gz"):
            Path(path.name).symlink_to(path)
        with contextlib.redirect_stdout(said):
            exec(compile(code, name, "exec"), {"__name__": name})
        keep(Path(f"{name}.png"), DOCS / "images" / "gallery" / f"{name}.webp")
    return said.getvalue()


def keep(picture: Path, path: Path) -> None:
    """Write a picture as WebP, small enough for a page."""
    from PIL import Image

    with Image.open(picture) as image:
        small: Any = image.convert("RGB")
        small.thumbnail((WIDTH, WIDTH))
        small.save(path, quality=82, method=6)


if __name__ == "__main__":
    main(sys.argv[1:])
