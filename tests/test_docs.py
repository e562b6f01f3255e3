"""The site of the docs: built without a warning, whole, and silent on the network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

import kernelne
import kernelne.baselines
from explorer.browser import ARGUMENTS, find_chromium

ROOT = Path(__file__).parents[1]
if not (ROOT / "mkdocs.yml").exists():
    pytest.skip("the docs are not part of the source distribution", allow_module_level=True)
paths, known = list(sys.path), sys.modules.pop("common", None)
sys.path.insert(0, str(ROOT / "docs" / "_tools"))
docstrings, draw_kernels, draw_performance, gallery = map(
    import_module, ("docstrings", "draw_kernels", "draw_performance", "gallery")
)
# The experiments, which other tests import, have a module `common` of their own.
sys.path[:] = paths
sys.modules.pop("common", None)
if known is not None:
    sys.modules["common"] = known


class Page(HTMLParser):
    """The ids of a page, what it loads, and where its links lead."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.loads, self.links = set(), set(), set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids.add(given.get("id"))
        self.loads |= {
            given[name] for name in ("src", "srcset", "poster", "data", "action") if given.get(name)
        }
        if tag == "link" and given.get("rel") != "canonical":
            self.loads.add(given["href"])
        if tag == "a" and given.get("href"):
            self.links.add(given["href"])


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the site, and what was said while it was built."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout + done.stderr


@pytest.fixture(scope="module")
def pages(built):
    return {path: Page(path) for path in built[0].rglob("*.html")}


def test_no_warnings(built):
    assert "Documentation built" in built[1]
    assert not [line for line in built[1].splitlines() if "WARNING" in line or "ERROR" in line]


def test_every_public_name_is_in_the_reference(built, pages):
    reference = pages[built[0] / "api.html"]
    names = {f"kernelne.{name}" for name in kernelne.__all__ if not name.startswith("_")}
    names |= {f"kernelne.baselines.{name}" for name in kernelne.baselines.__all__}
    assert names <= reference.ids
    assert {"kernelne.KernelNE.fit", "kernelne.Embedding.neighbours"} <= reference.ids


def test_signatures_and_parameters_are_in_the_reference(built):
    text = re.sub(r"<[^>]+>", "", (built[0] / "api.html").read_text("utf-8"))
    assert "walks_per_node=80" in text
    assert "window: maximum distance, in steps of a walk" in text
    assert "-----" not in text  # a heading of a docstring that was not understood


def test_nothing_is_loaded_from_elsewhere(built, pages):
    assert len(pages) > 15
    outside = {
        (path.name, address)
        for path, page in pages.items()
        for address in page.loads
        if address.startswith("//") or urlsplit(address).scheme not in ("", "data")
    }
    assert not outside
    for style in built[0].rglob("*.css"):
        assert not re.search(r"(url\(\s*[\"']?|@import\s+[\"'])(https?:)?//", style.read_text("utf-8")), style


def test_links_within_the_site_lead_somewhere(built, pages):
    dead = []
    for path, page in pages.items():
        for address in page.links | page.loads:
            target, anchor = urldefrag(address)
            if urlsplit(address).scheme or path.name == "404.html":  # which has addresses from the root
                continue
            found = (path.parent / unquote(target)).resolve() if target else path
            found = found / "index.html" if found.is_dir() else found
            if not found.exists() or (anchor and found in pages and unquote(anchor) not in pages[found].ids):
                dead.append((path.name, address))
    assert not dead


