"""Generate random graphs such as `planted:n=1000,k=4,p_in=0.1,p_out=0.01,seed=0`, in O(edges) time.

The same parameters give the same graph. Nodes are 0..n-1, including isolated ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne.errors import ParameterError
from kernelne.graph import Graph
from kernelne.io.labels import Labels

_Ints = NDArray[np.int64]
_LARGEST = 500_000_000  # nodes: sums of pair numbers fit int64
_ROUNDS = 20  # of rewiring; pairs still wrong after them are dropped
_PROBABILITY = "must be a number from 0 to 1"


def erdos_renyi(n: int = 1000, p: float = 0.01, seed: int = 0) -> tuple[Graph, None]:
    """Generate G(n, p): each pair of nodes is an edge with probability p, independently; no labels."""
    _check_common(n, seed)
    _check("p", p, 0 <= p <= 1, _PROBABILITY)
    rng = np.random.default_rng(seed)
    return _graph(n, *_pair_at(_chosen(n * (n - 1) // 2, p, rng))), None


def planted(
    n: int = 1000, k: int = 4, p_in: float = 0.05, p_out: float = 0.005, seed: int = 0
) -> tuple[Graph, Labels]:
    """Generate a planted partition: k groups of n/k nodes, edge probability p_in within, p_out between them.

    Groups are ranges of node numbers, the first n mod k of them one node larger; labels are group numbers.
    """
    _check_common(n, seed)
    _check("k", k, 1 <= k <= n, f"must be a whole number from 1 to n={n}")
    _check("p_in", p_in, 0 <= p_in <= 1, _PROBABILITY)
    _check("p_out", p_out, 0 <= p_out <= 1, _PROBABILITY)
    rng = np.random.default_rng(seed)
    sizes = np.full(k, n // k, np.int64) + (np.arange(k) < n % k)
    group = np.repeat(np.arange(k), sizes)
    # Pairs within groups are numbered group by group.
    ends = np.cumsum(sizes * (sizes - 1) // 2)
    within = _chosen(int(ends[-1]), p_in, rng)
    home = np.searchsorted(ends, within, side="right")
    low, high = _pair_at(within - (ends - sizes * (sizes - 1) // 2)[home])
    shift = (np.cumsum(sizes) - sizes)[home]
    # Pairs between groups: pairs of the whole graph, except those within a group.
    other_low, other_high = _pair_at(_chosen(n * (n - 1) // 2, p_out, rng))
    apart = group[other_low] != group[other_high]
    sources = np.concatenate([low + shift, other_low[apart]])
    targets = np.concatenate([high + shift, other_high[apart]])
    return _graph(n, sources, targets), Labels.from_values(np.arange(n), group)


def lfr(
    n: int = 1000,
    mu: float = 0.2,
    degree: float = 15.0,
    max_degree: int = 50,
    tau1: float = 2.5,
    tau2: float = 1.5,
    min_size: int = 20,
    max_size: int = 100,
    seed: int = 0,
) -> tuple[Graph, Labels]:
    """Generate communities after Lancichinetti, Fortunato and Radicchi (LFR, Phys. Rev. E 78, 2008).

    Degrees follow a power law of exponent tau1 with mean `degree` and maximum `max_degree`, sizes of
    communities one of exponent tau2 from `min_size` to `max_size`; each node has the share mu of its edges
    outside its community; labels are the communities. The model is LFR without overlaps, the algorithm is
    different: stubs are matched at random within communities, and between them, and pairs that repeat an
    edge, join a node to itself, or wrongly fall within a community exchange ends with other pairs. Pairs
    still wrong after 20 rounds are dropped: 0.03 % of edges at the defaults, up to 2 % if communities are
    nearly complete. If a node has more inner edges than its community has other nodes, the rest go outside.
    Nodes left over when sizes are drawn are added to the communities one by one.
    """
    _check_common(n, seed)
    _check("mu", mu, 0 <= mu <= 1, _PROBABILITY)
    _check("max_degree", max_degree, 1 <= max_degree < n, f"must be a whole number from 1 to n - 1 = {n - 1}")
    _check("tau1", tau1, 1 <= tau1 <= 10, "must be a number from 1 to 10")
    _check("tau2", tau2, 1 <= tau2 <= 10, "must be a number from 1 to 10")
    _check("min_size", min_size, 2 <= min_size <= n // 2, f"must be a whole number from 2 to n/2 = {n // 2}")
    _check(
        "max_size", max_size, min_size <= max_size <= n - min_size,
        f"must be a whole number from min_size to n - min_size = {n - min_size}",
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    degrees = _degrees(n, degree, max_degree, tau1, rng)
    inside = np.floor((1 - mu) * degrees + rng.random(n)).astype(np.int64)
    sizes = _sizes(n, min_size, max_size, tau2, rng)
    community = _place(inside, sizes, rng)
    inside = np.minimum(inside, sizes[community] - 1)
    # An odd stub has no partner: it is removed from the member of the community with most inner edges.
    order = np.lexsort((inside, community))
    inside[order[np.cumsum(sizes) - 1]] -= np.bincount(community, inside).astype(np.int64) % 2
    outside = (degrees - inside) * (mu > 0)
    outside[np.argmax(outside)] -= outside.sum() % 2
    within = _wire(inside, community, np.arange(n), rng)
    between = _wire(outside, np.zeros(n, np.int64), community, rng)
    pairs = np.concatenate([within, between])
    return _graph(n, *pairs.T), Labels.from_values(np.arange(n), community)


GENERATORS: dict[str, Callable[..., tuple[Graph, Labels | None]]] = {
    f.__name__: f for f in (erdos_renyi, planted, lfr)
}


def generate(name: str, given: str) -> tuple[Graph, Labels | None]:
    """Generate a graph from parameters `key=value,key=value`; missing ones have their defaults."""
    generator = GENERATORS[name]
    known = inspect.signature(generator).parameters
    values: dict[str, Any] = {}
    for item in filter(None, given.split(",")):
        key, _, text = item.partition("=")
        if key not in known:
            raise ParameterError(key, text, f"{name} has no such parameter; it takes {', '.join(known)}")
        if key in values:
            raise ParameterError(key, text, "is given twice; give it once")
        values[key] = _number(key, text, type(known[key].default))
    return generator(**values)


def _number(key: str, text: str, kind: type) -> int | float:
    try:
        value = float(text)
        if kind is float:
            return value
        # Accept 1e6; integers that float64 cannot represent are parsed from the text.
        return int(value) if value == int(value) and abs(value) < 2**53 else int(text)
    except (ValueError, OverflowError):
        wanted = "a whole number" if kind is int else "a number"
        raise ParameterError(key, text, f"must be {wanted}") from None


def _check(name: str, value: object, good: bool, allowed: str) -> None:
    if not good:
        raise ParameterError(name, value, allowed)


def _check_common(n: int, seed: int) -> None:
    _check("n", n, 1 <= n <= _LARGEST, f"must be a whole number from 1 to {_LARGEST}")
    _check("seed", seed, seed >= 0, "must be a whole number, at least 0")


def _graph(n: int, sources: _Ints, targets: _Ints) -> Graph:
    return Graph.from_edges(sources, targets, nodes=np.arange(n))


def _chosen(total: int, p: float, rng: np.random.Generator) -> _Ints:
    """Choose each of `total` items with probability p; returns ascending int64, using geometric jumps."""
    if p == 0 or total == 0:
        return np.empty(0, np.int64)
    blocks = []
    last = -1
    while last < total:
        mean = (total - last) * p
        jumps = rng.geometric(p, int(mean + 4 * np.sqrt(mean) + 16))
        # For a tiny p the sum of jumps would overflow; a jump beyond `total` is enough.
        block = last + np.cumsum(np.minimum(jumps, total + 1))
        blocks.append(block)
        last = int(block[-1])
    chosen = np.concatenate(blocks)
    return chosen[: np.searchsorted(chosen, total)]


def _pair_at(index: _Ints) -> tuple[_Ints, _Ints]:
    """Return the pairs (low, high) at positions of the list (0, 1), (0, 2), (1, 2), (0, 3), …"""
    high = ((1 + np.sqrt(1 + 8 * index.astype(np.float64))) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > index  # the root may be off by one
    high += high * (high + 1) // 2 <= index
    return index - high * (high - 1) // 2, high


def _power_law(low: float, high: float, tau: float, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map uniform values in [0, 1) to values in [low, high] of density x^-tau."""
    e = 1 - tau if tau != 1 else 1e-9
    values: NDArray[np.float64] = (low**e + uniform * (high**e - low**e)) ** (1 / e)
    return values


