"""Where arrays lie, chosen: compiled loops may look at it, and must not give other numbers for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class SideBySide:
    """NumPy, except that the arrays it makes lie side by side in one buffer, in a random order.

    The order is of allocations, so a first run without a buffer has to count them.
    """

    def __init__(self, sizes: list[int] | None = None, order: NDArray[np.int64] | None = None) -> None:
        self.starts: dict[int, int] = {}
        self.buffer = np.zeros(sum(sizes or ()) + 64, np.uint8)
        at = -self.buffer.ctypes.data % 64
        for call in () if order is None or sizes is None else order:
            self.starts[call] = at
            at += sizes[call]
        self.sizes: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def zeros(self, shape: Any, dtype: Any = float) -> NDArray[Any]:
        array = np.zeros(shape, dtype)
        call, size = len(self.sizes), -(-array.nbytes // 16) * 16
        self.sizes.append(size)
        if call in self.starts and array.size:
            start = self.starts[call]
            array = self.buffer[start : start + array.nbytes].view(dtype).reshape(array.shape)
        return array

    empty = zeros

    def zeros_like(self, array: NDArray[Any]) -> NDArray[Any]:
        return self.zeros(array.shape, array.dtype)
