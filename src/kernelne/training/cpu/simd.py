"""Small matrix products on vector registers, for the training loop.

Numba cannot tell LLVM that arrays do not alias, and LLVM's vectoriser does not block loops over registers, so
the three products of a training step are written here as LLVM vector code: a tile of results stays in
registers during the loop over the inner dimension. The package is still pure Python: Numba compiles the IR.

Matrices are C-contiguous float32. Scratch matrices have rows padded to whole registers or tiles.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic


def register_width(triple: str, cpu: str, features: str) -> int:
    """Number of float32 lanes of this CPU's vector registers, read from LLVM's code for adding 16 numbers."""
    module = llvmlite.binding.parse_assembly(
        "define <16 x float> @f(<16 x float> %a, <16 x float> %b) {\n"
        "%c = fadd <16 x float> %a, %b\nret <16 x float> %c\n}"
    )
    target = llvmlite.binding.Target.from_triple(triple)
    code = target.create_target_machine(cpu=cpu, features=features).emit_assembly(module)
    return 16 if "%zmm" in code else 8 if "%ymm" in code else 4


#: The target that Numba compiles for: this CPU, unless environment variables of Numba name another.
_TARGET = cpu_target.target_context.codegen().magic_tuple()
#: Number of float32 lanes of a vector register.
WIDTH = register_width(*_TARGET)
#: True with 32 vector registers (AVX-512, NEON), False with the 16 of AVX and SSE.
_WIDE = WIDTH == 16 or not _TARGET[0].startswith(("x86", "i386", "i686"))
#: A tile of `distances`: TILE_ROWS × TILE_COLUMNS = WIDTH inner products at a time.
TILE_ROWS = 2
TILE_COLUMNS = WIDTH // TILE_ROWS

#: Number of float32 values in a cache line.
_LINE = 16

_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, WIDTH)
_INT = ir.IntType(64)


def _index(value: int) -> ir.Constant:
    return ir.Constant(_INT, value)


def _data(context: Any, builder: Any, array_type: Any, value: Any) -> Any:
    return context.make_array(array_type)(context, builder, value).data


def _row_length(context: Any, builder: Any, array_type: Any, value: Any) -> Any:
    shape = context.make_array(array_type)(context, builder, value).shape
    return cgutils.unpack_tuple(builder, shape)[1]


def _load(builder: Any, pointer: Any) -> Any:
    return builder.load(builder.bitcast(pointer, _VECTOR.as_pointer()), align=4)


def _store(builder: Any, value: Any, pointer: Any, kind: ir.VectorType = _VECTOR) -> None:
    builder.store(value, builder.bitcast(pointer, kind.as_pointer()), align=4)


def _splat(builder: Any, scalar: Any, kind: ir.VectorType = _VECTOR) -> Any:
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    return _shuffle(builder, first, first, [0] * kind.count)


def _shuffle(builder: Any, a: Any, b: Any, lanes: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes)
    return builder.shuffle_vector(a, b, mask)


def _fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{WIDTH}f32")
    return builder.call(function, [a, b, c])


def _sum_each(builder: Any, vectors: list[Any]) -> Any:
    """WIDTH vectors → one vector whose lane x is the sum of the lanes of vectors[x]."""
    stride = WIDTH // 2
    while stride:
        lanes = range(WIDTH)
        keep = [x if not x & stride else WIDTH + x for x in lanes]
        swap = [x ^ stride if not x & stride else WIDTH + (x ^ stride) for x in lanes]
        vectors = [
            builder.fadd(_shuffle(builder, a, b, keep), _shuffle(builder, a, b, swap))
            for a, b in zip(vectors[:stride], vectors[stride:], strict=True)
        ]
        stride //= 2
    return vectors[0]


def _sum(builder: Any, vector: Any) -> Any:
    """The sum of all lanes."""
    stride = WIDTH // 2
    while stride:
        vector = builder.fadd(vector, _shuffle(builder, vector, vector, [x ^ stride for x in range(WIDTH)]))
        stride //= 2
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


def _zero(builder: Any) -> Any:
    """A register initialised with zero (a stack slot that LLVM turns into a register)."""
    slot = cgutils.alloca_once(builder, _VECTOR)
    builder.store(ir.Constant(_VECTOR, [0.0] * WIDTH), slot)
    return slot


def _add_lanes(builder: Any, change: Any, place: Any, limit: Any) -> None:
    """place[x] += change[x] for lanes x < limit: the end of a row whose length is no multiple of WIDTH."""
    spilled = cgutils.alloca_once_value(builder, change)
    lanes = builder.bitcast(spilled, _FLOAT.as_pointer())
    count = builder.select(builder.icmp_signed("<", limit, _index(WIDTH)), limit, _index(WIDTH))
    with cgutils.for_range(builder, count) as loop:
        old = builder.gep(place, [loop.index])
        builder.store(builder.fadd(builder.load(old), builder.load(builder.gep(lanes, [loop.index]))), old)


@intrinsic
def gather_row(typingctx: Any, table: Any, row: Any, out: Any, i: Any) -> Any:
    """out[i] = table[row]; returns the squared norm of the row."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        dim = _row_length(context, builder, kinds[0], args[0])
        source = builder.gep(_data(context, builder, kinds[0], args[0]), [builder.mul(args[1], dim)])
        length = _row_length(context, builder, kinds[2], args[2])
        target = builder.gep(_data(context, builder, kinds[2], args[2]), [builder.mul(args[3], length)])
        total = _zero(builder)
        whole = builder.mul(builder.udiv(dim, _index(WIDTH)), _index(WIDTH))
        with cgutils.for_range_slice(builder, _index(0), whole, _index(WIDTH), _INT) as (at, _):
            x = _load(builder, builder.gep(source, [at]))
            _store(builder, x, builder.gep(target, [at]))
            builder.store(_fma(builder, x, x, builder.load(total)), total)
        norm = cgutils.alloca_once_value(builder, _sum(builder, builder.load(total)))
        with cgutils.for_range_slice(builder, whole, dim, _index(1), _INT) as (at, _):
            x = builder.load(builder.gep(source, [at]))
            builder.store(x, builder.gep(target, [at]))
            builder.store(builder.fadd(builder.load(norm), builder.fmul(x, x)), norm)
        return builder.load(norm)

    return types.float32(table, types.int64, out, types.int64), codegen


