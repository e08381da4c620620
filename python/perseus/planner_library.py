# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus/planner_c.h` in ctypes: its structs and functions, its texts, errors and callback."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

from perseus.planner_error import PlannerError
from perseus.shared_library import OK, STATUS_NAMES, load_library
from perseus.shared_library import take_text as _take_text

if TYPE_CHECKING:
    from collections.abc import Callable

ABI_VERSION = 2
PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_double)

_U32 = ctypes.c_uint32
_I32 = ctypes.c_int32
_SIZE = ctypes.c_size_t
_DOUBLE = ctypes.c_double
_TEXT = ctypes.c_char_p
_HANDLE = ctypes.c_void_p
_INTS = ctypes.POINTER(ctypes.c_int32)
_DOUBLES = ctypes.POINTER(ctypes.c_double)


class Input(ctypes.Structure):
    """`perseus_planner_input`."""

    _fields_ = (
        ("struct_size", _U32),
        ("reserved", _U32),
        ("path", _TEXT),
        ("profile_csv", _TEXT),
        ("profile_csv_size", _SIZE),
        ("profile_arrays", ctypes.c_void_p),
        ("profile_name", _TEXT),
        ("settings_json", _TEXT),
        ("settings_json_size", _SIZE),
        ("schedule_csv", _TEXT),
        ("schedule_csv_size", _SIZE),
        ("schedule_name", _TEXT),
        ("progress", PROGRESS),
        ("user", ctypes.c_void_p),
    )


class FrontierStruct(ctypes.Structure):
    """`perseus_frontier`."""

    _fields_ = (
        ("struct_size", _U32),
        ("fitted", _I32),
        ("count", _SIZE),
        ("time_seconds", _DOUBLES),
        ("energy_joules", _DOUBLES),
        ("slope_watts", _DOUBLES),
        ("fastest_seconds", _DOUBLE),
        ("min_energy_seconds", _DOUBLE),
        ("tstar_seconds", _DOUBLE),
        ("certified_error", _DOUBLE),
        ("total_blocking_power_watts", _DOUBLE),
        ("baseline_time_seconds", _DOUBLE),
        ("baseline_energy_joules", _DOUBLE),
    )


class FigureStruct(ctypes.Structure):
    """`perseus_figure`."""

    _fields_ = (
        ("struct_size", _U32),
        ("known", _I32),
        ("whole", _I32),
        ("reserved", _I32),
        ("group", _TEXT),
        ("name", _TEXT),
        ("unit", _TEXT),
        ("text", _TEXT),
        ("value", _DOUBLE),
    )


class ColumnsStruct(ctypes.Structure):
    """`perseus_plan_columns`."""

    _fields_ = (
        ("struct_size", _U32),
        ("num_ranks", _I32),
        ("count", _SIZE),
        ("rank", _INTS),
        ("type", _INTS),
        ("stage", _INTS),
        ("microbatch", _INTS),
        ("fused_type", _INTS),
        ("fused_stage", _INTS),
        ("fused_microbatch", _INTS),
        ("clock_mhz", _DOUBLES),
        ("knob", ctypes.POINTER(_TEXT)),
        ("start_seconds", _DOUBLES),
        ("duration_seconds", _DOUBLES),
        ("energy_joules", _DOUBLES),
    )


class NoteStruct(ctypes.Structure):
    """`perseus_note`."""

    _fields_ = (
        ("struct_size", _U32),
        ("severity", _I32),
        ("text", _TEXT),
        ("source", _TEXT),
        ("line", _I32),
        ("column", _I32),
    )


class DagStruct(ctypes.Structure):
    """`perseus_dag`."""

    _fields_ = (
        ("struct_size", _U32),
        ("num_operations", _I32),
        ("num_curves", _I32),
        ("reserved", _U32),
        ("curve_of", _INTS),
        ("first_option", _INTS),
        ("option_time", _DOUBLES),
        ("option_cost", _DOUBLES),
        ("num_precedences", _SIZE),
        ("from_", _INTS),
        ("to", _INTS),
        ("delay", _DOUBLES),
        ("rank", _INTS),
        ("begin", _DOUBLES),
    )


class ChoiceStruct(ctypes.Structure):
    """`perseus_dag_choice`."""

    _fields_ = (
        ("struct_size", _U32),
        ("reserved", _U32),
        ("time", _DOUBLE),
        ("cost", _DOUBLE),
        ("lower_bound", _DOUBLE),
    )


@functools.cache
def load() -> ctypes.CDLL:
    """Load the library: `$PERSEUS_PLANNER_LIBRARY`, beside this file, or where the loader looks.

    Raises
    ------
    LibraryError
        It cannot be found, or has another interface than this package.
    """
    return load_library("planner", ABI_VERSION, _declare)


