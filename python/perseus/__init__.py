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

>>> perseus.attach(schedule)  # attach_megatron(), attach_deepspeed(engine), attach_ddp(model)

The planner, for what is done before and besides:

>>> plan = perseus.plan("profile.csv", schedule="1f1b", microbatches=96, blocking_power=83.64)
>>> plan.saving_percent, plan.at("1.05x").clocks(stage=0)

All of it is `libperseus_client` and `libperseus_planner` through ctypes (and a wrapper of hooks
compiled, where that could be built);
`docs/reference/python.md` and `docs/reference/client.md` describe it.
What is not a client is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perseus.client import Client, Level, State, Stats
from perseus.library import Instruction
from perseus.shared_library import LibraryError

if TYPE_CHECKING:
    from perseus.dag import Dag
    from perseus.hooks.attached import Attached, AttachError
    from perseus.hooks.callbacks import (
        lightning_callback,
        megatron_callback,
        transformers_callback,
    )
    from perseus.hooks.data_parallel import attach_ddp
    from perseus.hooks.deepspeed import attach_deepspeed
    from perseus.hooks.job import Job
    from perseus.hooks.megatron import attach_megatron
    from perseus.hooks.report import Report
    from perseus.hooks.torch_pipelining import attach
    from perseus.hooks.torchtitan import attach_torchtitan
    from perseus.measuring import Measured, MeasureError, measure
    from perseus.note import ImplausibleWarning, Note
    from perseus.planner import Frontier, Plan, Planner, plan
    from perseus.planner_error import (
        CancelledError,
        InfeasibleError,
        InputFileError,
        InternalError,
        InvalidInputError,
        OutOfMemoryError,
        PlannerError,
        TooLargeError,
    )
    from perseus.profile import Profile
    from perseus.program import ProgramError, emulate, fleet_emulate, fleet_plan
    from perseus.settings import Conditions, JobSettings, PlanSettings

    __version__: str

__all__ = [
    "AttachError",
    "Attached",
    "CancelledError",
    "Client",
    "Conditions",
    "Dag",
    "Frontier",
    "ImplausibleWarning",
    "InfeasibleError",
    "InputFileError",
    "Instruction",
    "InternalError",
    "InvalidInputError",
    "Job",
    "JobSettings",
    "Level",
    "LibraryError",
    "MeasureError",
    "Measured",
    "Note",
    "OutOfMemoryError",
    "Plan",
    "PlanSettings",
    "Planner",
    "PlannerError",
    "Profile",
    "ProgramError",
    "Report",
    "State",
    "Stats",
    "TooLargeError",
    "__version__",
    "attach",
    "attach_ddp",
    "attach_deepspeed",
    "attach_megatron",
    "attach_torchtitan",
    "emulate",
    "fleet_emulate",
    "fleet_plan",
    "lightning_callback",
    "measure",
    "megatron_callback",
    "plan",
    "transformers_callback",
]

# Modules of names that few need.
_LATER = {
    name: f"perseus.{module}"
    for module, names in {
        "dag": "Dag",
        "hooks.attached": "AttachError Attached",
        "hooks.callbacks": "lightning_callback megatron_callback transformers_callback",
        "hooks.data_parallel": "attach_ddp",
        "hooks.deepspeed": "attach_deepspeed",
        "hooks.job": "Job",
        "hooks.megatron": "attach_megatron",
        "hooks.report": "Report",
        "hooks.torch_pipelining": "attach",
        "hooks.torchtitan": "attach_torchtitan",
        "measuring": "Measured MeasureError measure",
        "note": "ImplausibleWarning Note",
        "planner": "Frontier Plan Planner plan",
        "planner_error": "CancelledError InfeasibleError InputFileError InternalError "
        "InvalidInputError OutOfMemoryError PlannerError TooLargeError",
        "profile": "Profile",
        "program": "ProgramError emulate fleet_emulate fleet_plan",
        "settings": "Conditions JobSettings PlanSettings",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = _version()
    elif name in _LATER:
        value = getattr(importlib.import_module(_LATER[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    """Return the version of the package; in a checkout, that of its source."""
    header = Path(__file__).parents[2] / "include" / "perseus" / "version.h"
    if header.exists():
        _, _, rest = header.read_text(encoding="utf-8").partition('PERSEUS_VERSION_STRING "')
        return rest.partition('"')[0]
    metadata = importlib.import_module("importlib.metadata")
    return str(metadata.version("perseus-energy"))