@intrinsic
def distances(typingctx: Any, A: Any, a_norms: Any, i: Any, B: Any, b_norms: Any, j: Any, out: Any) -> Any:
    """out[i+r, j+s] = ‖A[i+r] − B[j+s]‖² for r < TILE_ROWS, s < TILE_COLUMNS, from dots and norms."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        a_data, a_norm, b_data, b_norm, out_data = (
            _data(context, builder, kinds[k], args[k]) for k in (0, 1, 3, 4, 6)
        )
        i, j = args[2], args[5]
        length = _row_length(context, builder, kinds[0], args[0])
        out_length = _row_length(context, builder, kinds[6], args[6])
        a_at = [builder.add(i, _index(r)) for r in range(TILE_ROWS)]
        a_rows = [builder.gep(a_data, [builder.mul(at, length)]) for at in a_at]
        b_rows = [
            builder.gep(b_data, [builder.mul(builder.add(j, _index(s)), length)]) for s in range(TILE_COLUMNS)
        ]
        sums = [[_zero(builder) for _ in range(TILE_COLUMNS)] for _ in range(TILE_ROWS)]
        with cgutils.for_range_slice(builder, _index(0), length, _index(WIDTH), _INT) as (at, _):
            a = [_load(builder, builder.gep(row, [at])) for row in a_rows]
            for s, row in enumerate(b_rows):
                b = _load(builder, builder.gep(row, [at]))
                for r, totals in enumerate(sums):
                    builder.store(_fma(builder, a[r], b, builder.load(totals[s])), totals[s])
        tile = _sum_each(builder, [builder.load(total) for totals in sums for total in totals])
        half = ir.VectorType(_FLOAT, TILE_COLUMNS)
        b = builder.load(builder.bitcast(builder.gep(b_norm, [j]), half.as_pointer()), align=4)
        zero, minus_two = (ir.Constant(half, [x] * TILE_COLUMNS) for x in (0.0, -2.0))
        for r, at in enumerate(a_at):
            dots = _shuffle(builder, tile, tile, list(range(r * TILE_COLUMNS, (r + 1) * TILE_COLUMNS)))
            a = _splat(builder, builder.load(builder.gep(a_norm, [at])), half)
            squares = builder.fadd(builder.fadd(a, b), builder.fmul(minus_two, dots))
            # Rounding can give a tiny negative number. NaN is not less than zero and stays, to be detected.
            negative = builder.fcmp_ordered("<", squares, zero)
            start = builder.add(builder.mul(at, out_length), j)
            _store(builder, builder.select(negative, zero, squares), builder.gep(out_data, [start]), half)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(A, a_norms, i64, B, b_norms, i64, out), codegen


def _make_add_products(n_vectors: int) -> Any:
    """Return the intrinsic for a tile of `add_products` of TILE_ROWS × n_vectors registers."""

    @intrinsic
    def add_tile(
        typingctx: Any, table: Any, rows: Any, i: Any, at: Any, weights: Any, step: Any, begin: Any,
        gap_at: Any, gap: Any, n: Any, B: Any, own: Any, shrink: Any,
    ) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kinds = signature.args
            table_data, rows_data, weights_data, b_data, own_data, shrink_data = (
                _data(context, builder, kinds[k], args[k]) for k in (0, 1, 4, 10, 11, 12)
            )
            first, at, step = args[2], args[3], args[5]
            begin, gap_at, gap, n = args[6:10]
            dim = _row_length(context, builder, kinds[0], args[0])
            length = _row_length(context, builder, kinds[10], args[10])
            weights_length = _row_length(context, builder, kinds[4], args[4])
            # Rows of `weights` belong to rows of the result (step 1) or to rows of B (step = row length).
            by_row = builder.icmp_signed("==", step, _index(1))
            row_step = builder.select(by_row, weights_length, _index(1))
            positions = [builder.add(first, _index(r)) for r in range(TILE_ROWS)]
            starts = [builder.gep(weights_data, [builder.mul(at_row, row_step)]) for at_row in positions]
            sums = [[_zero(builder) for _ in range(n_vectors)] for _ in range(TILE_ROWS)]
            pulls = [_zero(builder) for _ in range(TILE_ROWS)]
            with cgutils.for_range(builder, n) as loop:
                j = builder.add(begin, loop.index)
                beyond = builder.icmp_signed(">=", j, gap_at)
                j = builder.select(beyond, builder.add(j, gap), j)
                row = builder.gep(b_data, [builder.add(builder.mul(j, length), at)])
                b = [_load(builder, builder.gep(row, [_index(v * WIDTH)])) for v in range(n_vectors)]
                offset = builder.mul(j, step)
                for start, totals, pull in zip(starts, sums, pulls, strict=True):
                    weight = _splat(builder, builder.load(builder.gep(start, [offset])))
                    builder.store(builder.fadd(builder.load(pull), weight), pull)
                    for total, vector in zip(totals, b, strict=True):
                        builder.store(_fma(builder, weight, vector, builder.load(total)), total)
            for position, totals, weight_sum in zip(positions, sums, pulls, strict=True):
                row_number = builder.load(builder.gep(rows_data, [position]))
                target = builder.gep(table_data, [builder.add(builder.mul(row_number, dim), at)])
                mine = builder.gep(own_data, [builder.add(builder.mul(position, length), at)])
                pull = _splat(builder, builder.load(builder.gep(shrink_data, [position])))
                pull = builder.fadd(pull, builder.load(weight_sum))
                for v, total in enumerate(totals):
                    place = builder.gep(target, [_index(v * WIDTH)])
                    old = _load(builder, builder.gep(mine, [_index(v * WIDTH)]))
                    change = builder.fsub(builder.load(total), builder.fmul(pull, old))
                    if n_vectors > 1:
                        _store(builder, builder.fadd(_load(builder, place), change), place)
                    else:
                        _add_lanes(builder, change, place, builder.sub(dim, at))
            return context.get_dummy_value()

        i64 = types.int64
        whole = (i64, i64, i64, i64, i64)
        return types.void(table, rows, i64, i64, weights, *whole, B, own, shrink), codegen

    return add_tile


_add_1, _add_2, _add_4, _add_8 = (_make_add_products(n) for n in (1, 2, 4, 8))


def add_products(
    table: Any, rows: Any, count: Any, weights: Any, step: Any, n: Any, near: Any, window: Any, B: Any,
    own: Any, shrink: Any,
) -> None:  # fmt: skip
    """table[rows[i]] += Σ_j w(i, j) · (B[j] − own[i]) − shrink[i] · own[i] for i < count, j < n.

    w(i, j) is weights[i, j] if step = 1, weights[j, i] if step is the row length of `weights`. `rows` must be
    filled up to the next multiple of TILE_ROWS, with zero weights and shrink for the surplus. If both i and j
    are below `near` and more than `window` apart, the weight is zero and the pair is skipped.

    This is plain Python, which the loop compiles with the options of its other parts.
    """
    dim = table.shape[1]
    for i in range(0, count, TILE_ROWS):
        begin, gap_at, gap = 0, n, 0
        if i + TILE_ROWS <= near:
            begin, gap_at = max(0, i - window), min(near, i + TILE_ROWS + window)
            gap = near - gap_at
        left = n - begin - gap
        at = 0
        while _WIDE and dim - at >= 8 * WIDTH:
            _add_8(table, rows, i, at, weights, step, begin, gap_at, gap, left, B, own, shrink)
            at += 8 * WIDTH
        while dim - at >= 4 * WIDTH:
            _add_4(table, rows, i, at, weights, step, begin, gap_at, gap, left, B, own, shrink)
            at += 4 * WIDTH
        if dim - at >= 2 * WIDTH:
            _add_2(table, rows, i, at, weights, step, begin, gap_at, gap, left, B, own, shrink)
            at += 2 * WIDTH
        while at < dim:
            _add_1(table, rows, i, at, weights, step, begin, gap_at, gap, left, B, own, shrink)
            at += WIDTH


def _make_add_pairs(n_vectors: int) -> Any:
    """Return the intrinsic for columns at … at + n_vectors · WIDTH of `add_pairs`."""

    @intrinsic
    def add_columns(
        typingctx: Any, center: Any, row: Any, own: Any, i: Any, context: Any, rows: Any, begin: Any,
        end: Any, pulls: Any, shrink: Any, B: Any, at: Any,
    ) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kinds = signature.args
            center_data, own_data, context_data, rows_data, pulls_data, shrink_data, b_data = (
                _data(context, builder, kinds[k], args[k]) for k in (0, 2, 4, 5, 8, 9, 10)
            )
            dim = _row_length(context, builder, kinds[0], args[0])
            length = _row_length(context, builder, kinds[10], args[10])
            begin, end, at = args[6], args[7], args[11]
            mine = builder.gep(own_data, [builder.add(builder.mul(args[3], length), at)])
            a = [_load(builder, builder.gep(mine, [_index(v * WIDTH)])) for v in range(n_vectors)]
            totals = [_zero(builder) for _ in range(n_vectors)]

            def add(row: Any, data: Any, changes: list[Any]) -> None:
                target = builder.gep(data, [builder.add(builder.mul(row, dim), at)])
                for v, change in enumerate(changes):
                    place = builder.gep(target, [_index(v * WIDTH)])
                    if n_vectors > 1:
                        _store(builder, builder.fadd(_load(builder, place), change), place)
                    else:
                        _add_lanes(builder, change, place, builder.sub(dim, at))

            with cgutils.for_range_slice(builder, begin, end, _index(1), _INT) as (k, _):
                source = builder.gep(b_data, [builder.add(builder.mul(k, length), at)])
                pull = _splat(builder, builder.load(builder.gep(pulls_data, [k])))
                decay = _splat(builder, builder.load(builder.gep(shrink_data, [k])))
                changes = []
                for v, total in enumerate(totals):
                    b = _load(builder, builder.gep(source, [_index(v * WIDTH)]))
                    change = builder.fmul(pull, builder.fsub(a[v], b))
                    builder.store(builder.fsub(builder.load(total), change), total)
                    changes.append(builder.fsub(change, builder.fmul(decay, b)))
                add(builder.load(builder.gep(rows_data, [k])), context_data, changes)
            add(args[1], center_data, [builder.load(total) for total in totals])
            return context.get_dummy_value()

        i64 = types.int64
        return types.void(center, i64, own, i64, context, rows, i64, i64, pulls, shrink, B, i64), codegen

    return add_columns


_pairs_1, _pairs_2, _pairs_4, _pairs_8 = (_make_add_pairs(n) for n in (1, 2, 4, 8))


def add_pairs(
    center: Any, row: Any, own: Any, i: Any, context: Any, rows: Any, begin: Any, end: Any, pulls: Any,
    shrink: Any, B: Any,
) -> None:  # fmt: skip
    """Add the steps of some pairs of one center: for begin ≤ k < end, with p = pulls[k] · (B[k] − own[i]),

    center[row] += p and context[rows[k]] −= p + shrink[k] · B[k]. Plain Python, as `add_products`.
    """
    dim, at = center.shape[1], 0
    while _WIDE and dim - at >= 8 * WIDTH:
        _pairs_8(center, row, own, i, context, rows, begin, end, pulls, shrink, B, at)
        at += 8 * WIDTH
    while dim - at >= 4 * WIDTH:
        _pairs_4(center, row, own, i, context, rows, begin, end, pulls, shrink, B, at)
        at += 4 * WIDTH
    if dim - at >= 2 * WIDTH:
        _pairs_2(center, row, own, i, context, rows, begin, end, pulls, shrink, B, at)
        at += 2 * WIDTH
    while at < dim:
        _pairs_1(center, row, own, i, context, rows, begin, end, pulls, shrink, B, at)
        at += WIDTH


def _make_prefetch(write: int) -> Any:
    """Return the intrinsic that prefetches a row to be written (1) or only read (0)."""

    @intrinsic
    def prefetch(typingctx: Any, table: Any, row: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = _data(context, builder, signature.args[0], args[0])
            dim = _row_length(context, builder, signature.args[0], args[0])
            start = builder.gep(data, [builder.mul(args[1], dim)])
            byte, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            options = [ir.Constant(i32, x) for x in (write, 3, 1)]  # to stay in the cache, which is of data
            with cgutils.for_range_slice(builder, _index(0), dim, _index(_LINE), _INT) as (at, _):
                builder.call(function, [builder.bitcast(builder.gep(start, [at]), byte), *options])
            return context.get_dummy_value()

        return types.void(table, types.int64), codegen

    return prefetch


#: Prefetch a row of a table into the cache: to be written, so that no other core keeps it, or to be read, so
#: that others may.
prefetch_row, prefetch_row_to_read = _make_prefetch(1), _make_prefetch(0)