@pytest.mark.parametrize(
    "name", ["README.md", "CHANGELOG.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))]
)
def test_links_of_the_files_lead_somewhere(name, built, pages):
    text = re.sub(r"^```.*?^```", "", (ROOT / name).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for address in re.findall(r"\]\(([^)\s]+)\)", text):
        target, anchor = urldefrag(address)
        if urlsplit(address).scheme or not target:
            continue
        path = ((ROOT / name).parent / target).resolve()
        assert path.exists(), address
        page = built[0] / path.relative_to(ROOT).with_suffix(".html").name
        if anchor and path.parent == ROOT / "docs":
            assert anchor in pages[page].ids, address


@pytest.fixture
def opened(built):
    """The first page, opened as a file; in the end nothing may have failed or been asked of elsewhere."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if find_chromium() is None:
        pytest.skip("no Chromium on this machine")
    asked, wrong = [], []

    def failed(request):
        if request.failure != "net::ERR_ABORTED":  # the page was left before it came
            wrong.append(f"{request.url}: {request.failure}")

    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("requestfailed", failed)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto((built[0] / "index.html").as_uri())
        yield page
        browser.close()
    assert not wrong
    assert not [address for address in asked if urlsplit(address).scheme not in ("file", "data", "about")]


def test_search_works_where_the_site_is_opened_as_files(opened):
    opened.locator("input.md-search__input").click()
    opened.keyboard.type("deterministic")
    opened.locator(".md-search-result__link").first.wait_for(timeout=20_000)


def test_examples_are_copied_without_prompts_and_output(opened):
    opened.goto(opened.url.replace("index.html", "start.html"))
    example = opened.locator(".highlight", has_text="<Graph: 34 nodes")
    example.locator("button").click(timeout=20_000)
    copied = opened.evaluate("navigator.clipboard.readText()")
    assert 'load_dataset("karate")' in copied
    assert ">>>" not in copied
    assert "34 nodes" not in copied


def test_the_page_of_commands_is_that_of_the_commands():
    """`python docs/_tools/commands.py > docs/commands.md` makes it anew."""
    made = subprocess.run(
        [sys.executable, ROOT / "docs" / "_tools" / "commands.py"], capture_output=True, text=True, check=True
    ).stdout
    assert (ROOT / "docs" / "commands.md").read_text("utf-8") == made


def test_every_kernel_is_drawn(tmp_path):
    draw_kernels.draw(str(tmp_path / "kernels.svg"))
    assert (tmp_path / "kernels.svg").read_text("utf-8").count('id="axes_') == 3


def test_plots_of_performance_hold_what_was_measured(tmp_path):
    draw_performance.main(tmp_path)
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    for path in tmp_path.iterdir():
        assert f"(images/{path.name})" in page
        assert (ROOT / "docs" / "images" / path.name).exists()
    curves = draw_performance.timings()
    assert len(curves["KernelNE-Gauss"]) == len(curves["VERSE"]) == 9
    assert all(curves.values())


def test_every_example_of_the_gallery_has_output_and_a_small_picture():
    page = gallery.PAGE.read_text("utf-8")
    examples = [*gallery.EXAMPLE.finditer(page)]
    assert len(examples) == page.count("```python") == page.count("## ") == 5
    for example in examples:
        compile(example["code"], example["name"], "exec")
        assert example["printed"].strip()
        size = (ROOT / "docs" / "images" / "gallery" / f"{example['name']}.webp").stat().st_size
        assert 5_000 < size < 150_000
        assert example["code"].count("\n") <= 16


@pytest.mark.skipif("KERNELNE_DATA" not in os.environ, reason="needs the graphs of the gallery")
def test_an_example_of_the_gallery_prints_what_the_page_says(monkeypatch, tmp_path):
    monkeypatch.setattr(gallery, "keep", lambda picture, path: picture.stat())
    monkeypatch.setattr("kernelne.plot_map", lambda _, path, *more, **options: Path(path).touch())
    (example,) = (e for e in gallery.EXAMPLE.finditer(gallery.PAGE.read_text("utf-8")) if e["name"] == "cora")
    digits = re.compile(r"0\.\d+")
    said, shown = (
        [*map(float, digits.findall(t))] for t in (gallery.run(example["code"], "cora"), example["printed"])
    )
    assert said == pytest.approx(shown, abs=0.01)  # another CPU may round otherwise


def test_pictures_of_the_docs_are_small():
    pictures = [p for p in (ROOT / "docs" / "images").rglob("*") if p.is_file()]
    assert len(pictures) > 8
    assert not [p.name for p in pictures if p.stat().st_size > 150_000]


@pytest.mark.parametrize(
    ("docstring", "markdown"),
    [
        ("One line.\nAnother.", "One line.\nAnother."),
        ("Examples\n--------\n>>> 1 + 1\n2", "**Examples**\n\n```pycon\n>>> 1 + 1\n2\n```"),
        (
            "dim: columns,\n    so many.\np, q: node2vec's.",
            "- `dim`: columns, so many.\n- `p`, `q`: node2vec's.",
        ),
        ("dim, window,\nnorm: as there.", "- `dim`, `window`, `norm`: as there."),
        (
            "task      what for\nresults   the best\n          first",
            "- `task`: what for\n- `results`: the best first",
        ),
        ("suffix  ids  more\n.npz    yes  no", "```text\nsuffix  ids  more\n.npz    yes  no\n```"),
        ("Said of this: nothing.", "Said of this: nothing."),
    ],
)
def test_docstrings_become_markdown(docstring, markdown):
    assert docstrings.as_markdown(docstring) == markdown
