"""`kernelne links`: score how well hidden links are predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelne.cli import completion
from kernelne.cli.inputs import check_files, given_estimator, given_graph, told
from kernelne.cli.options import (
    MODEL,
    UNDIRECTED,
    GraphArgument,
    JsonOption,
    QuietOption,
    SeedOption,
    takes,
)
from kernelne.cli.output import begin, print_json, print_scores, say, spread, summary
from kernelne.errors import ParameterError

if TYPE_CHECKING:
    from kernelne.evaluation.link_splits import LinkSplit
    from kernelne.evaluation.links import LinkScores

_NAMES = {
    "embedding": "{model}, {operator}",
    "link_predictor": "link predictor",
    "degree_product": "degree product",
    "common_neighbours": "common neighbours",
    "adamic_adar": "Adamic–Adar",
}


@takes(UNDIRECTED, {name: option for name, option in MODEL.items() if name != "random_state"})
def links(
    graph: GraphArgument,
    test_share: Annotated[
        float, typer.Option("--test-share", help="Share of the edges to hide and predict, between 0 and 1.")
    ] = 0.5,
    non_edges: Annotated[
        str,
        typer.Option(
            "--non-edges",
            help="How pairs without an edge are drawn: uniform, or degree (ends with the degrees of edges).",
            autocompletion=completion.one_of(*completion.NON_EDGES),
        ),
    ] = "uniform",
    splits: Annotated[
        int,
        typer.Option("--splits", min=1, help="Number of splits; each hides other edges and embeds the rest."),
    ] = 1,
    operator: Annotated[
        str,
        typer.Option(
            "--operator",
            help="Features of a pair of vectors: l2, l1, hadamard or average.",
            autocompletion=completion.one_of(*completion.OPERATORS),
        ),
    ] = "l2",
    random_state: SeedOption = 0,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Hide links of a graph, embed the rest, and score how well the hidden links are predicted."""
    import numpy as np

    from kernelne.evaluation.link_splits import split_links
    from kernelne.evaluation.links import OPERATORS

    if operator not in OPERATORS:
        raise ParameterError("--operator", operator, f"must be one of {', '.join(OPERATORS)}")
    if random_state + splits > 2**32:
        raise ParameterError("--seed", random_state, f"the seeds of {splits} splits must be below 2**32")
    estimator = given_estimator(given).set_params(progress=not quiet)
    estimator.config()
    estimator.check_backend()
    check_files(None, graph, given["nodes"])
    loaded = given_graph(graph, given)
    if not quiet:
        say(told(loaded))
    results: list[dict[str, LinkScores]] = []
    for number in range(splits):
        seed = random_state + number
        split = split_links(loaded, test_share=test_share, non_edges=non_edges, random_state=seed)
        estimator.set_params(random_state=seed).check(split.graph)
        begin()
        if not quiet:
            hidden, left = len(split.test_edges), len(split.train_edges)
            say(f"Split {number + 1} of {splits}: {hidden:,} edges hidden, {left:,} left")
        results.append(_score_split(split, estimator, operator, non_edges, seed))
    by_name = {
        name: {
            measure: np.array([getattr(scores[name], measure) for scores in results])
            for measure in ("auc", "average_precision")
        }
        for name in results[0]
    }
    facts = {
        "model": type(estimator).__name__,
        "parameters": {
            name: value
            for name, value in estimator.get_params().items()
            if name not in ("progress", "random_state")
        },
        "nodes": split.graph.n_nodes,
        "edges": len(split.train_edges) + len(split.test_edges),
        "hidden_edges": len(split.test_edges),
        "test_share": test_share,
        "non_edges": non_edges,
        "splits": splits,
        "operator": operator,
        "seed": random_state,
    }
    if as_json:
        print_json(facts | {"scores": [{"name": name} | summary(by_name[name]) for name in by_name]})
        return
    rows = [[_NAMES[name].format(**facts), *map(spread, by_name[name].values())] for name in by_name]
    print_scores(["ranked by", "AUC", "average precision"], rows)


def _score_split(
    split: LinkSplit, estimator: Any, operator: str, non_edges: str, seed: int
) -> dict[str, LinkScores]:
    """Return the scores of the embedding, of the link predictor and of the controls."""
    from kernelne.evaluation.links import control_scores, rank_scores, score_links
    from kernelne.links.predictor import LinkPredictor

    embedding = estimator.fit(split.graph).to_embedding()
    predictor = LinkPredictor(
        embedder=estimator, non_edges=non_edges, random_state=seed, progress=estimator.progress
    ).fit(split.graph, embedding)
    edges, others = (
        {"link_predictor": predictor.predict_proba(split.graph.nodes[pairs])[:, 1]}
        | control_scores(split.graph, pairs)
        for pairs in (split.test_edges, split.test_non_edges)
    )
    told_by_vectors = score_links(embedding.vectors, split, operator=operator)
    return {"embedding": told_by_vectors} | {name: rank_scores(edges[name], others[name]) for name in edges}
