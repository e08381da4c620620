# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Perseus: a client for training, each computation at its planned clock, and the planner.

>>> import perseus
>>> client = perseus.Client("http://127.0.0.1:7787", job_id="j-1", rank=3, dp_rank=0, pp_rank=3,
...                         device="agent:/run/perseus/agent.sock")
>>> for iteration in range(iterations):
...     with client.step(iteration):
...         with client.instruction("forward", stage=3, microbatch=0):
...             ...

Or one line for a framework (`docs/how-to/hooks.md`, `docs/how-to/frameworks.md`):

>>> perseus.attach(schedule)  # attach_megatron(), attach_deepspeed(engine)

The planner, for what is done before and besides:

>>> plan = perseus.plan("profile.csv", schedule="1f1b", microbatches=96, blocking_power=83.64)
>>> plan.saving_percent, plan.at("1.05x").clocks(stage=0)

All of it is `libperseus_client` and `libperseus_planner` through ctypes;
`docs/reference/python.md` and `docs/reference/client.md` describe it.
What is not a client is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from perseus.client import Client, Level, State, Stats
from perseus.library import Instruction
from perseus.shared_library import LibraryError

if TYPE_CHECKING:
    from perseus.dag import Dag
    from perseus.hooks.attached import Attached
    from perseus.hooks.data_parallel import attach_ddp
    from perseus.hooks.deepspeed import attach_deepspeed
    from perseus.hooks.job import Job
    from perseus.hooks.megatron import attach_megatron
    from perseus.hooks.torch_pipelining import attach
    from perseus.note import ImplausibleWarning, Note
    from perseus.planner import Frontier, Plan, Planner, PlannerError, plan

__all__ = [
    "Attached",
    "Client",
    "Dag",
    "Frontier",
    "ImplausibleWarning",
    "Instruction",
    "Job",
    "Level",
    "LibraryError",
    "Note",
    "Plan",
    "Planner",
    "PlannerError",
    "State",
    "Stats",
    "attach",
    "attach_ddp",
    "attach_deepspeed",
    "attach_megatron",
    "plan",
]

# Where names are that not everybody needs.
_LATER = {
    "Attached": "perseus.hooks.attached",
    "Dag": "perseus.dag",
    "Frontier": "perseus.planner",
    "ImplausibleWarning": "perseus.note",
    "Job": "perseus.hooks.job",
    "Note": "perseus.note",
    "Plan": "perseus.planner",
    "Planner": "perseus.planner",
    "PlannerError": "perseus.planner",
    "attach": "perseus.hooks.torch_pipelining",
    "attach_ddp": "perseus.hooks.data_parallel",
    "attach_deepspeed": "perseus.hooks.deepspeed",
    "attach_megatron": "perseus.hooks.megatron",
    "plan": "perseus.planner",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = value
    return value
