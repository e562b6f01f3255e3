"""What notebooks show: tables, in which nothing that came from a file is HTML."""

from __future__ import annotations

import numpy as np

from kernelne import Embedding, Graph, classify_nodes, cluster_nodes
from kernelne.evaluation.links import LinkScores
from kernelne.links.ranking import RankingScores, Recommendations


def test_objects_are_tables():
    graph = Graph.from_edges(["<b>x</b>", "a&b"], ["y", "z"], [1.0, 2.0])
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 3))
    scores = classify_nodes(vectors, np.arange(40) % 2, n_repeats=2)
    some = Recommendations(graph.nodes[:1], graph.nodes[1:2], np.ones(1, np.float32), np.ones(1, np.int64))
    for shown, words in (
        (graph, ["Graph", "<td>4</td>", "undirected, weighted", "&lt;b&gt;x&lt;/b&gt;", "a&amp;b"]),
        (Embedding(vectors, range(40)), ["Embedding", "<td>40</td>", "0, 1, 2, 3, 4, …"]),
        (scores, ["<th>micro-F1</th>", "<td>10 %</td>", "±"]),
        (cluster_nodes(vectors, n_clusters=2), ["n_clusters", "<td>2</td>"]),
        (LinkScores(0.98765, 0.5), ["auc", "<td>0.988</td>"]),
        (RankingScores(0.1, 0.2, 0.3, 20, 1234), ["recall", "<td>0.100</td>", "<td>1,234</td>"]),
        (some, ["first 1 of 1", "recommended"]),
    ):
        html = shown._repr_html_()
        assert html.startswith("<table>")
        assert html.endswith("</table>")
        for word in words:
            assert word in html, (word, html)
        assert "<b>" not in html
        assert "None" not in html
