# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The program `perseus`, which the package brings along, and what it answers."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perseus import profile_table
from perseus.planner_error import PlannerError
from perseus.planner_input import jsonable, settings_json
from perseus.settings import Conditions, JobSettings, PlanSettings

if TYPE_CHECKING:
    from typing import Protocol

    from perseus.planner_input import Setting

    class Plan(Protocol):
        """What has the text of a plan.json."""

        def json(self) -> str:
            """Return it."""


DISTRIBUTION = "perseus-energy"
_WRONG_INPUT = 2
_JOB_FILE = "job.json"


class ProgramError(RuntimeError):
    """The program `perseus` is not there, or it failed."""


def find() -> str:
    """Return the program's path: `$PERSEUS_BINARY`, that of the package, or one on the path.

    Raises
    ------
    ProgramError
        There is none.
    """
    named = os.environ.get("PERSEUS_BINARY")
    if named and not os.access(named, os.X_OK):
        raise ProgramError(f"PERSEUS_BINARY names {named}, which is no program")
    found = named or _installed() or shutil.which("perseus")
    if not found:
        raise ProgramError(
            f"the program perseus is not installed; `pip install` a wheel of {DISTRIBUTION}, or "
            "name the program in PERSEUS_BINARY"
        )
    return found


def _installed() -> str | None:
    try:
        files = importlib.metadata.files(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.parts[-2:] == ("bin", "perseus"):
            return str(Path(str(file.locate())).resolve())
    return None


def answer(*arguments: str) -> Any:
    """Return what the program says with ``--json``.

    Raises
    ------
    PlannerError
        With its sentence, where the input is wrong.
    ProgramError
        Where it is not there, or fails.
    """
    command = [find(), *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    sentence = done.stderr.strip().removeprefix("perseus: ")
    if done.returncode == _WRONG_INPUT:
        raise PlannerError(sentence)
    if done.returncode != 0:
        raise ProgramError(f"perseus {arguments[0]} failed ({done.returncode}): {sentence}")
    return json.loads(done.stdout)


def explain(plan: Plan) -> dict[str, Any]:
    """Return what `perseus explain` says of a plan."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "plan.json")
        path.write_text(plan.json(), encoding="utf-8")
        explained: dict[str, Any] = answer("explain", str(path))
        return explained


def emulate(
    profile: object,
    schedule: object = None,
    microbatches: int | None = None,
    blocking_power: float | Sequence[float] | None = None,
    *,
    plan: Plan | None = None,
    **options: Setting,
) -> dict[str, Any]:
    """Simulate a whole job: `perseus emulate`, whose JSON is returned (docs/reference/cli.md).

    Parameters
    ----------
    profile, schedule, microbatches, blocking_power
        As for `perseus.Planner`.
    plan
        The plan that is followed; None: that of a policy.
    options
        Every long flag of `perseus emulate` by its name: iterations=200, noise="1%",
        policy="zeus-global", compare=True, ... Also the keys of a job file.

    Raises
    ------
    PlannerError
        With the sentence that `perseus emulate` says of the same input.
    ProgramError
        There is no program `perseus`.
    """
    job, flags = _of_job(options)
    job.update(microbatches=microbatches, blocking_power=blocking_power)
    order = None if schedule is None else profile_table.schedule_csv(schedule)
    if order is not None:
        job["schedule_csv"] = order
    elif schedule is not None:
        is_file = str(schedule).endswith(".csv")
        job["schedule_file" if is_file else "schedule"] = (
            os.path.abspath(str(schedule)) if is_file else schedule
        )
    with tempfile.TemporaryDirectory() as folder:

        def written(name: str, text: str) -> str:
            Path(folder, name).write_text(text, encoding="utf-8")
            return str(Path(folder, name))

        if isinstance(profile, (str, os.PathLike)) and profile_table.is_path(profile):
            path = profile_table.path_text(profile)
        elif isinstance(profile, str):
            path = written("profile.csv", profile)
        else:
            path = written("profile.csv", profile_table.profile_csv(profile))
        job["profile"] = os.path.abspath(path)
        if plan is not None:
            flags["plan"] = written("plan.json", plan.json())
        file = written(_JOB_FILE, settings_json(job).decode())
        try:
            emulated: dict[str, Any] = answer("emulate", file, *_flags(flags))
        except PlannerError as error:
            # Nobody has seen the file: the setting is named as it was given.
            sentence = re.sub(re.escape(file) + r":\d+:\d+: ", "", str(error))
            raise PlannerError(sentence, error.code) from None
        return emulated


def _of_job(options: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Return what a job file says of these options, and what is left: flags of the command."""
    keys = {*JobSettings.__annotations__, *PlanSettings.__annotations__}
    job: dict[str, object] = {}
    conditions: dict[str, object] = {}
    flags: dict[str, object] = {}
    for key, value in options.items():
        if key == "conditions" and isinstance(value, Mapping):
            conditions.update(value)
        elif key in Conditions.__annotations__:
            conditions[key] = value
        else:
            (job if key in keys else flags)[key] = value
    conditions = {key: jsonable(value) for key, value in conditions.items() if value is not None}
    if conditions:
        job["conditions"] = conditions
    for key, kind in JobSettings.__annotations__.items():
        value = jsonable(job.get(key))
        if "_Path" in str(kind) and isinstance(value, str):
            job[key] = os.path.abspath(value)  # Not from the folder of the job file.
    return job, flags


def _flags(options: Mapping[str, object]) -> list[str]:
    """Return options of a command as its flags."""
    flags: list[str] = []
    for key, given in options.items():
        value = jsonable(given)
        if value is None or value is False:
            continue
        name = "--" + key.replace("_", "-")
        if isinstance(value, list):
            value = ",".join(map(str, value))
        flags += [name] if value is True else [name, str(value)]
    return flags
