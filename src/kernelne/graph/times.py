"""When edges happened: numbers or dates, weights that fall with age, and arcs in the order of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelne._common.checks import check_duration
from kernelne.errors import InputError, ParameterError, warn

_OLDEST = 60  # half-lives: an older edge weighs no less, since a weight of zero would drop it
_FADED = 20  # half-lives after which an edge hardly counts
#: Unix times of 1973 to 2286 in seconds, milliseconds (from 1976), microseconds and nanoseconds.
_UNIX = (((1e8, 1e10), 1.0), ((2.2e11, 1e13), 1e-3), ((1e14, 1e16), 1e-6), ((1e17, 1e19), 1e-9))
#: Numbers that are dates: 20240131, 2024013112, 202401311200, 20240131120000; the year, and the digits after.
_YEARS, _DIGITS = (1900, 2100), (4, 6, 8, 10)


class TimedArcs(NamedTuple):
    """The arcs of a graph in the order of their times, repeated ones included.

    Arcs of row i are those from offsets[i] to offsets[i + 1] - 1, the oldest first; an undirected edge is in
    the rows of both its nodes. totals: sums of the weights of a row up to each arc; empty without weights.
    """

    offsets: NDArray[np.int64]  # (n + 1,)
    neighbours: NDArray[Any]  # (m,) rows
    times: NDArray[np.float64]  # (m,)
    totals: NDArray[np.float64]  # (m,)


def timed_arcs(
    codes: Sequence[NDArray[Any]],
    times: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    n: int,
    directed: bool,
    drop_self_loops: bool,
) -> TimedArcs:
    """Sort edges between rows, `codes` = [sources, targets], by source and time."""
    kept = np.ones(len(times), bool) if weights is None else weights > 0
    if drop_self_loops:
        kept &= codes[0] != codes[1]
    sources, targets, when = codes[0][kept], codes[1][kept], times[kept]
    values = None if weights is None else weights[kept]
    if not directed:
        other = sources != targets  # a self-loop is one arc
        sources, targets = (
            np.concatenate([sources, targets[other]]),
            np.concatenate([targets, sources[other]]),
        )
        when = np.concatenate([when, when[other]])
        values = None if values is None else np.concatenate([values, values[other]])
    order = np.lexsort((when, sources))
    values = None if values is None else values[order]
    return _rows_of_arcs(sources[order], targets[order], when[order], values, n)


def _rows_of_arcs(
    sources: NDArray[Any],
    targets: NDArray[Any],
    times: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    n: int,
) -> TimedArcs:
    """Return arcs that are sorted by source and time."""
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=n), out=offsets[1:])
    totals = np.empty(0)
    if weights is not None:
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        totals = sums[1:] - np.repeat(sums[offsets[:-1]], np.diff(offsets))
    return TimedArcs(offsets, targets, times, totals)


def without_pairs(arcs: TimedArcs, left_out: Callable[[NDArray[Any], NDArray[Any]], Any]) -> TimedArcs:
    """Return the arcs for whose sources and targets `left_out` is false."""
    n = len(arcs.offsets) - 1
    sources = np.repeat(np.arange(n), np.diff(arcs.offsets))
    keep = ~left_out(sources, arcs.neighbours)
    weights = None
    if arcs.totals.size:
        first = np.zeros(len(sources), bool)
        first[arcs.offsets[:-1][np.diff(arcs.offsets) > 0]] = True
        weights = np.where(first, arcs.totals, np.diff(arcs.totals, prepend=0.0))[keep]
    return _rows_of_arcs(sources[keep], arcs.neighbours[keep], arcs.times[keep], weights, n)


def timed(
    weights: NDArray[np.float64] | None, values: Any, name: Any, half_life: Any
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Return weights and times: with a half-life, weights that fall with age, and no times."""
    if half_life is None:
        return weights, _time_values(values, name)[0]
    return aged(weights, values, name, half_life), None


