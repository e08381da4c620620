# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What every rank of a recorded job did, from CSV, Parquet, or traces of Kineto and Chrome.

docs/explanation/traces.md has the columns.
"""

from __future__ import annotations

import bisect
import gzip
import io
import json
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from perseus.planner_error import PlannerError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# Kinds of operations are numbers: places in this table. Rows are in its order.
KINDS = (
    "forward-compute",
    "backward-compute",
    "forward-send",
    "forward-recv",
    "backward-send",
    "backward-recv",
    "params-all-gather",
    "gc",
    "layernorm-grads-all-reduce",
    "embedding-grads-all-reduce",
    "grads-reduce-scatter",
    "separate-grads-all-reduce",
    "optimizer-clip-main-grad",
    "optimizer",
)
FORWARD, BACKWARD, FORWARD_SEND, FORWARD_RECEIVE, BACKWARD_SEND, BACKWARD_RECEIVE = range(6)
GATHER, COLLECT_GARBAGE, LAYER_NORM, EMBEDDING, SCATTER, SEPARATE, CLIP, OPTIMIZER = range(6, 14)

_MOST_BYTES = 512 << 20
_MOST_OPERATIONS = 4_000_000
_INT_MAX = 2**31 - 1
_LONGEST_SECONDS = 1e10  # Also seconds since 1970.
# Column: the highest value; what may be -1 means nothing then.
_INDEXES = {
    "dp_rank": 65_535,
    "stage": 1_023,
    "rank": _INT_MAX,
    "step": _INT_MAX,
    "seq_id": _INT_MAX,
    "mc": 1_023,
    "mb_id": _INT_MAX,
    "gmc": _INT_MAX,
}
_MAY_MEAN_NOTHING = {"mc", "mb_id", "gmc"}
COLUMNS = (
    *("dp_rank", "stage", "rank", "step", "optype", "start_ts", "duration"),
    *("seq_id", "mc", "mb_id", "gmc"),
)


@dataclass
class Recording:
    """A recorded job: its operations by step, pipeline, stage, kind and number.

    Every step has every stage of every pipeline, each with as many forwards as backwards.

    Attributes
    ----------
    rows
        One for each operation, with the columns of the file, `kind`, `end`, `line` of the file,
        `step_index` and `cell`, which counts (step, pipeline, stage).
    ranks
        Of each place, pipeline x stages + stage.
    gpus_per_rank
        What the numbers of ranks leave out: tensor parallelism.
    """

    source: str
    rows: pd.DataFrame
    steps: list[int]
    pipelines: int
    stages: int
    virtual_stages: int
    microbatches: int
    ranks: list[int]
    gpus_per_rank: int

    @property
    def places(self) -> int:
        """How many ranks were recorded."""
        return self.pipelines * self.stages

    def column(self, name: str) -> Any:
        """Return a column as an array."""
        return self.rows[name].to_numpy()

    def where(self, row: int) -> str:
        """Return file and line of an operation."""
        return f"{self.source}:{self.rows.at[row, 'line']}"


def read(path: str) -> Recording:
    """Read a recorded job from a file, or from a folder with one trace of Kineto a rank.

    Raises
    ------
    PlannerError
        With file, line and column of what is wrong.
    """
    if Path(path).is_dir():
        files = sorted(each for each in Path(path).iterdir() if ".json" in each.suffixes)
        if not files:
            raise PlannerError(
                f"{path}: a folder of traces has .json or .json.gz files, one a rank"
            )
        events = [_events(_bytes(str(each)), str(each)) for each in files]
        return _assemble(_numbered(pd.concat(events, ignore_index=True)), path)
    data = _bytes(path)
    if data[:4] == b"PAR1":
        try:
            table = pd.read_parquet(io.BytesIO(data))
        except (ValueError, OSError) as error:
            raise PlannerError(f"{path}: {error}") from None
        return _assemble(table, path)
    if data.lstrip()[:1] in (b"{", b"["):
        return _assemble(_numbered(_events(data, path)), path)
    return _assemble(_csv(data, path), path)


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(_MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise PlannerError(f"{path}: cannot unpack the gzip file: {error}") from None
    if len(data) > _MOST_BYTES:
        raise PlannerError(f"{path}: more than {_MOST_BYTES >> 20} MiB; give fewer steps")
    return data


def _csv(data: bytes, source: str) -> pd.DataFrame:
    if b"\0" in data:
        raise PlannerError(
            f"{source}: found a NUL byte, so this is a binary file; expected CSV, gzip or Parquet"
        )
    try:
        table = pd.read_csv(
            io.BytesIO(data),
            dtype=str,
            header=None,
            keep_default_na=False,
            skip_blank_lines=False,
            encoding="utf-8-sig",
        )
    except pd.errors.EmptyDataError:
        message = f"{source}:1: the trace is empty; expected a header line {','.join(COLUMNS)}"
        raise PlannerError(message) from None
    except (ValueError, pd.errors.ParserError) as error:
        raise PlannerError(f"{source}: {str(error).strip()}") from None
    table.columns = pd.Index(table.iloc[0].str.strip())
    table = table.iloc[1:]
    return table[~(table.isna() | (table == "")).all(axis=1)]


def _events(data: bytes, source: str) -> pd.DataFrame:
    """Return the complete events of a trace whose names begin with a kind of operation.

    The rest of a name, as in "forward-compute step=7 mb_id=3", and its `args` are cells. Kineto
    says the rank, and steps as ProfilerStep#7.
    """
    try:
        document = json.loads(data)
        events = document if isinstance(document, list) else document.get("traceEvents", [])
        own = {} if isinstance(document, list) else document.get("distributedInfo", {})
        rows, steps = [], []
        for event in events:
            if not isinstance(event, dict) or event.get("ph") != "X":
                continue
            kind, *words = str(event.get("name", "")).split()[:32] or [""]
            start, duration = float(event["ts"]) / 1e6, float(event.get("dur", 0)) / 1e6
            if kind.startswith("ProfilerStep#"):
                steps.append((start, kind.partition("#")[2]))
            elif kind in KINDS:
                row = {"rank": own["rank"]} if "rank" in own else {}
                row.update(
                    {key: cell for key, cell in event.get("args", {}).items() if key in COLUMNS}
                )
                row.update({key: cell for key, is_cell, cell in map(_parted, words) if is_cell})
                rows.append({**row, "optype": kind, "start_ts": start, "duration": duration})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise PlannerError(f"{source}: this is no trace of Chrome or Kineto: {error!r}") from None
    if not rows:
        raise PlannerError(f"{source}: no event is named like {KINDS[0]} or another optype")
    steps.sort()
    begins = [start for start, _ in steps]
    for row in rows:
        at = bisect.bisect_right(begins, row["start_ts"]) - 1
        if row.get("step") is None and at >= 0:
            row["step"] = steps[at][1]
    return pd.DataFrame(rows, dtype=object)


def _parted(word: str) -> tuple[str, str, str]:
    return word.partition("=")


def _numbered(table: pd.DataFrame) -> pd.DataFrame:
    """Fill in what follows from other columns of events: -1 for nothing, gmc and seq_id."""
    table = table.reindex(columns=[*COLUMNS, *table.columns.difference(COLUMNS)])
    stages = 1 + pd.to_numeric(table["stage"], errors="coerce").max()
    for column in _MAY_MEAN_NOTHING:
        table[column] = table[column].where(table[column].notna(), -1)
    computes = table["optype"].isin(KINDS[:2])
    chunks = pd.to_numeric(table["mc"], errors="coerce").where(lambda each: each >= 0, 0)
    table["mc"] = chunks.where(computes, table["mc"])
    block = chunks * stages + pd.to_numeric(table["stage"], errors="coerce")
    table["gmc"] = block.where(computes, -1)
    if table["seq_id"].isna().all():
        place = [table[key].astype(str) for key in ("dp_rank", "stage", "step", "optype")]
        order = table.sort_values("start_ts", kind="stable")
        table["seq_id"] = order.groupby([each[order.index] for each in place]).cumcount()
    return table


def _assemble(table: pd.DataFrame, source: str) -> Recording:
    rows = _checked_cells(table, source)
    order = ["step", "dp_rank", "stage", "kind", "seq_id"]
    rows = rows.sort_values(order, kind="stable", ignore_index=True)
    steps, step_index = np.unique(rows["step"], return_inverse=True)
    recording = Recording(
        source=source,
        rows=rows,
        steps=[int(step) for step in steps],
        pipelines=1 + int(rows["dp_rank"].max()),
        stages=1 + int(rows["stage"].max()),
        virtual_stages=0,
        microbatches=0,
        ranks=[],
        gpus_per_rank=1,
    )
    rows["step_index"] = step_index
    place = rows["dp_rank"] * recording.stages + rows["stage"]
    rows["cell"] = step_index * recording.places + place
    _check_places(recording, place.to_numpy())
    _check_numbers(recording)
    return recording


def _checked_cells(table: pd.DataFrame, source: str) -> pd.DataFrame:
    names = [str(name) for name in table.columns]
    for name in names:
        message = f"column '{name}' is there twice; remove one" if names.count(name) > 1 else ""
        if name not in COLUMNS:
            message = f"unknown column {name!r:.60}; a trace has {','.join(COLUMNS)}"
        if message:
            raise PlannerError(f"{source}:1: {message}")
    for name in COLUMNS:
        if name not in names:
            expected = ",".join(COLUMNS)
            raise PlannerError(
                f"{source}:1: the header has no column '{name}'; expected {expected} in any order"
            )
    if len(table) > _MOST_OPERATIONS:
        raise PlannerError(f"{source}: more than {_MOST_OPERATIONS} operations; give fewer steps")
    if table.empty:
        raise PlannerError(f"{source}:1: the trace has a header and no rows")
    lines = table.index.to_numpy() + 1

    def refuse(name: str, wrong: Any, expected: str) -> None:
        place = int(np.argmax(np.asarray(wrong)))
        found = table[name].iloc[place]
        shown = "cell" if found is None or found == "" else f"{str(found)!r:.60}"
        raise PlannerError(
            f"{source}:{lines[place]}: {name} {shown} is not valid; expected {expected}"
        )

    rows = pd.DataFrame({"line": lines})
    kind = table["optype"].map({name: code for code, name in enumerate(KINDS)})
    if kind.isna().any():
        refuse("optype", kind.isna(), f"one of {', '.join(KINDS)}")
    rows["kind"] = kind.to_numpy(np.int64)
    for name in ("start_ts", "duration"):
        seconds = _numbers(table[name])
        wrong = ~((seconds >= 0) & (seconds <= _LONGEST_SECONDS))
        if wrong.any():
            refuse(name, wrong, "seconds, 0 to 1e10")
        rows[name] = seconds
    rows["end"] = rows["start_ts"] + rows["duration"]
    for name, highest in _INDEXES.items():
        values = _numbers(table[name])
        least = -1 if name in _MAY_MEAN_NOTHING else 0
        wrong = ~((values >= least) & (values <= highest) & (np.floor(values) == values))
        if wrong.any():
            refuse(name, wrong, f"a whole number from {least} to {highest}")
        rows[name] = values.astype(np.int64)
    for name, what in (("mb_id", "microbatch (mb_id)"), ("mc", "model chunk (mc)")):
        wrong = (rows["kind"] <= BACKWARD) & (rows[name] < 0)
        if wrong.any():
            line = lines[int(np.argmax(wrong))]
            raise PlannerError(f"{source}:{line}: a computation needs its {what}, but it is -1")
    return rows


def _numbers(column: Any) -> Floats:
    """Return a column as numbers, NaN where a cell is none."""
    try:
        return np.asarray(column, dtype=object).astype(np.float64)
    except (TypeError, ValueError):
        return np.array([_number(cell) for cell in column], dtype=np.float64)


def _number(cell: object) -> float:
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan


def _check_places(recording: Recording, place: Ints) -> None:
    """Every step has every place, and a place is always of the same rank."""
    rows, places = recording.rows, recording.places
    cells = np.unique(rows["cell"])
    if len(cells) != len(recording.steps) * places:
        gaps = np.flatnonzero(cells != np.arange(len(cells)))
        cell = int(gaps[0]) if len(gaps) else len(cells)
        raise PlannerError(
            f"{recording.source}: step {recording.steps[cell // places]} has no row of dp_rank "
            f"{cell % places // recording.stages}, stage {cell % recording.stages}; a trace has "
            "every stage of every pipeline in every step"
        )
    rank = recording.column("rank")
    _, first = np.unique(place, return_index=True)
    ranks = rank[first]
    wrong = np.flatnonzero(rank != ranks[place])
    if len(wrong):
        row = _whole(rows, wrong[0])
        raise PlannerError(
            f"{recording.where(int(wrong[0]))}: rank {row['rank']} of dp_rank {row['dp_rank']}, "
            f"stage {row['stage']}, which is rank {ranks[place[wrong[0]]]} elsewhere; one rank of "
            "a tensor-parallel group is recorded, always the same"
        )
    unique, counts = np.unique(ranks, return_counts=True)
    if counts.max() > 1:
        twice = unique[np.argmax(counts)]
        raise PlannerError(f"{recording.source}: rank {twice} is at two places (dp_rank, stage)")
    recording.ranks = [int(each) for each in ranks]
    recording.gpus_per_rank = max(1, math.gcd(*(int(each) for each in unique - unique[0])))


def _check_numbers(recording: Recording) -> None:
    """Count what is counted in the file, too."""
    rows = recording.rows
    number = rows.groupby(["cell", "kind"], sort=False).cumcount()
    wrong = np.flatnonzero(rows["seq_id"] != number)
    if len(wrong):
        row, expected = _whole(rows, wrong[0]), int(number[wrong[0]])
        twice = "is there twice" if row["seq_id"] < expected else f"follows none of {expected}"
        raise PlannerError(
            f"{recording.where(int(wrong[0]))}: seq_id {row['seq_id']} of {KINDS[row['kind']]} in "
            f"{_place_text(row)} {twice}; seq_id counts from 0"
        )
    computes = rows[rows["kind"] <= BACKWARD]
    block = computes["mc"] * recording.stages + computes["stage"]
    wrong = computes.index[computes["gmc"] != block]
    if len(wrong):
        raise PlannerError(
            f"{recording.where(wrong[0])}: gmc {rows.at[wrong[0], 'gmc']} is not mc x stages + "
            f"stage, which is {block[wrong[0]]}"
        )
    cells = len(recording.steps) * recording.places
    forward = computes["kind"] == FORWARD
    forwards = np.bincount(computes["cell"][forward], minlength=cells)
    backwards = np.bincount(computes["cell"][~forward], minlength=cells)
    uneven = np.flatnonzero((forwards == 0) | (forwards != backwards))
    if len(uneven):
        first = int(np.searchsorted(rows["cell"], uneven[0]))
        raise PlannerError(
            f"{recording.where(first)}: {_place_text(_whole(rows, first))} has "
            f"{forwards[uneven[0]]} forward-compute and {backwards[uneven[0]]} backward-compute; "
            "expected as many, and at least one"
        )
    recording.virtual_stages = 1 + int(computes["mc"].max())
    of_chunk = computes[forward].groupby(["cell", "mc"], sort=False).size()
    recording.microbatches = int(of_chunk.max())


def _whole(rows: pd.DataFrame, row: int) -> dict[str, int]:
    """Return a row's whole numbers."""
    return {name: int(rows.at[row, name]) for name in (*_INDEXES, "kind")}


def _place_text(row: dict[str, int]) -> str:
    return f"step {row['step']}, dp_rank {row['dp_rank']}, stage {row['stage']}"
