"""The experiments' tables are made from results alone; a finished cell is not run again, and not lost."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "experiments"
if not FOLDER.exists():
    pytest.skip("the experiments are not part of the source distribution", allow_module_level=True)
sys.path.insert(0, str(FOLDER))

baselines, common, default_rivals, report, table6, table7, tables2_5 = map(
    import_module, ("baselines", "common", "default_rivals", "report", "table6", "table7", "tables2_5")
)
Cell, Section, Store = common.Cell, common.Section, common.Store
FACTS = {"commit": "abc1234", "machine": "a machine", "seconds": 36.0}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def put_scores(store, model, seed, micro_f1):
    key = {"graph": "cora", "model": model, "seed": seed, "splits": 2}
    result = {"shares": [1, 50], "micro_f1": micro_f1, "macro_f1": [[0.5, 0.5], [0.8, 0.8]]}
    store.write("tables2_5", key, result | FACTS)


def row(section, first):
    (line,) = [line for line in section.text.splitlines() if line.startswith(f"| {first} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_scores_stand_beside_the_paper(store):
    put_scores(store, "KernelNE-Gauss", 0, [[0.60, 0.62], [0.84, 0.84]])
    put_scores(store, "KernelNE-Gauss", 1, [[0.64, 0.66], [0.85, 0.85]])
    micro, macro = tables2_5.render(store, ("cora",), (1, 50, 90), seeds=2, splits=2)
    assert micro.title == "Table 3: classification, cora, micro-F1"
    # The paper: 0.628 at 1 %, 0.837 at 50 %; ours are means of seeds and splits.
    assert row(micro, "1 %")[1:3] == ["0.628 / 0.630 / +0.002", "0.619 / – / –"]
    assert row(micro, "50 %")[1] == "0.837 / 0.845 / +0.008"
    assert row(micro, "90 %")[1].endswith(" / – / –")
    assert row(macro, "1 %")[1] == "0.566 / 0.500 / -0.066"
    assert row(micro, "1 %")[5:] == ["0.631 / – / –", "MKernelNE-Gauss"]  # the default, beside the best
    assert "2 of 11 trainings done" in micro.text
    assert [cell.name for cell in micro.cells if cell.ours is not None] == [
        "KernelNE-Gauss, 1 %",
        "KernelNE-Gauss, 50 %",
    ]


def test_nothing_run_is_a_table_of_dashes(store):
    for section in tables2_5.render(store, **tables2_5.FULL):
        assert all(cell.ours is None for cell in section.cells)
        assert "Nothing has been run." in section.text
    assert row(table7.render(store, ("cora",), 3)[0], "cora")[1] == "87 / – / –"


def test_times_are_medians_and_ratios(store):
    result = {"wall_seconds": [9.0, 1.0, 2.0], "cpu_seconds": [1.0, 1.0, 2.0]}
    store.write("table7", {"graph": "cora", "model": "KernelNE-Gauss", "repeats": 3}, result | FACTS)
    (section,) = table7.render(store, ("cora",), 3)
    assert row(section, "cora")[1] == "87 / 2.00 / 44"
    assert section.text.endswith("1 of 3.")


def test_other_methods_stand_beside_the_paper(store):
    """HOPE is printed with 0.302 at 10 % of cora's labels and AUC 0.548 there, in 27 seconds."""
    for seed, f1 in enumerate((0.2, 0.3)):
        key = {"task": "labels", "graph": "cora", "method": "HOPE", "seed": seed}
        scores = {"micro_f1_10": [f1, f1], "macro_f1_10": [0.1, 0.1]}
        store.write("baselines", key, {"scores": scores} | FACTS)
        key = {"task": "links", "graph": "cora", "method": "HOPE, as published", "seed": seed}
        store.write("baselines", key, {"scores": {"auc": [0.5]}} | FACTS)
    times = {"wall_seconds": [30.0], "cpu_seconds": [30.0]}
    store.write("baselines", {"task": "time", "graph": "cora", "method": "HOPE", "seed": 0}, times | FACTS)
    key = {"task": "time", "graph": "cora", "method": "NetMF", "seed": 0}
    store.write("baselines", key, {"refused": "too large", "wall_seconds": [], "cpu_seconds": []} | FACTS)
    standing, micro, _, links, time = baselines.render(store, ("cora",), (10,), seeds=2, splits=2)
    assert standing.text.startswith("0 of 18 cells")
    assert "micro-F1, HOPE, cora, 10 %" in standing.text
    hope = 1 + list(baselines.EVERY).index("HOPE")
    assert row(micro, "10 %")[hope] == "0.302 / 0.250 / -0.052"
    published = 1 + list(baselines.EVERY).index("HOPE, as published")
    assert row(links, "cora")[published] == "0.548 / 0.500 / -0.048"
    assert row(time, "cora")[hope] == "27 / 30.00"
    assert row(time, "cora")[1 + list(baselines.EVERY).index("NetMF")] == "22 / refused"
    assert "Slower than printed: HOPE on cora." in time.text