def _time_values(values: Any, name: Any) -> tuple[NDArray[np.float64], bool]:
    """Return times as (m,) float64, and whether they are dates, which are in seconds since 1970."""
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        streams = hasattr(values, "__arrow_c_stream__")
        values = pa.chunked_array(values) if streams else pa.array(np.asarray(values))
    if values.null_count:
        row = int(np.argmax(np.asarray(values.is_null()))) + 1
        raise InputError(f"the column {name!r}: the time of row {row:,} is missing (null)")
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = _parsed(values, name)
    kind = values.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        moments = values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        return np.asarray(moments, np.float64) / 1e6, True
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise InputError(f"the column {name!r} holds {kind}, not times")
    times = np.asarray(values.cast(pa.float64(), safe=False), np.float64)
    bad = np.flatnonzero(~np.isfinite(times))
    if len(bad):
        raise InputError(f"the column {name!r}: the time of row {bad[0] + 1:,} is {times[bad[0]]}")
    moments = _written_dates(times)
    return (times, False) if moments is None else (moments, True)


def _written_dates(times: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return numbers such as 20240131 as seconds since 1970, if all are such dates; else None."""
    if not len(times) or (times != np.floor(times)).any() or times.min() <= 0 or times.max() > 2**53:
        return None
    for digits in _DIGITS:
        years = times // 10**digits
        if years.min() < _YEARS[0] or years.max() > _YEARS[1]:
            continue
        parts = [(times // 10 ** (digits - 2 - k) % 100).astype(np.int64) for k in range(0, digits, 2)]
        parts += [np.zeros(len(times), np.int64)] * (5 - len(parts))
        month, day, *clock = parts
        months = (years.astype(np.int64) - 1970) * 12 + month - 1
        first = months.astype("datetime64[M]").astype("datetime64[D]")
        moved = first + (day - 1).astype("timedelta64[D]")
        same = moved.astype("datetime64[M]").astype(np.int64) == months
        good = (month >= 1) & (month <= 12) & (day >= 1) & same
        if (good & (clock[0] < 24) & (clock[1] < 60) & (clock[2] < 60)).all():
            seconds = clock[0] * 3600 + clock[1] * 60 + clock[2]
            return np.asarray(moved.astype("datetime64[s]").astype(np.float64) + seconds)
    return None


def _parsed(texts: Any, name: Any) -> Any:
    """Parse texts as numbers, or all of them as dates, 2024-01-31 or 2024-01-31T12:00:00."""
    for kind in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return texts.cast(kind)
        except pa.ArrowInvalid as error:
            reason = str(error)
    told = "expected numbers, or dates such as 2024-01-31 or 2024-01-31T12:00:00"
    raise InputError(f"the column {name!r}: {told} ({reason.partition(' as a scalar')[0]})")


def aged(weights: NDArray[np.float64] | None, values: Any, name: Any, half_life: Any) -> NDArray[np.float64]:
    """Return weights that halve with every `half_life` between an edge and the newest one.

    `values` are the times, the column `name`. A half-life with a unit applies to dates and to Unix times.
    """
    span = check_duration("half_life", half_life, "the unit of the times")
    times, dates = _time_values(values, name)
    if not len(times):
        return times
    has_unit = isinstance(half_life, str) and half_life.strip()[-1:].isalpha()
    if dates and not has_unit:
        told = f"the column {name!r} holds dates, so give a unit (s, min, h, d, w, y), such as {half_life}d"
        raise ParameterError("half_life", half_life, told)
    scale = 1.0 if dates or not has_unit else _seconds(times, name, half_life)
    newest = float(times.max())
    ages = (newest - times) * (scale / span)
    n_faded = int(np.count_nonzero(ages > _FADED))
    if 2 * n_faded > len(times):
        shown = np.datetime64(int(newest * scale), "s") if has_unit else f"{newest:g}"
        warn(
            f"{n_faded:,} of {len(times):,} edges are more than {_FADED} half-lives older than the newest "
            f"and hardly count; the newest is {shown}: is one time wrong, or the half-life too short?"
        )
    factors: NDArray[np.float64] = np.exp2(-np.minimum(ages, _OLDEST))
    return factors if weights is None else weights * factors


def _seconds(times: NDArray[np.float64], name: Any, half_life: Any) -> float:
    """Return the length in seconds of the unit of Unix times; raises ParameterError for other numbers."""
    least, most = float(times.min()), float(times.max())
    for (low, high), unit in _UNIX:
        if low <= least and most < high:
            return unit
    raise ParameterError(
        "half_life",
        half_life,
        f"the column {name!r} holds numbers from {least:.12g} to {most:.12g}, which are no Unix times: give "
        "the half-life as a number in the unit of the column, or dates such as 2024-01-31",
    )
