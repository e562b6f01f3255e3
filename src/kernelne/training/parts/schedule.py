"""The order of the blocks of a run in parts; it does not know where they run.

The walks are divided into episodes, an episode into P sub-episodes, and sub-episode s of episode e trains the
pairs with a center in part i and a context in part (i + s + e) mod P, for every i. So every pair of an
episode is trained on once, and each episode starts with other blocks than the one before. The coefficients of
the kernels are the same for all sub-episodes of a round: a part that is in memory is used by several of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.errors import ParameterError
from kernelne.training.config import TrainingConfig
from kernelne.walks.sample import start_node

#: Episodes of a run. With one, scores fall far below those of a run without parts. Graphs with fewer nodes
#: have more: their parts are quickly moved, and a row is met more often in an episode.
FEWEST_EPISODES, _MOST_EPISODES, _LARGE = 10, 80, 100_000

#: Sub-episodes of a round. At the beginning, while coefficients change much, each is a round of its own.
TOGETHER = 4

#: Largest number of rows of a part, and of steps between the two nodes of a pair: both share 32 bits.
ROW_BITS = 26
_MOST_STEPS = 2 ** (32 - ROW_BITS)


class Block(NamedTuple):
    """The pairs of one episode with a center in part `center` and a context in part `context`.

    number: different for all blocks of a run; random choices depend on it and on the seed alone.
    rates: learning rates at its first and after its last pair.
    """

    number: int
    center: int
    context: int
    rates: tuple[float, float]


class SubEpisode(NamedTuple):
    """Blocks that share no part. `walks`: those of the episode. `begin`, `end`: walks done, in proportion."""

    episode: int
    number: int
    walks: tuple[int, int]
    begin: int
    end: int
    blocks: tuple[Block, ...]


#: Sub-episodes of one episode that follow each other.
Round = tuple[SubEpisode, ...]


@dataclass(frozen=True)
class Schedule:
    """All sub-episodes of a run. Its position is a number of walks, as that of a run without parts is."""

    config: TrainingConfig
    n_nodes: int
    n_walks: int
    n_parts: int

    @cached_property
    def n_episodes(self) -> int:
        wanted = FEWEST_EPISODES * max(1, _LARGE // self.n_nodes)
        return max(1, min(wanted, _MOST_EPISODES, self.n_walks // self.n_parts))

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """(P + 1,) int64: part i holds places bounds[i] … bounds[i + 1] − 1."""
        return np.array([-(-i * self.n_nodes // self.n_parts) for i in range(self.n_parts + 1)], np.int64)

    @cached_property
    def _episodes(self) -> list[int]:
        return [self.n_walks * e // self.n_episodes for e in range(self.n_episodes + 1)]

    def position(self, step: int) -> int:
        """Walks done, in proportion, after this number of sub-episodes."""
        episode, number = divmod(step, self.n_parts)
        if episode >= self.n_episodes:
            return self.n_walks
        first, last = self._episodes[episode : episode + 2]
        return first + (last - first) * number // self.n_parts

    @property
    def n_steps(self) -> int:
        """Number of sub-episodes of the run."""
        return self.n_episodes * self.n_parts

    def step_at(self, walk: int) -> int:
        """The first sub-episode that has not been trained on after `walk` walks."""
        low, high = 0, self.n_steps
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.position(middle) < walk else (low, middle)
        return low

    def at(self, step: int) -> SubEpisode:
        """Return sub-episode number `step` of the run."""
        episode, number = divmod(step, self.n_parts)
        begin, end = self.position(step), self.position(step + 1)
        rates = tuple(self.config.learning_rate_at(walk, self.n_walks) for walk in (begin, end))
        blocks = tuple(
            Block(step * self.n_parts + i, i, (i + number + episode) % self.n_parts, rates)  # type: ignore[arg-type]
            for i in range(self.n_parts)
        )
        first, last = self._episodes[episode : episode + 2]
        return SubEpisode(episode, number, (first, last), begin, end, blocks)

    def rounds(self, begin: int = 0, until: int | None = None) -> Iterator[Round]:
        """Yield the rounds from `begin` walks on, to the first that ends at `until` walks or later."""
        step, last = self.step_at(begin), self.n_steps if until is None else self.step_at(until)
        while step < last:
            number = step % self.n_parts
            size = min(TOGETHER - number % TOGETHER, self.n_parts - number) if step >= TOGETHER else 1
            yield tuple(self.at(step + k) for k in range(size))
            step += size


def make_schedule(config: TrainingConfig, n_nodes: int, n_walks: int) -> Schedule:
    """Return the schedule of a run; raises a ParameterError if it cannot be divided into `config.parts`."""
    n_parts = config.parts or 1
    if n_parts > n_nodes:
        raise ParameterError("parts", n_parts, f"must be at most {n_nodes:,}, the number of nodes")
    if -(-n_nodes // n_parts) > 2**ROW_BITS:
        fewest = -(-n_nodes // 2**ROW_BITS)
        raise ParameterError("parts", n_parts, f"must be at least {fewest} for {n_nodes:,} nodes")
    if min(config.window, config.walk_length - 1) > _MOST_STEPS:
        raise ParameterError("window", config.window, f"must be at most {_MOST_STEPS} with parts")
    return Schedule(config, n_nodes, n_walks, n_parts)


def places_of_nodes(schedule: Schedule) -> NDArray[Any]:
    """Return the place of each node, int32 or int64 (n,): its part, drawn at random, and its row there.

    Parts are as equal as can be. Within a part nodes keep their order, so that tables in the order of the
    nodes are read and written front to back.
    """
    places = np.empty(schedule.n_nodes, np.int32 if schedule.n_nodes < 2**31 else np.int64)
    _fill_places(np.uint64(schedule.config.seed), schedule.bounds, places)
    return places


def nodes_of_part(places: NDArray[Any], bounds: NDArray[np.int64], part: int) -> NDArray[np.int64]:
    """Return the nodes of a part, ascending: those of its rows."""
    return np.flatnonzero((places >= bounds[part]) & (places < bounds[part + 1]))


@cached()
def _fill_places(seed: Any, bounds: Any, places: Any) -> None:
    n, n_parts = places.size, bounds.size - 1
    following = bounds.copy()
    for v in range(n):
        part = start_node(~seed, v, n) * n_parts // n
        places[v] = following[part]
        following[part] += 1
