"""Time per frame of the explorer while the map is moved, in a browser that draws on the CPU.

    python benchmarks/explorer.py [--nodes 100000] [--frames 120]

Headless Chromium, 1280 × 800 pixels, WebGL by SwiftShader and the canvas used without WebGL; all nodes in
view, and zoomed in four times. The map is moved in every frame.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from explorer.browser import ARGUMENTS, find_chromium, pan_frames, settle, write_large_page


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--nodes", type=int, default=100_000)
    options.add_argument("--frames", type=int, default=120)
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "large.html"
        write_large_page(path, args.nodes)
        print(f"{args.nodes:,} nodes, a page of {path.stat().st_size / 1e6:.1f} MB")
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        for way in ("", "#canvas"):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            start = time.perf_counter()
            page.goto(path.as_uri() + way)
            settle(page)
            opened = time.perf_counter() - start
            name = page.evaluate("explorer.points.name")
            print(f"{name:8} opened in {opened:.1f} s")
            for look in ("all in view", "zoomed in"):
                if look == "zoomed in":
                    page.evaluate("explorer.move(view => view.zoomBy(4))")
                    settle(page)
                times = pan_frames(page, args.frames)
                slow = statistics.quantiles(times, n=20)[-1]
                print(
                    f"{name:8} {look:12} median {statistics.median(times):5.1f} ms, "
                    f"95 % within {slow:5.1f} ms"
                )
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
