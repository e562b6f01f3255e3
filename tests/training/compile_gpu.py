"""Compiles the GPU's kernels for sm_90, which takes no card, and prints what the tests look at, as JSON.

Run as a program: Triton either compiles or interprets in one process.
"""

from __future__ import annotations

import json
import sys
from itertools import product
from typing import Any

from kernelne.training.gpu import backend as gpu

#: What pointers point to; the types of all else stand in the kernels' signatures.
POINTERS = {
    "offsets": "*i64", "neighbours": "*i32", "thresholds": "*i32", "keep": "*i32", "other": "*i32",
    "rows": "*i32", "lengths": "*i32", "seeds": "*i64", "center": "*fp32", "context": "*fp32",
    "mixture": "*fp32", "all_sums": "*fp32", "sums": "*fp32", "coefficients": "*fp64", "record": "*fp64",
}  # fmt: skip


def _ptx(kernel: Any, constants: dict[str, Any], **options: Any) -> str:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = [parameter.name for parameter in kernel.params]
    types = {parameter.name: parameter.annotation_type for parameter in kernel.params} | POINTERS
    signature = {name: "constexpr" if name in constants else types[name] for name in names}
    # As at a launch: tensors lie on multiples of 16 bytes.
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names) if name in POINTERS}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=aligned)
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    return str(compiled.asm["ptx"])


def main() -> None:
    from oracle import config

    from kernelne.training.gpu.launch import shape as shape_of
    from kernelne.training.gpu.loop import train_walks
    from kernelne.training.gpu.mixture import end_block
    from kernelne.training.gpu.walks import sample_walks

    found = {}
    for weighted, second_order in product((False, True), repeat=2):
        constants = {"LENGTH": 10, "N_SHARED": 14, "BLOCK": gpu._SAMPLED_TOGETHER}
        constants |= {"WEIGHTED": weighted, "SECOND_ORDER": second_order}
        found[f"walks, weighted={weighted}, second_order={second_order}"] = _ptx(sample_walks, constants)
    found["coefficients"] = _ptx(end_block, {"N_KERNELS": 3, "LEARNED": True, "N_SUMS": 14})
    three = (("gaussian", 1.0), ("schoenberg", 2.0), ("inverse_multiquadric", 0.5))
    for name, changes, n in (
        ("one kernel", {}, 1000),
        ("mixture", {"kernels": three, "learn_coefficients": True}, 1000),
        ("soft window", {"window_decay": 0.5}, 1000),
        ("forward", {"forward": True}, 1000),
        ("long walks, huge tables", {"walk_length": 40, "shared_negatives": 40}, 2**25),
    ):
        settings = config(**({"dim": 128, "shared_negatives": 14} | changes))
        shape = shape_of(settings, n, on_gpu=True)
        options = {name: shape.pop(name) for name in list(shape) if name.islower()}
        found[name] = _ptx(train_walks, shape, **options)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
