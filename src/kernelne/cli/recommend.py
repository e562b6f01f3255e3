"""`kernelne recommend`: the nodes that nodes are likely to link to next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelne.cli.inputs import check_files, check_same_nodes, given_graph, given_node, told
from kernelne.cli.options import (
    MODEL,
    UNDIRECTED,
    EmbeddingArgument,
    GraphArgument,
    JsonOption,
    OverwriteOption,
    QuietOption,
    SeedOption,
    takes,
)
from kernelne.cli.output import print_json, print_table, say, working, write_table
from kernelne.errors import InputError, ParameterError

if TYPE_CHECKING:
    from kernelne.embedding import Embedding
    from kernelne.graph import Graph
    from kernelne.links.ranking import Recommendations


@takes(UNDIRECTED, {name: MODEL[name] for name in ("n_threads", "deterministic")})
def recommend(
    graph: GraphArgument,
    embedding: EmbeddingArgument,
    node: Annotated[
        list[str] | None, typer.Argument(metavar="NODE", help="Node ids.", show_default=False)
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="Recommend to all nodes.")] = False,
    wanted_file: Annotated[
        Path | None,
        typer.Option(
            "--for", metavar="FILE", help="File with the ids of the nodes to recommend to, one per line."
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of recommendations for each node.")] = 10,
    candidates: Annotated[
        Path | None,
        typer.Option(
            "--candidates",
            metavar="FILE",
            help="File with the ids of the nodes to choose from, one per line.",
            show_default="all, or those on the other side of a bipartite graph",
        ),
    ] = None,
    to_prefix: Annotated[
        str | None, typer.Option("--to-prefix", help="Choose from nodes whose id starts with this.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="File to write: .csv or .parquet with node, recommended, rank, score.",
        ),
    ] = None,
    overwrite: OverwriteOption = False,
    trained: Annotated[
        bool,
        typer.Option(
            "--trained",
            help="Train a classifier on held-out links first, for one NODE: slower; it gives probabilities.",
        ),
    ] = False,
    random_state: SeedOption = 0,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Recommend the nodes that a node is most likely to link to next.

    Nodes are ranked by the trained model; only the order of the scores has meaning. With --trained, the
    probability is that of a link rather than a random pair, if both were equally frequent.
    """
    from kernelne.embedding import Embedding
    from kernelne.io.files import check_output

    if sum((bool(node), everyone, wanted_file is not None)) != 1:
        raise InputError("nodes to recommend to: give one or more NODE, or --for FILE, or --all")
    if candidates is not None and to_prefix is not None:
        raise ParameterError("--to-prefix", to_prefix, "cannot be combined with --candidates")
    if trained and (len(node or []) != 1 or output is not None):
        raise ParameterError("--trained", trained, "is for one NODE, printed")
    if output is None and not node:
        raise InputError("give -o OUT: the recommendations to many nodes are written to a file")
    check_files(output, graph, embedding, given["nodes"], wanted_file, candidates)
    if output is not None:
        if output.suffix.lower() not in (".csv", ".parquet"):
            raise ParameterError("--output", str(output), "must end in .csv or .parquet")
        check_output(output, overwrite)
    loaded = Embedding.load(embedding)
    if trained:
        _check_embedder(loaded, given)
    network = given_graph(graph, given)
    check_same_nodes(loaded, network, embedding, graph)
    wanted: Any = [given_node(text, network.nodes) for text in node or []] or None
    if wanted_file is not None:
        wanted = _ids(wanted_file, network)
    if wanted is not None:
        loaded.index_of(wanted)
    chosen: Any = None if candidates is None else _ids(candidates, network)
    if to_prefix is not None:
        chosen = network.nodes[_starts_with(network.nodes, to_prefix)]
        if not len(chosen):
            raise ParameterError("--to-prefix", to_prefix, "no node id starts with it")
    if not quiet:
        say(told(network))
        for each in wanted if node else []:
            row = int(network.index_of([each])[0])
            if network.degrees[row] == 0 and not (network.neighbours == row).any():
                say(f"note: {each} has no edges: its vector and these recommendations are random")
    if trained:
        assert wanted is not None
        _print_trained(network, loaded, wanted[0], k, chosen, random_state, quiet, as_json, given)
        return
    with working():
        from kernelne.links.ranking import recommend_links

        found = recommend_links(network, loaded, wanted, k=k, candidates=chosen)
        if output is not None:
            write_table(output, found.to_arrow(), overwrite)
    if output is not None:
        if not quiet:
            say(f"Wrote {output}: {len(found):,} recommendations")
        return
    _print(found, as_json)


def _ids(path: Path, graph: Graph) -> Any:
    """Read one node id per line."""
    import numpy as np

    texts = path.read_text(encoding="utf-8-sig").split("\n")
    ids = np.array(list(filter(None, map(str.strip, texts))), object)
    if not len(ids):
        raise InputError(f"{path}: no node ids in the file")
    if graph.nodes.dtype != object:
        try:
            ids = ids.astype(np.int64)
        except ValueError as error:
            raise InputError(f"{path}: the ids of the graph are integers ({error})") from None
    graph.index_of(ids)
    return ids


def _starts_with(nodes: Any, prefix: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    from kernelne.graph.ids import id_column

    texts = id_column(nodes).cast(pa.large_string())
    return pc.starts_with(texts, prefix).to_numpy(zero_copy_only=False)


def _print(found: Recommendations, as_json: bool) -> None:
    rows = list(zip(found.nodes.tolist(), found.recommended.tolist(), found.scores.tolist(), strict=True))
    nodes = list(dict.fromkeys(found.nodes.tolist()))
    if as_json:
        told = {node: [{"node": i, "score": s} for own, i, s in rows if own == node] for node in nodes}
        listed = [{"node": node, "recommended": told[node]} for node in nodes]
        print_json(listed[0] if len(listed) == 1 else listed)
        return
    columns = ["to"] * (len(nodes) > 1) + ["node", "score"]
    print_table(
        columns, [[str(own)] * (len(nodes) > 1) + [str(i), f"{s:.3g}"] for own, i, s in rows], text=["node"]
    )


def _check_embedder(embedding: Embedding, given: dict[str, Any]) -> Any:
    """Return the model of the embedding, with the options given."""
    from kernelne.estimators import estimator_of

    embedder = estimator_of(embedding.provenance)
    if embedder is not None:
        options = {name: given[name] for name in ("n_threads", "deterministic") if given[name] is not None}
        embedder.set_params(**options).config()
    return embedder


def _print_trained(
    graph: Graph, embedding: Embedding, node: Any, k: int, candidates: Any, seed: int, quiet: bool,
    as_json: bool, given: dict[str, Any],
) -> None:  # fmt: skip
    from kernelne.links.predictor import LinkPredictor

    embedder = _check_embedder(embedding, given)
    predictor = LinkPredictor(embedder=embedder, random_state=seed, progress=not quiet)
    with working():
        predictor.fit(graph, embedding)
    ids, chances = predictor.recommend(node, k, candidates)
    pairs = list(zip(ids.tolist(), chances.tolist(), strict=True))
    if as_json:
        found = [{"node": i, "probability": p} for i, p in pairs]
        print_json({"node": node, "seed": seed, "recommended": found})
        return
    print_table(["node", "probability"], [[str(i), f"{p:.3f}"] for i, p in pairs])
