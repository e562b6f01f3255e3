"""Density as shade: more points are more opaque, colours are mixed, nothing gets lost at the edge."""

from __future__ import annotations

import numpy as np

from kernelne.view.density import densest, densities, shade, square_around


def test_more_points_are_more_opaque_and_one_is_seen():
    places = np.repeat(np.array([[0, 0], [1, 0], [0, 1], [1, 1]], np.float32), [1, 10, 100, 1000], axis=0)
    square = square_around(places)
    picture = shade(places, np.array([0.2, 0.4, 0.6]), square)
    side = len(picture)
    at = ((places - [square[0], square[2]]) / (square[1] - square[0]) * side).astype(int)
    opacity = picture[at[:, 1], at[:, 0], 3][[0, 1, 11, 111]]
    assert (np.diff(opacity) > 0.1).all()
    assert opacity[0] > 0.25
    assert opacity[-1] <= 1
    np.testing.assert_allclose(
        picture[picture[:, :, 3] > 0, :3], [[0.2, 0.4, 0.6]] * (picture[:, :, 3] > 0).sum(), atol=1e-6
    )
    assert ((picture[:, :, 3] > 0).sum()) == 4 * 9  # each point and the pixels around it


def test_colours_of_a_pixel_are_mixed():
    places = np.zeros((4, 2), np.float32)
    picture = shade(
        places, np.array([[1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0]], float), square_around(places)
    )
    np.testing.assert_allclose(picture[picture[:, :, 3] > 0][0, :3], [0.75, 0.25, 0], atol=1e-6)


def find_densest(places, others=()):
    every = np.vstack([places, *others])
    square = square_around(every)
    return densest(places, square, densities(every, square))


def test_densest_is_a_node_of_the_fullest_part():
    rng = np.random.default_rng(0)
    places = np.vstack([rng.normal(size=(50, 2)), rng.normal(9, 0.1, (40, 2))]).astype(np.float32)
    found = find_densest(places)
    assert (places == found).all(axis=1).any()
    np.testing.assert_allclose(found, [9, 9], atol=0.5)


def test_a_few_nodes_upon_each_other_are_not_the_fullest_part():
    rng = np.random.default_rng(0)
    places = np.vstack([rng.normal(size=(200, 2)), np.full((12, 2), 9)]).astype(np.float32)
    assert np.abs(find_densest(places)).max() < 2


def test_the_fullest_part_is_one_that_no_other_class_fills():
    rng = np.random.default_rng(0)
    crowd = rng.normal(size=(2000, 2)).astype(np.float32)
    places = np.vstack([crowd[:300], rng.normal(9, 1, (200, 2))]).astype(np.float32)
    assert np.abs(find_densest(places)).max() < 2
    np.testing.assert_allclose(find_densest(places, [crowd[300:]]), [9, 9], atol=1.5)
