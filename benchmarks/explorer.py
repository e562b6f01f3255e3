"""The explorer in a browser that draws on the CPU: time to open, per frame of a moved map, of a search.

    python benchmarks/explorer.py [--nodes 100000] [--frames 120]
    python benchmarks/explorer.py --page PAGE.html [--picture PICTURE.png]

Headless Chromium, 1280 × 800 pixels, WebGL by SwiftShader and the canvas used without WebGL; all nodes in
view, and zoomed in four times. The map is moved in every frame. Without --page, a page of random places is
made; with it, a node is searched for as well, and its neighbours are shown; --picture keeps what is seen.
On a busy machine the CPU seconds of the page's process tell more than the time that passes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from explorer.browser import ARGUMENTS, find_chromium, pan_frames, settle, write_large_page


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--nodes", type=int, default=100_000)
    options.add_argument("--frames", type=int, default=120)
    options.add_argument("--page", type=Path, help="a page of kernelne explore")
    options.add_argument("--picture", type=Path, help="where to keep a picture of the page")
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = args.page or Path(folder) / "large.html"
        if args.page is None:
            write_large_page(path, args.nodes)
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        for way in ("", "#canvas"):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.set_default_timeout(120_000)
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable")
            start = time.perf_counter()
            page.goto(path.resolve().as_uri() + way)
            settle(page)
            opened = time.perf_counter() - start
            name, n = page.evaluate("[explorer.points.name, explorer.data.n]")
            size = path.stat().st_size / 1e6
            told = {
                metric["name"]: metric["value"]
                for metric in session.send("Performance.getMetrics")["metrics"]
            }
            print(
                f"{name:8} opened in {opened:.1f} s, {told['ProcessTime']:.1f} CPU seconds of the page: "
                f"{n:,} nodes, {size:.1f} MB",
                flush=True,
            )
            if args.picture is not None and not way:
                page.screenshot(path=args.picture)
            for look in ("all in view", "zoomed in"):
                if look == "zoomed in":
                    page.evaluate("explorer.move(view => view.zoomBy(4))")
                    settle(page)
                times = pan_frames(page, args.frames)
                slow = statistics.quantiles(times, n=20)[-1]
                print(
                    f"{name:8} {look:12} median {statistics.median(times):5.1f} ms, "
                    f"95 % within {slow:5.1f} ms",
                    flush=True,
                )
            if args.page is not None:
                print(f"{name:8} {visit(page, n)}", flush=True)
                if args.picture is not None and not way:
                    page.screenshot(path=args.picture.with_stem(f"{args.picture.stem}-node"))
            page.close()
        browser.close()


def visit(page: Any, n: int) -> str:
    """Search for a node in the middle of the list, choose it, and count what is shown of it."""
    wanted = page.evaluate("i => explorer.data.id(i)", n // 2)
    start = time.perf_counter()
    page.fill("#search", wanted)
    page.locator("#suggestions li").first.wait_for()
    found = time.perf_counter() - start
    page.keyboard.press("Enter")
    settle(page)
    shown = time.perf_counter() - start - found
    lists = [page.locator(f"#{of} button").count() for of in ("nearest", "links")]
    near, linked = lists
    return (
        f"found {wanted} in {found * 1000:.0f} ms, shown in {shown * 1000:.0f} ms: "
        f"{near} nearest, {linked} linked"
    )


if __name__ == "__main__":
    main()
