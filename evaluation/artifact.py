# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the public artifact of the Perseus paper: sosp24_data of ml-energy/zeus, branch kronos."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from perseus import PlannerError

FOLDERS = ("emulation", "perseus", "envpipe", "zeus", "workloads")
MODELS, DEVICES, MICROBATCHES = ("gpt3-175b", "bloom"), ("a100_sxm", "a40"), (12, 24, 48, 96)
BLOCKING_WATTS = {"A100": 83.64, "a100_sxm": 83.64, "A40": 70.38, "a40": 70.38}
# Profiles and frontiers are of a tenth of a stage, and of one of its GPUs.
SCALE = 10
TENSOR_PARALLEL = 8
WARM_UP = 2  # Plans, and iterations of a run.


class Point(NamedTuple):
    """An iteration of a job: seconds, joules of all its GPUs."""

    time: float
    energy: float


class Case(NamedTuple):
    """An emulated job of Table 6."""

    model: str
    device: str
    microbatches: int
    profile: Path
    frontier: Path

    def __str__(self) -> str:
        """Name it."""
        device = self.device.upper().replace("_", " ")
        return f"{self.model}, {device}, {self.microbatches} microbatches"


class Workload(NamedTuple):
    """A real job."""

    gpu: str
    model: str
    partition: str
    dp: int
    pp: int
    tp: int
    microbatch_size: int
    microbatches: int

    @property
    def layout(self) -> str:
        """As folders are named."""
        return f"dp{self.dp}+pp{self.pp}+tp{self.tp}"

    @property
    def file(self) -> str:
        """As profiles and summaries are named."""
        sizes = f"dp{self.dp}_tp{self.tp}_pp{self.pp}_mbs{self.microbatch_size}"
        return f"{self.gpu}_{self.model}_{sizes}_nmb{self.microbatches}.csv"

    def __str__(self) -> str:
        """Name it."""
        return f"Job {self.model} on {self.gpu} ({self.layout})"


def find(folder: str) -> Path:
    """Return the artifact's root."""
    root = Path(folder)
    for each in (root, root / "sosp24_data"):
        if any((each / name).is_dir() for name in FOLDERS):
            return each
    raise PlannerError(
        f"{folder}: holds nothing of the paper's artifact (none of {'/, '.join(FOLDERS)}/); give "
        "sosp24_data of the repository ml-energy/zeus, branch kronos"
    )


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; none where it is absent."""
    return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []


def table(path: Path, texts: tuple[str, ...], numbers: tuple[str, ...]) -> pd.DataFrame:
    """Return columns of a CSV.

    Raises
    ------
    PlannerError
        With the file, and the line and column of what is no number.
    """
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise PlannerError(f"{path}: {error}") from None
    for name in (*texts, *numbers):
        if name not in frame.columns:
            raise PlannerError(
                f"{path}: the header has no column '{name}'; is it from the artifact?"
            )
    frame = frame[[*texts, *numbers]].copy()
    for name in numbers:
        values = pd.to_numeric(frame[name], errors="coerce")
        wrong = ~np.isfinite(values) | (values < 0)
        if wrong.any():
            place = int(np.argmax(wrong))
            raise PlannerError(
                f"{path}:{place + 2}: {name} {frame[name].iloc[place]!r} is no number >= 0"
            )
        frame[name] = [float(cell) for cell in frame[name]]
    return frame


def emulations(root: Path, missing: list[str]) -> list[Case]:
    """Return the emulated jobs, and say what is missing."""
    cases = []
    frontiers = root / "emulation/iteration_time_energy"
    for device in names_in(frontiers):
        for name in names_in(frontiers / device):
            parsed = re.fullmatch(r"(.+)_bf16_mb([1-9]\d{0,5})\.csv", name)
            if not parsed:
                continue
            model, microbatches = parsed[1], int(parsed[2])
            profile = f"emulation/stage_profile/{model}+{device}_bf16.csv"
            what = f"Emulation of {model} on {device}, {microbatches} microbatches"
            if not (root / profile).is_file():
                missing.append(f"{what}: {profile} is absent, so it is left out.")
            elif device not in BLOCKING_WATTS:
                missing.append(
                    f"{what}: the paper states no blocking power for this GPU, so it is left out."
                )
            else:
                path = frontiers / device / name
                cases.append(Case(model, device, microbatches, root / profile, path))
    for model, device in itertools.product(MODELS, DEVICES):
        file = f"emulation/iteration_time_energy/{device}/{model}_bf16_mb{{}}.csv"
        absent = [str(n) for n in MICROBATCHES if not (root / file.format(n)).is_file()]
        if absent:
            missing.append(
                f"Emulation of {model} on {device}: no published frontier for {', '.join(absent)} "
                f"microbatches ({file.format(absent[0])}), so these cells of Table 6 and Figures 7 "
                "and 8 are left out."
            )

    def place(case: Case) -> tuple[object, ...]:
        known = [
            names.index(name) if name in names else len(names)
            for names, name in ((MODELS, case.model), (DEVICES, case.device))
        ]
        return known[0], case.model, known[1], case.device, case.microbatches

    return sorted(cases, key=place)


def stage_profile(path: Path) -> dict[str, list[object]]:
    """Return a profile of whole stages, as columns."""
    frame = table(path, ("stage", "instruction", "frequency"), ("time", "energy"))
    frame[["time", "energy"]] *= SCALE
    return {str(name): list(frame[name]) for name in frame}


def frontier(path: Path) -> list[Point]:
    """Return a published frontier, of whole stages with all their GPUs."""
    frame = table(path, (), ("time", "energy"))
    if frame.empty:
        raise PlannerError(f"{path}: has no rows; expected a frontier")
    return [
        Point(time * SCALE, energy * (SCALE * TENSOR_PARALLEL))
        for time, energy in zip(frame["time"], frame["energy"], strict=True)
    ]


def envpipe_results(root: Path) -> dict[tuple[str, str, int], Point]:
    """Return EnvPipe's published results by model, device and microbatches."""
    path = root / "emulation/envpipe_result.csv"
    if not path.is_file():
        return {}
    frame = table(path, ("model", "device"), ("num_microbatches", "iteration_time", "energy"))
    return {
        (model, device, int(count)): Point(time, energy)
        for model, device, count, time, energy in frame.itertuples(index=False)
    }


