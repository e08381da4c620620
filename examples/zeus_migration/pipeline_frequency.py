# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Zeus' `PipelineFrequencyOptimizer`, as far as a trainer calls it, on Perseus' client.

A trainer that uses Zeus' changes its import, and says how many microbatches an iteration has:

    -from zeus.optimizer.pipeline_frequency import PipelineFrequencyOptimizer
    +from pipeline_frequency import PipelineFrequencyOptimizer

What it gains: plans that change while it runs (stragglers), clocks that come back however it dies,
calls ahead of time, no synchronisation around each computation, and training that goes on whatever
happens to the server.
"""

from __future__ import annotations

from typing import Any

import perseus
from perseus.hooks.layout import Layout, default_device, job_body, run_key


class PipelineFrequencyOptimizer:
    """One rank of a job in 1F1B order. Nothing here raises into training.

    Parameters
    ----------
    rank, dp_rank, pp_rank, tp_rank, device_id, dp_degree, pp_degree, tp_degree, world_size, \
server_url, job_metadata
        As Zeus' has them. With `job_metadata` = "perseus:KEY" the job is that of this client key,
        which `perseus job create --client-key KEY` made with its profile.
    microbatches
        Of an iteration.
    options
        More for `perseus.Job`: device, gpu_uuid, shadow, profile and so on.
    """

    def __init__(
        self,
        rank: int,
        dp_rank: int,
        pp_rank: int,
        tp_rank: int,
        device_id: int,
        dp_degree: int,
        pp_degree: int,
        tp_degree: int,
        world_size: int,
        server_url: str,
        job_metadata: str | None = None,
        *,
        microbatches: int,
        **options: Any,
    ) -> None:
        if dp_degree * pp_degree * tp_degree != world_size:
            raise ValueError("world_size is not dp_degree x pp_degree x tp_degree")  # As Zeus'.
        place = Layout(rank, pp_rank, pp_degree, dp_rank, dp_degree, tp_rank, tp_degree)
        body = job_body(
            place,
            schedule={"schedule": "1f1b"},
            stages=pp_degree,
            microbatches=microbatches,
            run=run_key() or job_metadata or "zeus",
        )
        if job_metadata and job_metadata.startswith("perseus:"):
            body["client_key"] = job_metadata.removeprefix("perseus:")
        options.setdefault("device", default_device())
        options.setdefault("profile", True)
        self.job = perseus.Job(
            server_url,
            job=body,
            rank=rank,
            dp_rank=dp_rank,
            pp_rank=pp_rank,
            tp_rank=tp_rank,
            gpu_index=device_id,
            **options,
        )

    def on_step_begin(self) -> None:
        """Mark the begin of an iteration."""
        self.job.step_begin()

    def on_step_end(self) -> None:
        """Mark its end."""
        self.job.step_end()

    def on_instruction_begin(self, name: str) -> None:
        """Mark the begin of a "forward" or "backward"."""
        self.job.begin(name)

    def on_instruction_end(self, name: str) -> None:
        """Mark its end."""
        self.job.end(name)

    def close(self) -> None:
        """Give the clock back; Zeus' does so when the process exits, and so does this."""
        self.job.close()
