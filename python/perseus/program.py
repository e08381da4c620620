# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The program `perseus`, which the package brings along, and what it answers."""

from __future__ import annotations

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
    from collections.abc import Callable
    from typing import Protocol

    from perseus.planner_input import Setting

    class Plan(Protocol):
        """What has the text of a plan.json."""

        def json(self) -> str:
            """Return it."""


DISTRIBUTION = "perseus-energy"
_WRONG_INPUT = 2
_JOB_FILE = "job.json"
_SITE_FILE = "site.json"


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
    """Return the program that the wheel brings; its `perseus` on the path is `perseus.__main__`."""
    program = Path(__file__).with_name("bin") / "perseus"
    return str(program.resolve()) if os.access(program, os.X_OK) else None


def answer(*arguments: str) -> Any:
    """Return what the program says with ``--json``: also why nothing can be done, as data.

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
    if done.returncode == _WRONG_INPUT and not done.stdout:
        raise PlannerError(sentence)
    if done.returncode not in (0, _WRONG_INPUT):
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
        The plan that is followed; None: the one that `perseus plan` makes.
    options
        Every long flag of `perseus emulate` by its name: iterations=200, noise="1%",
        straggler="slow=1.2", ... Also the keys of a job file.

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
            # No file was seen: the setting is named as it was given.
            sentence = re.sub(re.escape(file) + r":\d+:\d+: ", "", str(error))
            raise PlannerError(sentence, error.code) from None
        return emulated


def fleet_plan(site: Setting | Mapping[str, object], **options: Setting) -> dict[str, Any]:
    """Divide a site's power among its jobs: `perseus fleet plan`, whose JSON is returned.

    Parameters
    ----------
    site
        The path of a site file, or what one says as a mapping (docs/reference/files.md): power,
        objective, job=[{...}, ...]. Relative paths in a mapping begin in the working folder.
    options
        Every long flag of `perseus fleet plan` by its name: server="http://...", output="DIR".

    Raises
    ------
    PlannerError
        With the sentence that `perseus fleet plan` says of the same input. Where nothing fits the
        budget, the answer has feasible=False, and says which limit and what would mend it.
    ProgramError
        There is no program `perseus`.
    """
    return _of_site(site, lambda file: answer("fleet", "plan", file, *_flags(options)))


def fleet_emulate(
    site: Setting | Mapping[str, object],
    *,
    days: float = 7.0,
    seeds: int = 1,
    seed: int = 0,
    output: str | None = None,
) -> dict[str, Any]:
    """Run a site for days under one rule after the other: `perseus fleet emulate`.

    As `fleet_plan`; it needs NumPy, pandas and SciPy.
    """
    from perseus.analysis import fleet

    return _of_site(
        site,
        lambda file: fleet.emulate(file, length=days, seeds=seeds, seed=seed, output=output),
    )


def _of_site(
    site: Setting | Mapping[str, object], ask: Callable[[str], dict[str, Any]]
) -> dict[str, Any]:
    """Return what is said of a site file, which is written if it is a mapping."""
    if not isinstance(site, Mapping):
        return ask(str(site))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, _SITE_FILE)
        file.write_text(json.dumps(jsonable(_with_absolute_paths(site))), encoding="utf-8")
        place = re.compile(re.escape(str(file)) + r"(:\d+:\d+)?: ")  # No user has seen the file.
        try:
            divided = ask(str(file))
        except PlannerError as error:
            raise PlannerError(place.sub("", str(error)), error.code) from None
        if "sentence" in divided:
            divided["sentence"] = place.sub("", divided["sentence"])
        return divided


def _with_absolute_paths(site: Mapping[str, object]) -> dict[str, object]:
    """Return a site whose paths do not begin in the folder of its file."""
    paths = {"job", "plan", "price", "carbon"}
    paths |= {key for key, kind in JobSettings.__annotations__.items() if "_Path" in str(kind)}

    def absolute(key: str, value: object) -> object:
        if isinstance(value, Mapping):
            return {inner: absolute(inner, each) for inner, each in value.items()}
        if isinstance(value, (list, tuple)) and any(isinstance(each, Mapping) for each in value):
            return [absolute("", each) for each in value]
        is_path = key in paths and isinstance(value, (str, os.PathLike))
        return os.path.abspath(str(value)) if is_path else value

    return {key: absolute(key, value) for key, value in site.items()}


def _of_job(options: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Return what a job file says of these options, and what is left: flags of the command."""
    keys = {*JobSettings.__annotations__, *PlanSettings.__annotations__}
    job: dict[str, object] = {}
    conditions: dict[str, object] = {}
    measures = options.get("conditions") is not None  # Also where the table is empty.
    flags: dict[str, object] = {}
    for key, value in options.items():
        if key == "conditions" and isinstance(value, Mapping):
            conditions.update(value)
        elif key in Conditions.__annotations__:
            conditions[key] = value
        else:
            (job if key in keys else flags)[key] = value
    conditions = {key: jsonable(value) for key, value in conditions.items() if value is not None}
    if conditions or measures:
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