def test_summary_counts_and_lists_the_lowest():
    cells = [Cell("a", 0.5, 0.6), Cell("b", 0.5, 0.491), Cell("c", 0.5, 0.4), Cell("d", 0.5, None)]
    text = report.summary([Section("Table 9", "", cells), Section("Table 10", "", note="all as printed")])
    assert "| Table 9 | 4 | 3 | 67 % | -0.0030 | -0.100 |" in text
    assert "- all as printed" in text
    assert "- Table 9: c: 0.500 / 0.400 / -0.100" in text
    assert ": b:" not in text


def test_report_tells_commit_machine_and_command(store):
    put_scores(store, "KernelNE-Gauss", 0, [[0.6, 0.6], [0.8, 0.8]])
    text = report.report(store, [], "paper")
    assert "make paper`" in text
    assert "abc1234 (1)" in text
    assert "a machine (1)" in text
    assert "0.01 hours" in text


def test_finished_cell_is_not_run_again(store):
    runs = []

    def compute():
        runs.append(1)
        return {"value": len(runs)}

    for _ in range(2):
        store.fill("some", compute, graph="cora", seed=0)
    store.fill("some", compute, graph="cora", seed=1)
    assert len(runs) == 2
    found = store.read("some", graph="cora", seed=0)
    assert (found["graph"], found["seed"], found["value"]) == ("cora", 0, 1)
    assert {"commit", "machine", "seconds"} <= found.keys()


def test_failed_cell_leaves_nothing_and_lets_others_run(store, capsys):
    store.fill("some", lambda: 1 / 0, seed=0)
    store.fill("some", lambda: {"value": object()}, seed=1)
    store.fill("some", lambda: {"value": 1}, seed=2)
    assert [path.name for path in store.folder.rglob("*") if path.is_file()] == ["some.jsonl"]
    assert [result["seed"] for result in store.read_all("some")] == [2]
    assert store.failures == ["some/0", "some/1"]
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_table_has_one_line_a_cell_sorted_by_key(store):
    keys = [{"model": m, "seed": s} for m in ("b", "a") for s in (10, 9)] + [{"what": "aa"}]
    for key in [*keys, keys[0]]:
        store.write("some", key, {"value": sum(map(len, key))})
    lines = store.path("some").read_text().splitlines()
    assert lines[0] == '{"key": {"model": "a", "seed": 9}, "value": 9}'
    assert [list(json.loads(line)["key"].values()) for line in lines] == [
        ["a", 9], ["a", 10], ["aa"], ["b", 9], ["b", 10]
    ]  # fmt: skip
    assert store.read("some", seed=9, model="a") == {"model": "a", "seed": 9, "value": 9}
    assert store.read("some", model="a") is None


def test_an_incomplete_last_line_is_reported_and_run_again(store, capsys):
    for seed in range(3):
        store.write("some", {"seed": seed}, {"value": [seed, seed]})
    path = store.path("some")
    whole = path.read_text()
    path.write_text(whole[:-5])
    assert [result["seed"] for result in store.read_all("some")] == [0, 1]
    assert "last line is incomplete" in capsys.readouterr().err
    store.write("some", {"seed": 2}, {"value": [2, 2]})
    assert path.read_text() == whole
    path.write_text(whole.removesuffix("\n"))  # nothing is missing
    assert len(store.read_all("some")) == 3


@pytest.mark.parametrize(
    ("line", "told"), [("<<<<<<< ours", "line 2: not JSON"), ('{"key": {"seed": 0}, "value": 5}', "another")]
)
def test_a_damaged_table_is_refused_by_line(store, line, told):
    for seed in range(2):
        store.write("some", {"seed": seed}, {"value": seed})
    first, second = store.path("some").read_text().splitlines()
    store.path("some").write_text("\n".join([first, line, second, second]))
    with pytest.raises(SystemExit, match=told):
        store.read("some", seed=0)


