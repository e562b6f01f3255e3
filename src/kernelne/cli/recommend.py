"""`kernelne recommend`: the nodes that nodes are likely to link to next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelne.cli.inputs import check_files, check_same_nodes, given_graph, given_ids, given_node, told
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
    from kernelne.links.predictor import LinkPredictor
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
            help="Train a classifier on held-out links first: slower; it gives probabilities.",
        ),
    ] = False,
    predictor: Annotated[
        Path | None,
        typer.Option(
            "--predictor",
            metavar="FILE",
            help="With --trained: classifier in a .safetensors file, loaded if it exists, else saved.",
        ),
    ] = None,
    random_state: SeedOption = 0,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Recommend the nodes that a node is most likely to link to next.

    Nodes are ranked by the trained model; only the order of the scores has meaning. With --trained, they
    are probabilities: of a link, if links are as frequent among all other pairs as in the graph.
    """
    from kernelne.embedding import Embedding
    from kernelne.io.files import check_output

    if sum((bool(node), everyone, wanted_file is not None)) != 1:
        raise InputError("nodes to recommend to: give one or more NODE, or --for FILE, or --all")
    if candidates is not None and to_prefix is not None:
        raise ParameterError("--to-prefix", to_prefix, "cannot be combined with --candidates")
    if predictor is not None and (not trained or predictor.suffix.lower() != ".safetensors"):
        raise ParameterError("--predictor", str(predictor), "must end in .safetensors, and needs --trained")
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
        wanted = given_ids(wanted_file, network)
    if wanted is not None:
        loaded.index_of(wanted)
    chosen: Any = None if candidates is None else given_ids(candidates, network)
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
    with working():
        from kernelne.links.ranking import recommend_links

        if trained:
            model = _trained(network, loaded, predictor, random_state, quiet, given)
            found = model.recommend(network.nodes if wanted is None else wanted, k, chosen)
        else:
            found = recommend_links(network, loaded, wanted, k=k, candidates=chosen)
        if output is not None:
            write_table(output, found.to_arrow(), overwrite)
    if output is not None:
        if not quiet:
            say(f"Wrote {output}: {len(found):,} recommendations")
        return
    _print(found, "probability" if trained else "score", as_json)


def _starts_with(nodes: Any, prefix: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    from kernelne.graph.ids import id_column

    texts = id_column(nodes).cast(pa.large_string())
    return pc.starts_with(texts, prefix).to_numpy(zero_copy_only=False)


def _print(found: Recommendations, score: str, as_json: bool) -> None:
    rows = list(zip(found.nodes.tolist(), found.recommended.tolist(), found.scores.tolist(), strict=True))
    nodes = list(dict.fromkeys(found.nodes.tolist()))
    if as_json:
        told = {node: [{"node": i, score: s} for own, i, s in rows if own == node] for node in nodes}
        listed = [{"node": node, "recommended": told[node]} for node in nodes]
        print_json(listed[0] if len(listed) == 1 else listed)
        return
    columns = ["to"] * (len(nodes) > 1) + ["node", score]
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


def _trained(
    graph: Graph, embedding: Embedding, file: Path | None, seed: int, quiet: bool, given: dict[str, Any]
) -> LinkPredictor:
    """Return the predictor in the file, or train one and save it there."""
    from kernelne.links.predictor import LinkPredictor

    if file is not None and file.exists():
        return LinkPredictor.load(file, graph, embedding)
    embedder = _check_embedder(embedding, given)
    predictor = LinkPredictor(embedder=embedder, random_state=seed, progress=not quiet)
    predictor.fit(graph, embedding)
    if file is not None:
        predictor.save(file)
        if not quiet:
            say(f"Wrote {file}")
    return predictor