def _degrees(n: int, mean: float, largest: int, tau: float, rng: np.random.Generator) -> _Ints:
    """Sample integers from 1 to `largest` with expectation `mean`."""
    from scipy.optimize import brentq

    def expectation(low: float) -> float:
        if low == largest:
            return low
        first, second = (p if p else 1e-9 for p in (1 - tau, 2 - tau))
        upper = (largest**second - low**second) / second
        return float(upper / ((largest**first - low**first) / first))

    least = expectation(1.0)
    smallest = f"{np.ceil(100 * least) / 100:g} (the least with tau1={tau:g} and this max_degree)"
    _check("degree", mean, least <= mean <= largest, f"must be from {smallest} to max_degree={largest}")
    low = brentq(lambda x: expectation(x) - mean, 1.0, float(largest)) if least < mean else 1.0
    # Rounded up or down at random, which keeps the mean.
    values = np.floor(_power_law(low, float(largest), tau, rng.random(n)) + rng.random(n))
    return np.clip(values, 1, largest).astype(np.int64)


def _sizes(n: int, smallest: int, largest: int, tau: float, rng: np.random.Generator) -> _Ints:
    """Sample community sizes that sum to n."""
    drawn = _power_law(smallest, largest + 1, tau, rng.random(n // smallest + 1))
    sizes = np.minimum(drawn.astype(np.int64), largest)
    sizes = sizes[: np.searchsorted(np.cumsum(sizes), n, side="right")]
    left = n - int(sizes.sum())
    if left >= smallest:
        return np.append(sizes, left)
    return sizes + np.bincount(np.arange(left) % len(sizes), minlength=len(sizes))


def _place(inside: _Ints, sizes: _Ints, rng: np.random.Generator) -> _Ints:
    """Assign a random community to each node; swap nodes whose community is too small, if possible."""
    community = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    for _ in range(1000):
        room = sizes[community] - 1
        node = np.flatnonzero(inside > room)
        if not len(node):
            break
        other = rng.integers(len(inside), size=len(node))
        good = (inside[node] <= room[other]) & (inside[other] <= room[node])
        other, first = np.unique(other[good], return_index=True)
        node = node[good][first]
        community[node], community[other] = community[other], community[node]
    return community


def _wire(stubs: _Ints, group: _Ints, apart: _Ints, rng: np.random.Generator) -> _Ints:
    """Return distinct pairs (m, 2): node i in `stubs[i]` of them, with nodes of equal group, unequal `apart`.

    Each group has an even number of stubs. A wrong pair exchanges an end with a random pair of its group if
    both become valid; pairs that stay wrong are dropped.
    """
    n = len(stubs)
    nodes = np.repeat(np.arange(n), stubs)
    pairs = nodes[np.lexsort((rng.random(len(nodes)), group[nodes]))].reshape(-1, 2)
    home = group[pairs[:, 0]]
    start = np.searchsorted(home, home)
    count = np.searchsorted(home, home, side="right") - start
    for _ in range(_ROUNDS):
        codes = _codes(pairs, n)
        wrong = _is_wrong(pairs, codes, apart)
        one = np.flatnonzero(wrong)
        if not len(one):
            break
        one = np.repeat(one, np.clip(len(pairs) // (2 * len(one)), 2, 100))  # few: more tries each
        two = start[one] + (rng.random(len(one)) * count[one]).astype(np.int64)
        flip = rng.integers(2, size=len(one))
        first = np.column_stack([pairs[one, 0], pairs[two, flip]])
        second = np.column_stack([pairs[one, 1], pairs[two, 1 - flip]])
        known = np.sort(codes)
        good = ~wrong[two]
        for new in (first, second):
            place = np.searchsorted(known, _codes(new, n)).clip(max=len(known) - 1)
            good &= (apart[new[:, 0]] != apart[new[:, 1]]) & (known[place] != _codes(new, n))
        tried = np.flatnonzero(good)
        for taken in (one, two):  # each pair is exchanged at most once per round
            tried = tried[np.unique(taken[tried], return_index=True)[1]]
        new = _codes(np.concatenate([first[tried], second[tried]]), n)
        _, kind, copies = np.unique(new, return_inverse=True, return_counts=True)
        tried = tried[(copies[kind.ravel()] == 1).reshape(2, -1).all(axis=0)]
        pairs[one[tried]], pairs[two[tried]] = first[tried], second[tried]
    return pairs[~_is_wrong(pairs, _codes(pairs, n), apart)]


def _codes(pairs: _Ints, n: int) -> _Ints:
    """Return one number for each pair, independent of its order."""
    codes: _Ints = np.minimum(pairs[:, 0], pairs[:, 1]) * n + np.maximum(pairs[:, 0], pairs[:, 1])
    return codes


def _is_wrong(pairs: _Ints, codes: _Ints, apart: _Ints) -> NDArray[np.bool_]:
    """Return a mask of repeated pairs, and of pairs of equal `apart`, which includes self-loops."""
    wrong = np.ones(len(pairs), np.bool_)
    wrong[np.unique(codes, return_index=True)[1]] = False
    wrong |= apart[pairs[:, 0]] == apart[pairs[:, 1]]
    return wrong
