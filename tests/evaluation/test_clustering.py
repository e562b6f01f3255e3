"""Clusters of vectors in plain groups, scored against classes, communities and nothing."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from kernelne import Embedding, Graph, InputError, Labels, ParameterError
from kernelne.evaluation.clustering import cluster_nodes
from kernelne.graph.communities import louvain, modularity


@pytest.fixture(scope="module")
def blobs():
    """90 vectors around three points, and which."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 90)
    return (np.eye(3)[group] * 10 + rng.normal(size=(90, 3))).astype(np.float32), group


@pytest.mark.parametrize("kind", ["int", "str", "mixed"])
def test_classes_of_any_kind_are_found(blobs, kind):
    vectors, group = blobs
    names = {"int": [7, -2, 900], "str": ["ab", "", "ç"], "mixed": [3.5, ("a", 1), "x"]}[kind]
    labels = np.fromiter((names[g] for g in group), object, 90) if kind == "mixed" else np.array(names)[group]
    scores = cluster_nodes(vectors, labels=labels)
    assert scores.n_clusters == 3
    assert (scores.assignment.dtype, scores.assignment.shape) == (np.int64, (90,))
    assert scores.nmi == pytest.approx(1.0)
    assert scores.ari == pytest.approx(1.0)
    assert scores.modularity is None


def test_scores_are_scikit_learns(blobs):
    _, group = blobs
    vectors = np.random.default_rng(1).normal(size=(90, 2))
    scores = cluster_nodes(vectors, labels=group.tolist(), n_clusters=5)
    assert set(scores.assignment.tolist()) == set(range(5))
    assert scores.nmi == pytest.approx(normalized_mutual_info_score(group, scores.assignment))
    assert scores.ari == pytest.approx(adjusted_rand_score(group, scores.assignment))
    assert scores.ari < 0.3


def test_a_graph_alone_gives_its_communities(two_cliques):
    place = np.repeat([0.0, 5.0, 50.0], [5, 5, 1])[:, None]
    scores = cluster_nodes(place, graph=two_cliques)
    assert scores.n_clusters == louvain(two_cliques).max() + 1 == 3
    assert scores.nmi == pytest.approx(1.0)
    assert scores.ari == pytest.approx(1.0)
    assert scores.modularity == pytest.approx(20 / 21 - 0.5)


def test_given_classes_come_before_communities(two_cliques):
    place = np.repeat([0.0, 5.0, 50.0], [5, 5, 1])[:, None]
    labels = np.arange(11) % 2
    scores = cluster_nodes(place, labels=labels, graph=two_cliques)
    assert scores.n_clusters == 2
    assert scores.nmi == pytest.approx(normalized_mutual_info_score(labels, scores.assignment))
    assert scores.modularity == pytest.approx(modularity(two_cliques, scores.assignment))
    three = cluster_nodes(place, graph=two_cliques, n_clusters=2)
    assert (three.n_clusters, three.nmi < 1) == (2, True)


def test_a_number_alone_gives_clusters_and_no_scores(blobs):
    scores = cluster_nodes(blobs[0], n_clusters=3)
    assert (scores.nmi, scores.ari, scores.modularity) == (None, None, None)
    assert adjusted_rand_score(blobs[1], scores.assignment) == pytest.approx(1.0)


def test_the_seed_fixes_the_clusters():
    vectors = np.random.default_rng(3).normal(size=(200, 4))
    first, again, other = (
        cluster_nodes(vectors, n_clusters=6, n_init=1, random_state=s).assignment for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert adjusted_rand_score(first, other) < 1


def test_one_node():
    scores = cluster_nodes([[1.0, 2.0]], graph=Graph.from_edges([], [], nodes=["only"]))
    assert scores.assignment.tolist() == [0]
    assert scores.modularity == 0.0


def test_bad_input(blobs, two_cliques):
    vectors, group = blobs
    with pytest.raises(ParameterError, match="n_clusters=None: give a number, or labels or a graph"):
        cluster_nodes(vectors)
    for bad in (0, 91, 2.0, True):
        with pytest.raises(ParameterError, match=r"n_clusters=.*from 1 to 90"):
            cluster_nodes(vectors, n_clusters=bad)
    with pytest.raises(ParameterError, match="n_init=0"):
        cluster_nodes(vectors, n_clusters=2, n_init=0)
    with pytest.raises(ParameterError, match="random_state=-1"):
        cluster_nodes(vectors, n_clusters=2, random_state=-1)
    with pytest.raises(InputError, match=r"labels has shape \(89,\) for 90 nodes"):
        cluster_nodes(vectors, labels=group[1:])
    with pytest.raises(InputError, match=r"labels\[1\] is nan: give every node a value"):
        cluster_nodes(vectors, labels=[1.0, np.nan] * 45)
    with pytest.raises(InputError, match=r"labels\[1\] is nan"):
        cluster_nodes(vectors, labels=np.fromiter(["a", np.nan] * 45, object, 90))
    with pytest.raises(InputError, match="45 of 90 nodes have None"):
        cluster_nodes(vectors, labels=["a", None] * 45)
    with pytest.raises(InputError, match=r"labels has shape \(90, 3\)"):
        cluster_nodes(vectors, labels=np.eye(3)[group])
    with pytest.raises(InputError, match="90 rows for a graph of 11 nodes"):
        cluster_nodes(vectors, graph=two_cliques)
    with pytest.raises(InputError, match=r"row 4 .* not finite"):
        cluster_nodes(np.where(np.arange(90)[:, None] == 4, np.inf, vectors), labels=group)
    with pytest.raises(InputError, match=r"shape \(0, 3\)"):
        cluster_nodes(vectors[:0], n_clusters=1)


def test_embedding_graph_and_labels_meet_by_id(two_cliques):
    place = np.repeat([0.0, 5.0, 50.0], [5, 5, 1])[:, None]
    order = np.random.default_rng(3).permutation(11)
    embedding = Embedding(place[order], two_cliques.nodes[order])
    plain, by_id = (cluster_nodes(v, graph=two_cliques) for v in (place, embedding))
    assert by_id.assignment.tolist() == plain.assignment.tolist()
    assert (by_id.nmi, by_id.n_compared) == (pytest.approx(1.0), 11)
    told = "<ClusterScores: 3 clusters of 11 nodes, NMI 1.000, ARI 1.000, modularity "
    assert repr(by_id) == f"{told}{by_id.modularity:.3f}>"
    assert repr(cluster_nodes(place, n_clusters=2)) == "<ClusterScores: 2 clusters of 11 nodes>"
    with pytest.raises(InputError, match="no node"):
        cluster_nodes(Embedding(place[1:], two_cliques.nodes[1:]), graph=two_cliques)
    # Two nodes have no label: clustered, not compared.
    labels = Labels.from_values(two_cliques.nodes[:9], [7] * 5 + [8] * 4)
    for given in ({"vectors": embedding}, {"vectors": place, "graph": two_cliques}):
        scores = cluster_nodes(**given, labels=labels)
        assert (scores.n_clusters, scores.n_compared, len(scores.assignment)) == (2, 9, 11)
    with pytest.raises(InputError, match=r"labels\.single"):
        cluster_nodes(place, labels=labels)
    several = Labels(two_cliques.nodes[:1], [1, 2], np.ones((1, 2), bool))
    with pytest.raises(InputError, match="several labels"):
        cluster_nodes(embedding, labels=several)