def test_an_interrupted_write_leaves_the_table_as_it_was(store, monkeypatch):
    store.write("some", {"seed": 0}, {"value": 0})
    before = store.path("some").read_bytes()

    def stop(*_args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", stop)
        with pytest.raises(KeyboardInterrupt):
            store.write("some", {"seed": 1}, {"value": 1})
    assert store.path("some").read_bytes() == before
    assert len(list(store.path("some").parent.iterdir())) == 1


def test_runs_beside_each_other_lose_nothing(store):
    def run(name):
        mine = Store(store.folder)  # locks hold between descriptors, so threads are as good as processes
        for i in range(30):
            mine.write("some", {"run": name, "i": i}, {"value": i})

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(run, "abc"))
    assert len(store.read_all("some")) == 90


@pytest.mark.parametrize("path", sorted((FOLDER / "results").glob("*.jsonl")), ids=lambda path: path.stem)
def test_kept_tables_are_as_the_store_writes_them(path):
    table = common._load_table(path)
    lines = [json.dumps(record) + "\n" for record in sorted(table.values(), key=common._place)]
    assert path.read_text() == "".join(lines)
    assert len(lines) == path.read_text().count("\n")


def test_the_default_is_set_beside_the_best_rival_of_each_cell(store):
    low, high = [0.1] * 5, [0.5] * 5
    for method, micro, macro in (("MKernelNE()", high, low), ("NetMF", low, high), ("ProNE", low, low)):
        scaled = high if method == "NetMF" else low
        scores = {"raw_micro_f1": micro, "raw_macro_f1": macro}
        scores |= {"standardised_micro_f1": scaled, "standardised_macro_f1": scaled}
        store.write("rivals", {"graph": "karate", "method": method, "seed": 0}, scores)
    methods = ("MKernelNE()", "NetMF", "ProNE")
    (section,) = default_rivals.render(store, graphs=("karate", "wine"), methods=methods)
    assert "50% on check graphs" in str(section)
    assert "With all columns standardised it is 0% of the cells, and 50% if each rival" in str(section)
    *_, row = str(section).splitlines()
    assert row.startswith("| karate | check | 0.500 (0.100) |")
    assert row.endswith("| 50% | -0.400 |")
    assert default_rivals.render(store, graphs=("wine",), methods=methods) == []


def test_without_data_one_clear_line(monkeypatch):
    monkeypatch.delenv("KERNELNE_DATA", raising=False)
    common.load.cache_clear()
    with pytest.raises(SystemExit, match="KERNELNE_DATA"):
        common.load("cora")


def test_both_kinds_of_non_edges_leave_the_same_graph(monkeypatch, ring):
    monkeypatch.setattr(table6, "load", lambda name: (ring, None))
    left = [table6.split("ring", kind, 3).graph.fingerprint for kind in table6.NON_EDGES]
    assert left[0] == left[1]  # so that one embedding serves both


def test_a_soak_fails_if_anything_grows():
    growth = import_module("soak").growth
    names = ("threads", "python_threads", "open_files", "files")
    lines = [{"minute": i, "rss_mib": 300.0} | dict.fromkeys(names, 4) for i in range(40)]
    assert growth(lines) == []
    for name in names:
        assert growth([line | {name: 4 + line["minute"] // 25} for line in lines])
    assert growth([line | {"rss_mib": 300.0 + line["minute"]} for line in lines])
    assert growth([line | {"rss_mib": 300.0 if line["minute"] > 3 else 100.0} for line in lines]) == []


@pytest.mark.parametrize("folder", ["experiments", "benchmarks"])
def test_every_script_imports(folder):
    """What a script imports from the package is there; scripts of both folders share names."""
    names = {path.stem for path in FOLDER.with_name(folder).glob("*.py")} - {"explorer"}  # needs a browser
    code = """
import importlib, sys
from kernelne import MissingDependencyError
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except MissingDependencyError:
        pass
    except ModuleNotFoundError as error:  # of others, such as torch: not every machine has them
        if error.name.partition(".")[0] in ("kernelne", *sys.argv[1:]):
            raise
"""
    command = [sys.executable, "-c", code, *sorted(names)]
    done = subprocess.run(command, cwd=FOLDER.with_name(folder), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
