"""Random task graphs give the result of a serial execution, with any number of workers.

`PYPTO_RANDOM_GRAPHS` sets how many graphs are tried; the default keeps the suite fast.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.runtime.random_graphs import make_crowded_graph, make_graph
from tests.runtime.script import Runner

COUNT = int(os.environ.get("PYPTO_RANDOM_GRAPHS", "150"))


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_random_graph_equals_serial_execution(runner: Runner, workers: int) -> None:
    for seed in range(COUNT):
        graph = make_graph(seed)
        runner.run(graph.script, *graph.arrays, workers=workers, task_window=64)
        for array, expected in zip(graph.arrays, graph.expected, strict=True):
            np.testing.assert_array_equal(array, expected, err_msg=f"graph {seed}")


def test_crowded_matrix_equals_serial_execution(runner: Runner) -> None:
    """So many entries are in flight that look-ups go through the grid."""
    for seed in range(max(COUNT // 15, 5)):
        graph = make_crowded_graph(seed)
        runner.run(graph.script, *graph.arrays, workers=2)
        np.testing.assert_array_equal(graph.arrays[0], graph.expected[0], err_msg=f"graph {seed}")
