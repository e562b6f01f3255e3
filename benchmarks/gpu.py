"""Training on one GPU: seconds, walks per second, share of the memory roofline, peak memory.

    python benchmarks/gpu.py [--cold] [--huge] [-o results.json]
    ncu -k regex:train_walks -s 3 -c 1 python benchmarks/gpu.py --profile KernelNE-Gauss

Times are from the graph on the GPU to the embedding on the host, after compilation, median of nine (of three
for a million nodes, one run for ten million). Needs only NumPy, SciPy, torch and Triton. KERNELNE_DATA is the
folder with the paper's graphs, for CiteSeer.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse
import torch
import triton

from generate import power_law
from kernelne.training.config import TrainingConfig
from kernelne.training.gpu import backend as gpu
from kernelne.training.state import TrainingState

#: The paper's settings.
PAPER: dict[str, Any] = {
    "dim": 128, "walks_per_node": 80, "walk_length": 10, "window": 10, "n_negative": 5,
    "shared_negatives": 14, "p": 1.0, "q": 1.0, "learning_rate": 0.025, "min_learning_rate": 1e-4,
    "l2": 0.01, "coef_l2": 0.02, "coef_spread": 1.5, "deterministic": False, "n_threads": 1, "seed": 0,
}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "KernelNE-Gauss": {"kernels": (("gaussian", 2.0),), "learn_coefficients": False},
    "KernelNE-Sch": {"kernels": (("schoenberg", 2.0),), "learn_coefficients": False},
    "MKernelNE-Gauss": {
        "kernels": tuple(("gaussian", s) for s in (1.0, 2.0, 3.0)),
        "learn_coefficients": True,
    },
    "MKernelNE-Sch": {
        "kernels": tuple(("schoenberg", s) for s in (1.0, 1.5, 2.0)),
        "learn_coefficients": True,
    },
}
#: Seconds in the paper's Table 7, one thread.
IN_PAPER = {"erdos_renyi 1e5": 3845}


def config(model: str, **changes: Any) -> TrainingConfig:
    return TrainingConfig(**(PAPER | MODELS[model] | changes))


def csr(edges: Any, n: int) -> Any:
    """Return a graph in the form used by training, from edges (m, 2)."""
    u, v = edges.T
    ones = np.ones(2 * len(u), np.int8)
    matrix = scipy.sparse.coo_array((ones, (np.r_[u, v], np.r_[v, u])), (n, n)).tocsr()
    matrix.sort_indices()
    offsets, neighbours = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    return SimpleNamespace(offsets=offsets, neighbours=neighbours, weights=None, n_nodes=n)


def erdos_renyi(n: int, p: float) -> Any:
    rng = np.random.default_rng(0)
    m = rng.binomial(n * (n - 1) // 2, p)
    codes = np.unique(rng.integers(n, size=(m, 2)) @ (n, 1))
    edges = np.column_stack([codes // n, codes % n])
    return csr(edges[edges[:, 0] < edges[:, 1]], n)


def power_law_on(device: Any, n: int, m: int) -> Any:
    """Return about m edges between n nodes, drawn on the device as in `generate.power_law`."""
    generator = torch.Generator(device).manual_seed(0)
    ranks = torch.randperm(n, device=device, generator=generator).double() + 1
    upto = torch.cumsum(ranks ** (-1.0 / 1.5), 0)
    draws = torch.rand(2, m, dtype=torch.float64, device=device, generator=generator) * upto[-1]
    ends = torch.searchsorted(upto, draws).clamp_(max=n - 1)
    keys = torch.unique(torch.cat([ends[0] * n + ends[1], ends[1] * n + ends[0]]))
    keys = keys[keys // n != keys % n]
    offsets = torch.zeros(n + 1, dtype=torch.int64, device=device)
    offsets[1:] = torch.cumsum(torch.bincount(keys // n, minlength=n), 0)
    neighbours = (keys % n).to(torch.int32)
    return SimpleNamespace(
        offsets=offsets.cpu().numpy(), neighbours=neighbours.cpu().numpy(), weights=None, n_nodes=n
    )


def citeseer() -> Any:
    import gzip

    with gzip.open(Path(os.environ["KERNELNE_DATA"]) / "citeseer.edges.gz") as lines:
        edges = np.loadtxt(lines, dtype=np.int64)
    return csr(edges, 3312)


def copy_bandwidth(device: Any) -> float:
    """Return the bytes per second, read and written, of a copy within the device memory."""
    source = torch.empty(2**30, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    return 2 * source.nbytes / median_seconds(lambda: target.copy_(source), 10)


def median_seconds(work: Any, repeats: int = 3) -> float:
    work()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def train(graph: Any, settings: TrainingConfig) -> TrainingState:
    """Run the whole training and copy its tables to the host."""
    prepared = gpu.prepare(graph, settings)
    return gpu.fetch(gpu.run(prepared, gpu.start(prepared)))


def roofline(graph: Any, device: Any, settings: TrainingConfig, bandwidth: float) -> dict[str, float]:
    """Time the training kernel alone: every row of a walk counts as read once and written once."""
    prepared = gpu.prepare(graph, settings, device)
    trainer = gpu.Runner(prepared, gpu.start(prepared))
    trainer.mixture[1] = 1.0 / len(settings.kernels)
    count = len(trainer.lengths)
    for block in range(3):  # vectors that have come apart, as in the middle of a run
        trainer.sample(block * count, count, trainer.noise)
        trainer.train(block * count, count)
    seconds = median_seconds(lambda: trainer.train(0, count), 9)
    rows = 2 * settings.walk_length + settings.shared_negatives
    moved = 2 * rows * settings.dim * 4 * count
    return {
        "walks_per_second": count / seconds,
        "bytes_per_second": moved / seconds,
        "share_of_copy": moved / seconds / bandwidth,
    }


def measure(name: str, graph: Any, device: Any, model: str, repeats: int, **changes: Any) -> dict[str, Any]:
    settings = config(model, **changes)
    on_card = gpu.to_device(graph, device)
    torch.cuda.reset_peak_memory_stats()
    seconds = median_seconds(lambda: train(on_card, settings), repeats)
    tables = 8 * graph.n_nodes * settings.dim
    arrays = graph.offsets.nbytes + graph.neighbours.nbytes
    return {
        "graph": name,
        "model": model,
        "nodes": graph.n_nodes,
        "edges": graph.neighbours.size // 2,
        "walks_per_node": settings.walks_per_node,
        "seconds": seconds,
        "paper_seconds": IN_PAPER.get(name) if model == "KernelNE-Gauss" else None,
        "walks_per_second": graph.n_nodes * settings.walks_per_node / seconds,
        "peak_bytes": torch.cuda.max_memory_allocated(),
        "allowed_bytes": 1.2 * (tables + arrays) + 500e6,
    }


def starts() -> dict[str, float]:
    """Measure the seconds until a new process has trained on a tiny graph, with and without compilation."""
    code = (
        "import time; start = time.perf_counter()\n"
        "from gpu import config, csr, train; import numpy as np\n"
        "train(csr(np.array([[0, 1], [1, 2], [2, 0]]), 3), config('MKernelNE-Gauss'))\n"
        "print(time.perf_counter() - start)"
    )
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"TRITON_CACHE_DIR": cache}
        times = [
            subprocess.run(
                [sys.executable, "-c", code], env=environment, cwd=Path(__file__).parent, check=True,
                stdout=subprocess.PIPE, text=True,
            ).stdout
            for _ in range(2)
        ]  # fmt: skip
    return {"cold_start_seconds": float(times[0]), "warm_start_seconds": float(times[1])}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cold", action="store_true", help="also measure the first start, with compilation")
    parser.add_argument("--huge", action="store_true", help="also 10 M nodes, 100 M edges")
    parser.add_argument(
        "--profile", metavar="MODEL", choices=MODELS, help="only train, for use with a profiler"
    )
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    device = gpu.find_device()
    large = csr(power_law(10**6, 10.0)[0], 10**6)
    if args.profile:
        roofline(large, device, config(args.profile), 1.0)
        return
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout
    bandwidth = copy_bandwidth(device)
    result: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "card": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "commit": os.environ.get("COMMIT", commit.strip()),
        "copy_bytes_per_second": bandwidth,
        "runs": [],
    }

    def run(*arguments: Any, **changes: Any) -> None:
        row = measure(*arguments, **changes)
        result["runs"].append(row)
        print(
            f"{row['graph']:18} {row['model']:16} {row['seconds']:7.3f} s "
            f"{row['walks_per_second'] / 1e6:6.1f} M walks/s, peak {row['peak_bytes'] / 1e9:.2f} GB of "
            f"{row['allowed_bytes'] / 1e9:.2f} allowed",
            flush=True,
        )

    random = erdos_renyi(10**5, 1e-4)
    for model in MODELS:
        if "KERNELNE_DATA" in os.environ:
            run("citeseer", citeseer(), device, model, 9)
        run("erdos_renyi 1e5", random, device, model, 9)
        run("power law 1e6", large, device, model, 3)
        rates = roofline(large, device, config(model), bandwidth)
        result["runs"][-1]["training_kernel"] = rates
        print(
            f"  training kernel: {rates['walks_per_second'] / 1e6:.1f} M walks/s, "
            f"{rates['bytes_per_second'] / 1e12:.2f} TB/s, {rates['share_of_copy']:.0%} of a copy's",
            flush=True,
        )
    if args.huge:
        huge = power_law_on(device, 10**7, 10**8)
        run("power law 1e7", huge, device, "KernelNE-Gauss", 1, walks_per_node=10)
    if args.cold:
        result |= starts()
        print({name: round(result[name], 1) for name in ("cold_start_seconds", "warm_start_seconds")})
    if args.output:
        args.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
