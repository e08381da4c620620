# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Which GPU of the node is a process's own: the one place that knows how others count GPUs.

A driver counts the GPUs of a node in the order of their PCI addresses. A process may count
otherwise: CUDA counts what `$CUDA_VISIBLE_DEVICES` leaves, a container sees only what
`$NVIDIA_VISIBLE_DEVICES` names, and Slurm counts the processes of a node. An index that was counted
by another rule names a GPU of another job, so in doubt there is no answer but an error.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any

# How torchrun, Slurm, Open MPI and MPICH say which of the processes of a node this one is.
_LOCAL_RANKS = (
    "LOCAL_RANK",
    "SLURM_LOCALID",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
)
_UUID = re.compile(r"GPU-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_REMEDY = "pass gpu_uuid= (nvidia-smi -L lists them) or gpu_index= (as nvidia-smi counts)"


def add_gpu(device: Any, rank: int, options: dict[str, Any]) -> None:
    """Say whose clock a rank sets, where nobody did: that of its CUDA device, or see `gpu_of`.

    Parameters
    ----------
    device
        Of PyTorch; None: its current one, if it computes on CUDA.
    rank
        Of this process, where nothing says which of its node's processes it is.
    options
        Of a job; `gpu_uuid` or `gpu_index` is added. Where the environment does not say which GPU
        it is: `unknown_gpu`, a sentence that says why, and a `device` that sets no clock.
    """
    if "gpu_uuid" in options or "gpu_index" in options:
        return
    try:
        options.update(_gpu_of_device(device, rank))
    except ValueError as error:
        options.update(device="", unknown_gpu=str(error))


def _gpu_of_device(device: Any, rank: int) -> dict[str, Any]:
    """Return the GPU of a device of PyTorch, else see `gpu_of`."""
    torch: Any = sys.modules.get("torch")
    if device is None and torch is not None and torch.cuda.is_initialized():
        device = torch.device("cuda")
    if device is None or device.type != "cuda":
        return gpu_of(os.environ, rank)
    index = torch.cuda.current_device() if device.index is None else device.index
    identity = getattr(torch.cuda.get_device_properties(index), "uuid", None)
    if identity is not None:
        return {"gpu_uuid": f"GPU-{identity}"}
    return gpu_of(os.environ | {"LOCAL_RANK": str(index)}, rank)


def gpu_of(environment: Mapping[str, str], rank: int) -> dict[str, Any]:
    """Return the GPU of a process that has not begun to use CUDA.

    Parameters
    ----------
    environment
        Of the process.
    rank
        Its rank, where `environment` does not say which of its node's processes it is.

    Returns
    -------
    dict of str to object
        `gpu_index`, as the driver counts, or `gpu_uuid`: that of the GPU, or `"cuda:N"`, the N-th
        in CUDA's own order, which is the driver's only if all GPUs of the node are of one model.

    Raises
    ------
    ValueError
        The environment does not say which GPU it is.
    """
    local = _local_rank(environment)
    contained = _list(environment, "NVIDIA_VISIBLE_DEVICES")
    if contained in ([], ["all"], ["none"], ["void"]):
        contained = None
    visible = _list(environment, "CUDA_VISIBLE_DEVICES")
    if visible is None:
        number = rank if local is None else local
        return {"gpu_index": number} if contained is None else _of_container(contained, number)
    if not visible:
        raise ValueError(f"CUDA_VISIBLE_DEVICES hides all GPUs from this process: {_REMEDY}")
    place = 0 if len(visible) == 1 else rank if local is None else local
    if place >= len(visible):
        raise ValueError(
            f"CUDA_VISIBLE_DEVICES shows {len(visible)} GPUs to this process, and it is process "
            f"{place} (counted from 0) of its node: {_REMEDY}"
        )
    name = visible[place]
    if name.startswith("MIG-"):
        raise ValueError(
            f"CUDA_VISIBLE_DEVICES names {name}, a part of a GPU: a clock is that of the whole "
            "GPU, so Perseus sets none for it"
        )
    if _UUID.fullmatch(name) is not None:
        return {"gpu_uuid": name}
    if not name.isdecimal():
        raise ValueError(
            f"CUDA_VISIBLE_DEVICES names '{name}', which is no whole UUID and no number: {_REMEDY}"
        )
    if contained is not None:
        return _of_container(contained, int(name))
    if environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        return {"gpu_index": int(name)}
    return {"gpu_uuid": f"cuda:{int(name)}"}


def _local_rank(environment: Mapping[str, str]) -> int | None:
    """Return which of its node's processes this one is; None: nothing says it."""
    for name in _LOCAL_RANKS:
        text = environment.get(name)
        if text is None:
            continue
        if not text.isdecimal():
            raise ValueError(f"${name} is '{text}', expected a number from 0: {_REMEDY}")
        return int(text)
    return None


def _list(environment: Mapping[str, str], name: str) -> list[str] | None:
    """Return a list of GPUs up to the first that is none, as CUDA reads it; None: not set."""
    text = environment.get(name)
    if text is None:
        return None
    names: list[str] = []
    for each in (part.strip() for part in text.split(",")):
        if each in ("", "-1"):
            break
        names.append(each)
    return names


def _of_container(contained: list[str], number: int) -> dict[str, Any]:
    """Return the GPU that a container counts as `number`: it keeps the order of the driver."""
    if any(name.startswith("MIG-") or ":" in name for name in contained):
        raise ValueError(
            "NVIDIA_VISIBLE_DEVICES names parts of GPUs: a clock is that of a whole GPU, so "
            "Perseus sets none for them"
        )
    if number < len(contained):
        if all(name.isdecimal() for name in contained):
            return {"gpu_index": sorted(int(name) for name in contained)[number]}
        if len(contained) == 1 and _UUID.fullmatch(contained[0]) is not None:
            return {"gpu_uuid": contained[0]}
    raise ValueError(
        f"NVIDIA_VISIBLE_DEVICES={','.join(contained)} does not say which is GPU {number} of this "
        f"container: {_REMEDY}"
    )