_RUN = re.compile(
    r"(?:.*\+)?([^+]+)\+([^+]+)\+dp(\d+)\+pp(\d+)\+tp(\d+)\+mbs(\d+)\+nmb(\d+)\+(PointSolution[^+]*)"
)


def _run(gpu: str, name: str) -> Workload | None:
    parsed = _RUN.fullmatch(name)
    if not parsed:
        return None
    dp, pp, tp, size, count = (int(each) for each in parsed.groups()[2:7])
    return Workload(gpu, parsed[1], parsed[2], dp, pp, tp, size, count)


def workloads(root: Path) -> list[Workload]:
    """Return the real jobs that the artifact lists or has runs of."""
    found = []
    sizes = ("dp", "pp", "tp", "microbatch_size", "num_microbatches")
    for layout in names_in(root / "workloads"):
        for name in names_in(root / "workloads" / layout):
            if name.startswith("models_") and name.endswith(".csv"):
                rows = table(
                    root / "workloads" / layout / name, ("model", "partition_method"), sizes
                )
                for model, partition, *counts in rows.itertuples(index=False):
                    found.append(Workload(name[7:-4], model, partition, *map(int, counts)))
    for system in ("perseus", "envpipe"):
        for gpu in names_in(root / system):
            for layout in names_in(root / system / gpu):
                found += [
                    run
                    for name in names_in(root / system / gpu / layout)
                    if (run := _run(gpu, name))
                ]
    return list(dict.fromkeys(found))


def run_folder(root: Path, system: str, workload: Workload) -> tuple[Path, int] | None:
    """Return the folder of a job's runs, and how many plans of it are warm-up."""
    folder = root / system / workload.gpu / workload.layout
    found = [name for name in names_in(folder) if _run(workload.gpu, name) == workload]
    if not found:
        return None
    return folder / found[-1], 0 if found[-1].endswith("PointSolution3D") else WARM_UP


def plans_in(folder: Path, kind: str) -> list[int]:
    """Return the numbers of a folder's N.prof.json or N.sched.json."""
    names = (re.fullmatch(rf"(\d+)\.{kind}\.json", name) for name in names_in(folder))
    return sorted(int(name[1]) for name in names if name)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise PlannerError(f"{path}: {error}") from None


def measurement(folder: Path, plan: int) -> Point:
    """Return a measured plan: the slowest rank's time, the energy of all, in the mean."""
    path = folder / f"{plan}.prof.json"
    try:
        ranks = [(rank["iter_time"], rank["iter_energy"]) for rank in _json(path)]
        times, energies = (np.array(each, dtype=float) for each in zip(*ranks, strict=True))
        if times.shape != energies.shape or times.shape[1] <= WARM_UP or (times <= 0).any():
            raise ValueError("expected as many times and energies, and more than two")
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise PlannerError(f"{path}: this is no measurement of ranks: {error}") from None
    slowest, total = times.max(axis=0)[WARM_UP:], energies.sum(axis=0)[WARM_UP:]
    return Point(float(np.mean(slowest)), float(np.mean(total)))


def summary(path: Path) -> list[Point]:
    """Return measured plans of a summary, but for those of warm-up."""
    rows = table(path, (), ("plan_index", "iteration_time_s", "iteration_energy_J"))
    rows = rows[rows["plan_index"] >= WARM_UP].sort_values("plan_index", kind="stable")
    return [Point(time, energy) for _, time, energy in rows.itertuples(index=False)]


def clocks(folder: Path, plan: int) -> list[list[float]]:
    """Return the clocks that a published plan gives the instructions of each rank."""
    path = folder / f"{plan}.sched.json"
    try:
        found = {
            int(each["rank"]): [float(c) for c in each["power_states"]] for each in _json(path)
        }
        return [found[rank] for rank in range(len(found))]
    except (KeyError, TypeError, ValueError) as error:
        raise PlannerError(f"{path}: this is no list of clocks: {error!r}") from None


def zeus_rows(path: Path, workload: Workload) -> list[tuple[float, Point]]:
    """Return the measured power limits of a job, and what an iteration takes and uses."""
    if not path.is_file():
        return []
    sizes = ("dp", "pp", "tp", "microbatch_size", "num_microbatches")
    columns = (*sizes, "power_limit_0", "time", "energy")
    frame = table(path, ("model_name", "partition_method"), columns)
    wanted = (workload.model, workload.partition, *(float(each) for each in workload[3:]))
    return [
        (row[7], Point(row[8], row[9]))
        for row in frame.itertuples(index=False)
        if tuple(row[:7]) == wanted
    ]
