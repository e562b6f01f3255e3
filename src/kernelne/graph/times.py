"""When edges happened: numbers or dates, and weights that fall with age."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelne._checks import check_duration
from kernelne.errors import InputError

_OLDEST = 60  # half-lives: an older edge weighs no less, since a weight of zero would drop it


def time_values(values: Any, name: Any) -> NDArray[np.float64]:
    """Return a column of times as (m,) float64: numbers as they are, dates in seconds since 1970."""
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        streams = hasattr(values, "__arrow_c_stream__")
        values = pa.chunked_array(values) if streams else pa.array(np.asarray(values))
    if values.null_count:
        raise InputError(f"the column {name!r}: a time is missing (null)")
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = _parsed(values, name)
    kind = values.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        moments = values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        return np.asarray(moments, np.float64) / 1e6
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise InputError(f"the column {name!r} holds {kind}, not times")
    times = np.asarray(values.cast(pa.float64(), safe=False), np.float64)
    if not np.isfinite(times).all():
        raise InputError(f"the column {name!r}: a time is {times[~np.isfinite(times)][0]}")
    return times


def _parsed(texts: Any, name: Any) -> Any:
    """Parse texts as numbers, or all of them as dates, 2024-01-31 or 2024-01-31T12:00:00."""
    for kind in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return texts.cast(kind)
        except pa.ArrowInvalid as error:
            reason = str(error)
    told = "expected numbers, or dates such as 2024-01-31 or 2024-01-31T12:00:00"
    raise InputError(f"the column {name!r}: {told} ({reason.partition(' as a scalar')[0]})")


def aged(
    weights: NDArray[np.float64] | None, times: NDArray[np.float64], half_life: Any
) -> NDArray[np.float64]:
    """Return weights that halve with every `half_life` between an edge and the newest one."""
    unit = check_duration("half_life", half_life, "the unit of the times")
    ages = (times.max() - times) / unit if len(times) else times
    factors: NDArray[np.float64] = np.exp2(-np.minimum(ages, _OLDEST))
    return factors if weights is None else weights * factors
