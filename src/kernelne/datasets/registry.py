"""The paper's graphs: descriptions, sources, and the hashes of their files.

In canonical form a graph is up to three gzip files of ASCII text, over nodes 0..n-1:

NAME.edges.gz      lines `u v`, u < v, sorted, each edge once, no self-loops
NAME.labels.gz     lines `node label[,label...]`, in order of nodes; labelled graphs only
NAME.selfloops.gz  one node per line, ascending; graphs with self-loops only

The hashes are those of the uncompressed texts, so that they do not depend on the compressor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelne.datasets import convert


@dataclass(frozen=True)
class Entry:
    """One graph. `n_edges` does not count self-loops; `n_classes` is 0 if there are no labels.

    sha256   part (edges, labels, selfloops) → hash of its text; the graph has exactly these parts
    source   URL of the original file, which `convert` converts to the texts; a description if not `fetched`
    """

    description: str
    citation: str
    source: str
    convert: Callable[[Path], dict[str, bytes]]
    n_nodes: int
    n_edges: int
    n_loops: int
    n_classes: int
    sha256: Mapping[str, str]
    fetched: bool = True


_SNAP = "https://snap.stanford.edu/data/"
# A commit that contains both files.
_HARP = (
    "https://raw.githubusercontent.com/GTmac/HARP/71e3a97d23f64fecb23b7f58a614151ba15630c0/example_graphs/"
)
_SEN = "Sen et al., Collective Classification in Network Data, AI Magazine 29(3), 2008"
_CHEN = "Chen, Perozzi, Hu, Skiena, HARP, AAAI 2018"
_LESKOVEC = "Leskovec, Kleinberg, Faloutsos, Graph Evolution, ACM TKDD 1(1), 2007"

REGISTRY: dict[str, Entry] = {
    "citeseer": Entry(
        "citations between papers of computer science, by field",
        f"{_SEN}; {_CHEN}",
        f"{_HARP}citeseer/citeseer.mat",
        convert.mat_groups,
        *(3312, 4536, 124, 6),
        {
            "edges": "a24449c4577dd0783eb699cc8b7b8535d6de5ce024b2aeaed07679650b208a38",
            "labels": "e1fc593a29274a5181e6a11a3b8481c733e46e6a17d13f736d4d3a7bc05c361f",
            "selfloops": "fb73b6011705ed63c37643f4494a8c5354d3a7d32de45896891adf1aff45d464",
        },
    ),
    "cora": Entry(
        "citations between papers on machine learning, by topic",
        f"{_SEN}; McCallum et al., Information Retrieval 3, 2000",
        "datasets/cora_undirected.gml of https://github.com/abdcelikkanat/free-emb, commit 9ea237fa21e3",
        convert.gml_communities,
        *(2708, 5278, 0, 7),
        {
            "edges": "003a7972eb1674350afe12cfb3cb076849446a457a18c741939310cde1883eea",
            "labels": "408a72d666d1833efabccb0eb1c1d8b9d2fd8eed2a04d42d21c77ff4d25685d3",
        },
        fetched=False,
    ),
    "dblp": Entry(
        "co-authors in databases (0), data mining (1), information retrieval (2) and machine learning (3)",
        _CHEN,
        f"{_HARP}dblp/dblp.mat",
        convert.mat_memberships,
        *(27199, 66832, 0, 4),
        {
            "edges": "58e915cb53a476bd22566f5c18cf31cde6ae251bf6edec1df040ecc9154effce",
            "labels": "2f3fb70d6cce04e6b6db01e21015f2f31f4e9f387ffb414ac561fc21fbdeb440",
        },
    ),
    "ppi": Entry(
        "interactions of human proteins, by the hallmark gene sets they are in (several each)",
        "Grover, Leskovec, node2vec, KDD 2016; Breitkreutz et al., BioGRID, NAR 2008; Liberzon et al., "
        "MSigDB hallmark gene sets, Bioinformatics 2011",
        "https://snap.stanford.edu/node2vec/Homo_sapiens.mat",
        convert.mat_groups,
        *(3890, 37845, 894, 50),
        {
            "edges": "3ca32f28e0232a6e376a9b054cee242ea3410e97a1ebd5bf98f85560c1cbba18",
            "labels": "8978f9b2750553da99672f07a34f4a2f0cbeb3ffaaca91adbfeede1070248158",
            "selfloops": "484028b950d24e97472be16117297598ded4c66e59893f7aa53f7c1bc5e38857",
        },
    ),
    "astroph": Entry(
        "co-authors in astrophysics, the giant component",
        _LESKOVEC,
        f"{_SNAP}ca-AstroPh.txt.gz",
        convert.giant_component,
        *(17903, 196972, 59, 0),
        {
            "edges": "5c864bdfac9dfdcd68d013008f04a4f3c9274dd7c18380e37762137e64092d7e",
            "selfloops": "2d1d60bdbd66deb175949c093033ea8eadf7d7b87be4f19d42344f699abaec29",
        },
    ),
    "hepth": Entry(
        "co-authors in high-energy physics theory, the giant component",
        _LESKOVEC,
        f"{_SNAP}ca-HepTh.txt.gz",
        convert.giant_component,
        *(8638, 24806, 21, 0),
        {
            "edges": "347aeff048e21d225e6ffba80e799b0abd65658d7920b23684b50e76b05f6f5d",
            "selfloops": "35b71262ba8f429999d618e044d07dbec4e045614e0d2a88432a2294c639c1a5",
        },
    ),
    "facebook": Entry(
        "friends of ten people on Facebook",
        "McAuley, Leskovec, Learning to Discover Social Circles in Ego Networks, NIPS 2012",
        f"{_SNAP}facebook_combined.txt.gz",
        convert.giant_component,
        *(4039, 88234, 0, 0),
        {"edges": "f41c026ed8af3cc3359f1ca5573d0605fb09ae0eefa34544b820fd8c6e2ef296"},
    ),
    "gnutella": Entry(
        "links between hosts of Gnutella on 9 August 2002, the giant component, directions dropped",
        f"Ripeanu, Foster, Iamnitchi, IEEE Internet Computing 6(1), 2002; {_LESKOVEC}",
        f"{_SNAP}p2p-Gnutella09.txt.gz",
        convert.giant_component,
        *(8104, 26008, 0, 0),
        {"edges": "3a2608b552fd1a7309cc4219cec0db30af684b5a324f841ae526017c436e689c"},
    ),
    "dolphins": Entry(
        "dolphins of Doubtful Sound seen together",
        "Lusseau et al., The bottlenose dolphin community of Doubtful Sound, Behav. Ecol. Sociobiol. 54, "
        "2003",
        "http://www-personal.umich.edu/~mejn/netdata/dolphins.zip",
        convert.zipped_gml,
        *(62, 159, 0, 0),
        {"edges": "0218d89483fc3c531cc973b6d340d13016d53cceddf90600a86409c97370e6ab"},
    ),
}
