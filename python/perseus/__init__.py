# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The client of Perseus for a process that trains: each computation at its planned clock.

>>> import perseus
>>> client = perseus.Client("http://127.0.0.1:7787", job_id="j-1", rank=3, dp_rank=0, pp_rank=3,
...                         device="agent:/run/perseus/agent.sock")
>>> for iteration in range(iterations):
...     with client.step(iteration):
...         with client.instruction("forward", stage=3, microbatch=0):
...             ...

All of it is `libperseus_client` through ctypes; `docs/client.md` describes it.
"""

from perseus.client import Client, Level, State, Stats
from perseus.hooks.deepspeed import attach_deepspeed
from perseus.hooks.job import Job
from perseus.hooks.megatron import attach_megatron
from perseus.hooks.torch_pipelining import Attached, attach
from perseus.library import Instruction, LibraryError

__all__ = [
    "Attached",
    "Client",
    "Instruction",
    "Job",
    "Level",
    "LibraryError",
    "State",
    "Stats",
    "attach",
    "attach_deepspeed",
    "attach_megatron",
]
