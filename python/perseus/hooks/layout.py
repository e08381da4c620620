# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Where a rank stands, and what a job is called: for the hooks of frameworks."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_SERVER = "http://127.0.0.1:7787"
DEFAULT_AGENT = "/run/perseus/agent.sock"

_NO_ID = "none"  # As torchrun has it.
_TORCHRUN = ("torchrun", "torch.distributed.run", "torch/distributed/run.py")
_TORCHRUN_WORDS = 6  # python -u -m torch.distributed.run ...
_MOST_PARENTS = 8  # A shell or a tool may stand between a rank and torchrun.

# Dimensions of a device mesh by what they do to a stage: copies that train on other data, or
# ranks that compute one microbatch together. Expert parallel ranks are data parallel ones.
_PIPELINE = {"pp", "pipe", "pipeline", "pipeline_parallel"}
_REPLICAS = {"dp", "ddp", "fsdp", "dp_replicate", "dp_shard", "hsdp", "data", "data_parallel", "ep"}
_TOGETHER = {"tp", "cp", "sp", "tensor", "context", "model", "tensor_parallel", "context_parallel"}


class LayoutError(ValueError):
    """A layout that cannot be told from what the framework says; the message says what to give."""


@dataclass(frozen=True)
class Layout:
    """The place of a rank, and the sizes of the job.

    Attributes
    ----------
    tp_rank, tp
        Of all ranks that compute a microbatch of a stage together: tensor and context parallel.
    dp_rank, dp
        Of the pipelines: data and expert parallel.
    """

    rank: int = 0
    pp_rank: int = 0
    pp: int = 1
    dp_rank: int = 0
    dp: int = 1
    tp_rank: int = 0
    tp: int = 1


def layout_of_mesh(mesh: Any, rank: int) -> Layout:
    """Return the place that a `torch.distributed.device_mesh.DeviceMesh` gives this rank.

    Raises
    ------
    LayoutError
        It has dimensions without names, or with names that are not known.
    """
    names = mesh.mesh_dim_names
    coordinate = mesh.get_coordinate()
    if not names or coordinate is None:
        raise LayoutError("the device mesh has no names or not this rank; give dp_rank and tp_rank")
    sizes = {"pp": 1, "dp": 1, "tp": 1}
    ranks = {"pp": 0, "dp": 0, "tp": 0}
    for index, name in enumerate(names):
        kind = _kind_of(name.lower())
        size = int(mesh.size(index))
        ranks[kind] = ranks[kind] * size + int(coordinate[index])
        sizes[kind] *= size
    return Layout(
        rank=rank,
        pp_rank=ranks["pp"],
        pp=sizes["pp"],
        dp_rank=ranks["dp"],
        dp=sizes["dp"],
        tp_rank=ranks["tp"],
        tp=sizes["tp"],
    )


def _kind_of(name: str) -> str:
    for kind, names in (("pp", _PIPELINE), ("dp", _REPLICAS), ("tp", _TOGETHER)):
        if name in names:
            return kind
    raise LayoutError(
        f"the device mesh has a dimension {name!r}, which may be data or tensor parallel; "
        "give dp_rank, dp, tp_rank and tp"
    )


def layout_of_group(ranks: Sequence[int], rank: int, world: int, tp: int = 1) -> Layout:
    """Return the place of a rank whose pipeline consists of `ranks`, in order of their stages.

    All pipelines are taken to lie as this one does: each rank so many after the one before it.
    Ranks that compute a microbatch together (`tp`) are taken to be neighbours.

    Raises
    ------
    LayoutError
        They lie otherwise.
    """
    size = len(ranks)
    step = ranks[1] - ranks[0] if size > 1 else 1
    regular = all(b - a == step for a, b in zip(ranks, ranks[1:]))
    replicas, left = divmod(world, size * tp)
    if not regular or step < 1 or left or world % (step * size):
        raise LayoutError(
            f"the pipeline has the ranks {list(ranks)} of {world}, from which the others' cannot "
            "be told; give mesh=, or dp_rank, dp, tp_rank and tp"
        )
    # Of the world without its pipelines: which column this one is.
    column = rank // (step * size) * step + rank % step
    return Layout(
        rank=rank,
        pp_rank=list(ranks).index(rank),
        pp=size,
        dp_rank=column // tp,
        dp=replicas,
        tp_rank=column % tp,
        tp=tp,
    )


