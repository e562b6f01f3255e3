"""`kernelne recommend`: the nodes that nodes are likely to link to next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelne.cli.inputs import check_files, check_same_nodes, given_graph, given_ids, given_node, told
from kernelne.cli.options import (
    MODEL,
    READING,
    EmbeddingArgument,
    GraphArgument,
    JsonOption,
    OverwriteOption,
    QuietOption,
    SeedOption,
    SkipIdsOption,
    takes,
)
from kernelne.cli.output import print_json, print_table, say, working, write_tables
from kernelne.errors import InputError, ParameterError

if TYPE_CHECKING:
    from kernelne.embedding import Embedding
    from kernelne.graph import Graph
    from kernelne.links.predictor import LinkPredictor
    from kernelne.links.ranking import Recommendations


_MOST_PRINTED = 20  # nodes of a file
_MANY = f"give -o OUT: the recommendations to more than {_MOST_PRINTED} nodes are written to a file"


@takes(READING, {name: MODEL[name] for name in ("n_threads", "deterministic")})
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
            "--for",
            metavar="FILE",
            help="File with the ids of the nodes to recommend to, one per line; more than 20 need OUT.",
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
    from_prefix: Annotated[
        str | None, typer.Option("--from-prefix", help="Recommend to nodes whose id starts with this.")
    ] = None,
    skip_unknown: SkipIdsOption = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="File to write: .csv or .parquet with node, recommended, rank, score or, if "
            "--trained, probability.",
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

    n_given = sum((bool(node), everyone, wanted_file is not None, from_prefix is not None))
    if n_given != 1:
        only = "only one of" if n_given else "one of"
        raise InputError(
            f"nodes to recommend to: give {only} NODE (one or more), --for FILE, --from-prefix and --all"
        )
    if candidates is not None and to_prefix is not None:
        raise ParameterError("--to-prefix", to_prefix, "cannot be combined with --candidates")
    if predictor is not None and predictor.suffix.lower() != ".safetensors":
        raise ParameterError("--predictor", str(predictor), "must end in .safetensors")
    if predictor is not None and not trained:
        raise ParameterError("--predictor", str(predictor), "needs --trained")
    if output is None and everyone:
        raise InputError(_MANY)
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
        wanted = given_ids(wanted_file, network, skip_unknown)
    if from_prefix is not None:
        wanted = _with_prefix(network, "--from-prefix", from_prefix)
    if wanted is not None:
        loaded.index_of(wanted)
        if output is None and not node and len(wanted) > _MOST_PRINTED:
            raise InputError(_MANY)
    chosen: Any = None if candidates is None else given_ids(candidates, network, skip_unknown)
    if to_prefix is not None:
        chosen = _with_prefix(network, "--to-prefix", to_prefix)
    if everyone and chosen is not None:
        wanted = _other_side(network, chosen)
    if not quiet:
        say(told(network))
        for each in wanted if node or output is None else []:
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
            write_tables(output, [found.to_arrow()], overwrite)
    if output is not None:
        if not quiet:
            say(f"Wrote {output}: {len(found):,} recommendations")
        return
    _print(found, as_json)


def _with_prefix(graph: Graph, option: str, prefix: str) -> Any:
    """Return the ids that start with a text, at least one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from kernelne.graph.ids import id_column

    texts = id_column(graph.nodes).cast(pa.large_string())
    found = graph.nodes[pc.starts_with(texts, prefix).to_numpy(zero_copy_only=False)]
    if not len(found):
        raise ParameterError(option, prefix, "no node id starts with it")
    return found


def _other_side(graph: Graph, candidates: Any) -> Any:
    """Return the ids on the other side if the candidates are on one side of a bipartite graph, else None."""
    from kernelne.graph.ops import as_undirected
    from kernelne.links.ranking import sides_of

    sides = sides_of(as_undirected(graph))
    if sides is None:
        return None
    mine = sides[graph.index_of(candidates)]
    return graph.nodes[sides != mine[0]] if (mine == mine[0]).all() else None


def _print(found: Recommendations, as_json: bool) -> None:
    score = found.measure
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
