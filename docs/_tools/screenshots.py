"""Takes the pictures of the explorer and of a plot that the docs show, of the digits graph.

    python docs/_tools/screenshots.py [--million PAGE.html]

Needs playwright and Chromium. explore.png, explore-dark.png (a node is chosen) and explore-phone.png are
pages in a browser, digits.webp is a plot. With --million also explore-million.webp, of a page that was made
of a large graph.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests"))
from explorer.browser import ARGUMENTS, find_chromium, settle  # noqa: E402

WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 780}
TITLE = "Handwritten digits, from links alone"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--million", type=Path, help="a page of a large graph")
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file, plot = Path(folder) / "digits.html", Path(folder) / "digits.png"
        make(page_file, plot)
        shrink(plot, IMAGES / "digits.webp", 1000)
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)

        def shoot(name: str, path: Path, node: int | None = None, **look: Any) -> None:
            page = browser.new_page(**({"viewport": WIDE} | look))
            page.set_default_timeout(120_000)
            page.goto(path.resolve().as_uri())
            settle(page)
            if node is not None:
                page.evaluate("i => explorer.visit(i)", node)
            settle(page)
            picture = Path(folder) / "page.png"
            page.screenshot(path=picture)
            page.close()
            shrink(picture, IMAGES / name, look.get("viewport", WIDE)["width"])

        shoot("explore.png", page_file)
        shoot("explore-dark.png", page_file, node=900, color_scheme="dark")
        shoot("explore-phone.png", page_file, viewport=PHONE, device_scale_factor=2, has_touch=True)
        if args.million is not None:
            shoot("explore-million.webp", args.million)
        browser.close()


def make(page: Path, plot: Path) -> None:
    from kernelne import MKernelNE, load_dataset, plot_map, write_explorer

    data = load_dataset("digits")
    embedding = MKernelNE(random_state=0, deterministic=True).fit(data.graph).to_embedding()
    embedding.save(page.with_suffix(".npz"))
    both = {"graph": data.graph, "beside": page.with_suffix(".npz"), "title": TITLE}
    write_explorer(embedding, page, data.labels, **both)
    plot_map(embedding, plot, data.labels, **both)


def shrink(picture: Path, path: Path, width: int) -> None:
    """Write a picture of this width: as PNG in 256 colours, a third of its size; as WebP with all of them."""
    with Image.open(picture) as image:
        small = image.convert("RGB")
        small.thumbnail((width, 4 * width))
        if path.suffix == ".png":
            small.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
        else:
            small.save(path, quality=82, method=6)


if __name__ == "__main__":
    main()