def _declare(_file: str, library: ctypes.CDLL) -> None:
    # Texts that the library makes are pointers here: c_char_p would forget which to free.
    texts = ctypes.POINTER(ctypes.c_void_p)
    handles = ctypes.POINTER(_HANDLE)
    status = ctypes.c_int
    callback = (PROGRESS, ctypes.c_void_p)
    declarations: list[tuple[str, object, tuple[object, ...]]] = [
        ("perseus_planner_abi_version", ctypes.c_int, ()),
        ("perseus_planner_free_text", None, (ctypes.c_void_p,)),
        ("perseus_planner_input_init", None, (ctypes.POINTER(Input), _SIZE)),
        ("perseus_planner_create", status, (ctypes.POINTER(Input), handles, texts)),
        ("perseus_planner_free", None, (_HANDLE,)),
        ("perseus_planner_frontier", status, (_HANDLE, ctypes.POINTER(FrontierStruct), texts)),
        ("perseus_planner_frontier_csv", status, (_HANDLE, texts, texts)),
        ("perseus_planner_profile_csv", status, (_HANDLE, texts, texts)),
        ("perseus_planner_note_count", _SIZE, (_HANDLE,)),
        (
            "perseus_planner_get_note",
            status,
            (_HANDLE, _SIZE, ctypes.POINTER(NoteStruct), texts),
        ),
        ("perseus_planner_plan", status, (_HANDLE, _TEXT, _SIZE, *callback, handles, texts)),
        (
            "perseus_planner_plan_work",
            status,
            (_HANDLE, ctypes.POINTER(_DOUBLE), _SIZE, _TEXT, _SIZE, *callback, handles, texts),
        ),
        (
            "perseus_planner_plan_work_among",
            status,
            (
                _HANDLE,
                ctypes.POINTER(_DOUBLE),
                _SIZE,
                ctypes.POINTER(_DOUBLE),
                _SIZE,
                _TEXT,
                _SIZE,
                *callback,
                handles,
                texts,
            ),
        ),
        ("perseus_planner_baseline", status, (_HANDLE, handles, texts)),
        ("perseus_plan_read", status, (_TEXT, _SIZE, _TEXT, handles, texts)),
        ("perseus_plan_report", status, (_HANDLE, texts, texts)),
        ("perseus_plan_free", None, (_HANDLE,)),
        ("perseus_plan_figure_count", _SIZE, (_HANDLE,)),
        ("perseus_plan_get_figure", status, (_HANDLE, _SIZE, ctypes.POINTER(FigureStruct), texts)),
        ("perseus_plan_get_columns", status, (_HANDLE, ctypes.POINTER(ColumnsStruct), texts)),
        ("perseus_plan_note_count", _SIZE, (_HANDLE,)),
        ("perseus_plan_get_note", status, (_HANDLE, _SIZE, ctypes.POINTER(NoteStruct), texts)),
        ("perseus_plan_json", status, (_HANDLE, texts, texts)),
        ("perseus_plan_zeus", status, (_HANDLE, texts, texts)),
        ("perseus_dag_solve", status, (ctypes.POINTER(DagStruct), *callback, handles, texts)),
        ("perseus_dag_free", None, (_HANDLE,)),
        ("perseus_dag_frontier", status, (_HANDLE, ctypes.POINTER(FrontierStruct), texts)),
        (
            "perseus_dag_choose",
            status,
            (_HANDLE, _DOUBLE, _DOUBLE, *callback, _INTS, ctypes.POINTER(ChoiceStruct), texts),
        ),
    ]
    for name, result, arguments in declarations:
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments


def take_text(library: ctypes.CDLL, text: ctypes.c_void_p) -> str:
    """Return a text of the library, which is freed; "" where there is none."""
    return _take_text(library.perseus_planner_free_text, text)


def size_of(text: bytes) -> int:
    """Return what the library takes for the size of a text: `PERSEUS_TO_ZERO` where it is empty."""
    return len(text) or ctypes.c_size_t(-1).value


def sized(kind: type[Any]) -> Any:
    """Return a new struct that says how large it is."""
    return kind(struct_size=ctypes.sizeof(kind))


class Watched:
    """A progress callback for one call, through which Ctrl-C comes, too.

    An exception in it cancels the call; `check` raises it again.
    """

    def __init__(self, progress: Callable[[float], object] | None) -> None:
        self._progress = progress
        self._error: BaseException | None = None
        self.function = PROGRESS(self._call)

    def _call(self, _user: object, share: float) -> int:
        try:
            answer = self._progress(share) if self._progress is not None else None
        except BaseException as error:
            self._error = error
            return 1
        return 1 if answer is False else 0

    def check(self, library: ctypes.CDLL, status: int, message: ctypes.c_void_p) -> None:
        """Raise what the callback raised, or the error that a status means."""
        sentence = take_text(library, message)
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        check(status, sentence)


def check(status: int, sentence: str = "") -> None:
    """Raise a PlannerError unless a call went well."""
    if status != OK:
        code = STATUS_NAMES.get(status, "internal")
        raise PlannerError(sentence or f"the planner failed: {code}", code)
