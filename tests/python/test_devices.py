# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Which GPU is a process's own: every way of counting is right or refused."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from perseus.hooks.devices import gpu_of

A = "GPU-8f1b2c3d-0000-1111-2222-333344445555"
B = "GPU-9a1b2c3d-0000-1111-2222-333344445555"
PCI = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


@pytest.mark.parametrize(
    ("environment", "rank", "found"),
    [
        # Nothing is hidden.
        ({}, 0, {"gpu_index": 0}),
        ({}, 3, {"gpu_index": 3}),
        ({"LOCAL_RANK": "1"}, 5, {"gpu_index": 1}),
        ({"SLURM_LOCALID": "2"}, 6, {"gpu_index": 2}),
        ({"LOCAL_RANK": "1", "SLURM_LOCALID": "0"}, 5, {"gpu_index": 1}),
        ({"OMPI_COMM_WORLD_LOCAL_RANK": "2"}, 6, {"gpu_index": 2}),
        # CUDA counts what it may see.
        ({"CUDA_VISIBLE_DEVICES": "2,3", "LOCAL_RANK": "1"}, 1, {"gpu_uuid": "cuda:3"}),
        ({"CUDA_VISIBLE_DEVICES": "3,2", "LOCAL_RANK": "0"} | PCI, 0, {"gpu_index": 3}),
        ({"CUDA_VISIBLE_DEVICES": f"{B},{A}", "LOCAL_RANK": "0"}, 0, {"gpu_uuid": B}),
        ({"CUDA_VISIBLE_DEVICES": "2, 3"}, 1, {"gpu_uuid": "cuda:3"}),
        # Slurm gives each process its own.
        ({"CUDA_VISIBLE_DEVICES": "3", "SLURM_LOCALID": "3"}, 0, {"gpu_uuid": "cuda:3"}),
        ({"CUDA_VISIBLE_DEVICES": "0", "SLURM_LOCALID": "1"} | PCI, 1, {"gpu_index": 0}),
        # A container keeps the driver's order, whatever the order of the list.
        ({"NVIDIA_VISIBLE_DEVICES": "3,1", "LOCAL_RANK": "0"}, 0, {"gpu_index": 1}),
        ({"NVIDIA_VISIBLE_DEVICES": A}, 0, {"gpu_uuid": A}),
        ({"NVIDIA_VISIBLE_DEVICES": "2,3", "CUDA_VISIBLE_DEVICES": "1"}, 0, {"gpu_index": 3}),
        ({"NVIDIA_VISIBLE_DEVICES": "all", "LOCAL_RANK": "1"}, 1, {"gpu_index": 1}),
    ],
)
def test_each_way_of_counting(
    environment: dict[str, str], rank: int, found: dict[str, Any]
) -> None:
    """The driver's index or the UUID of the GPU that the process computes on."""
    assert gpu_of(environment, rank) == found


@pytest.mark.parametrize(
    ("environment", "rank", "words"),
    [
        ({"CUDA_VISIBLE_DEVICES": ""}, 0, "hides all GPUs"),
        ({"CUDA_VISIBLE_DEVICES": "-1,2"}, 0, "hides all GPUs"),
        ({"CUDA_VISIBLE_DEVICES": "2,-1,3", "LOCAL_RANK": "1"}, 1, ""),
        ({"CUDA_VISIBLE_DEVICES": "0,1", "LOCAL_RANK": "2"}, 2, "shows 2 GPUs"),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, 4, "shows 2 GPUs"),
        ({"CUDA_VISIBLE_DEVICES": "MIG-8f1b"}, 0, "part of a GPU"),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8f1b"}, 0, "no whole UUID"),
        ({"CUDA_VISIBLE_DEVICES": "tesla"}, 0, "'tesla'"),
        ({"NVIDIA_VISIBLE_DEVICES": f"{A},{B}", "LOCAL_RANK": "0"}, 0, "does not say which"),
        ({"NVIDIA_VISIBLE_DEVICES": "2", "LOCAL_RANK": "1"}, 1, "does not say which"),
        ({"NVIDIA_VISIBLE_DEVICES": "0:1"}, 0, "parts of GPUs"),
        ({"LOCAL_RANK": "one"}, 0, "LOCAL_RANK is 'one'"),
    ],
)
def test_in_doubt_it_is_an_error(environment: dict[str, str], rank: int, words: str) -> None:
    """Never a GPU that may be another job's."""
    if not words:  # Only what follows the end of the list is hidden.
        assert gpu_of(environment, rank) == {"gpu_uuid": "cuda:2"}
        return
    with pytest.raises(ValueError, match=words):
        gpu_of(environment, rank)


def test_no_gpu_is_named_twice_or_though_it_is_hidden() -> None:
    """Whatever is set: processes of a node get GPUs of their own, all of them visible ones."""
    draws = random.Random(41)
    for _ in range(2000):
        visible = draws.sample(range(8), draws.randint(1, 8))
        environment = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, visible))} | draws.choice(
            [{}, PCI]
        )
        found = []
        for local in range(len(visible)):
            name = draws.choice(["LOCAL_RANK", "SLURM_LOCALID"])
            gpu = gpu_of(environment | {name: str(local)}, local)
            found.append(int(str(gpu.get("gpu_index", gpu.get("gpu_uuid"))).rpartition(":")[2]))
        assert found == visible
        assert all(a != b for a, b in itertools.combinations(found, 2))