def job_body(
    layout: Layout,
    *,
    schedule: Mapping[str, object],
    stages: int,
    microbatches: int,
    run: str,
    name: str | None = None,
    profile_csv: str | None = None,
    settings: Mapping[str, object] | None = None,
    labels: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """Return the body of ``POST /api/v1/jobs``: the same on all ranks.

    Parameters
    ----------
    layout
        Its sizes.
    schedule
        ``{"schedule": NAME, "virtual_stages": V}`` or what else says the order.
    stages, microbatches
        Of a pipeline.
    run
        What this run of the trainer is known by (`run_key`); another shape is another job.
    name, profile_csv
        As in the body.
    settings
        More keys of the object "job": ``blocking_power``, ``at`` and so on.
    labels
        Of the job. They come before those of `$PERSEUS_LABELS`: see `labels_of_run`.

    Raises
    ------
    ValueError
        `$PERSEUS_LABELS` is not of the form ``team=vision,project=x``.
    """
    job = {
        **schedule,
        "stages": stages,
        "microbatches": microbatches,
        "dp": layout.dp,
        "tp": layout.tp,
        **(settings or {}),
    }
    text = json.dumps([job, profile_csv], sort_keys=True)
    shape = hashlib.sha256(text.encode()).hexdigest()[:12]
    body: dict[str, object] = {"client_key": f"{run}-{shape}", "name": name or run, "job": job}
    if labels is not None and not isinstance(labels, Mapping):
        raise TypeError(f'labels={labels!r}: write them as {{"team": "vision"}}')
    if all_labels := {**labels_of_run(), **(labels or {})}:
        body["labels"] = all_labels
    if profile_csv is not None:
        body["profile_csv"] = profile_csv
    return body


def labels_of_run(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the labels in `$PERSEUS_LABELS`: ``team=vision,project=x``.

    Which ones are allowed is the server's to say.
    """
    labels: dict[str, str] = {}
    for word in environment.get("PERSEUS_LABELS", "").split(","):
        if not word.strip():
            continue
        name, separator, value = word.strip().partition("=")
        if not separator or name in labels:
            wrong = "has no value" if not separator else "is there twice"
            raise ValueError(f"PERSEUS_LABELS: {name!r} {wrong}; write it as team=vision,project=x")
        labels[name] = value
    return labels


def run_key(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return what all ranks of this run, restarted ones too, know it by; None: nothing.

    `$PERSEUS_RUN`, else Slurm's job and step, else torchrun's run id. On one node torchrun takes a
    random id in place of its `--rdzv-id`: each time that it is started, another one. The id that
    was given is then looked for, and stands for this node's run alone.
    """
    if environment.get("PERSEUS_RUN"):
        return environment["PERSEUS_RUN"]
    slurm = environment.get("SLURM_JOB_ID")
    if slurm:
        return f"slurm-{slurm}.{environment.get('SLURM_STEP_ID', '0')}"
    elastic = environment.get("TORCHELASTIC_RUN_ID")
    if not elastic or elastic == _NO_ID:
        return None
    given = environment.get("PET_RDZV_ID") or _rdzv_id(_torchrun())
    if not given or given == elastic:
        return f"torchrun-{elastic}"
    return f"torchrun-{given}@{socket.gethostname()}"


def _rdzv_id(command: Sequence[str]) -> str:
    """Return `--rdzv-id` of a command line of torchrun; empty: there is none."""
    for word, after in zip(command, [*command[1:], ""]):
        flag, _, value = word.partition("=")
        if flag in ("--rdzv-id", "--rdzv_id"):
            value = value or after
            return "" if value == _NO_ID else value
    return ""


def _torchrun() -> list[str]:
    """Return the command line of the torchrun that this process is of; empty: it is not found."""
    process = os.getppid()
    for _ in range(_MOST_PARENTS):
        try:
            folder = Path(f"/proc/{process}")
            command = (folder / "cmdline").read_text(errors="replace").split("\0")
            if any(word.endswith(_TORCHRUN) for word in command[:_TORCHRUN_WORDS]):
                return command
            # "pid (name) state parent": a name may have spaces and brackets.
            process = int(
                (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
            )
        except (OSError, ValueError, IndexError):
            break
    return []


def default_device() -> str:
    """Return `$PERSEUS_DEVICE`, else the node's agent, which may be started later."""
    return os.environ.get("PERSEUS_DEVICE") or f"agent:{DEFAULT_AGENT}"
