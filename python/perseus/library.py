# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus/client.h` in ctypes: its structs, constants and functions, and nothing else."""

from __future__ import annotations

import ctypes
import enum

from perseus.shared_library import OK as OK
from perseus.shared_library import STATUS_NAMES as STATUS_NAMES
from perseus.shared_library import load_library
from perseus.shared_library import take_text as _take_text

ABI_VERSION = 2
LATENCY_BUCKETS = 24


class Instruction(enum.IntEnum):
    """What a computation is: `perseus_instruction`."""

    FORWARD = 0
    BACKWARD = 1
    BACKWARD_INPUT = 2
    BACKWARD_WEIGHT = 3
    RECOMPUTE = 4


class Flag(enum.IntFlag):
    """Options that are on or off."""

    SHADOW = 1
    PROFILE = 2
    STRICT = 4
    NO_AHEAD = 8


class Options(ctypes.Structure):
    """`perseus_client_options`."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("server", ctypes.c_char_p),
        ("token", ctypes.c_char_p),
        ("ca_file", ctypes.c_char_p),
        ("job_id", ctypes.c_char_p),
        ("job_json", ctypes.c_char_p),
        ("rank", ctypes.c_int32),
        ("dp_rank", ctypes.c_int32),
        ("pp_rank", ctypes.c_int32),
        ("tp_rank", ctypes.c_int32),
        ("device", ctypes.c_char_p),
        ("gpu_uuid", ctypes.c_char_p),
        ("gpu_index", ctypes.c_int32),
        ("profile_iterations", ctypes.c_int32),
        ("node", ctypes.c_char_p),
        ("min_interval_seconds", ctypes.c_double),
        ("max_early_loss", ctypes.c_double),
        ("max_overhead", ctypes.c_double),
        ("report_interval_seconds", ctypes.c_double),
        ("open_timeout_seconds", ctypes.c_double),
        ("close_timeout_seconds", ctypes.c_double),
        ("min_profile_mhz", ctypes.c_int32),
        ("profile_stride", ctypes.c_int32),
        ("profile_coarse", ctypes.c_int32),
        ("profile_settling", ctypes.c_int32),
        ("profile_seed", ctypes.c_int64),
    )


class StatsStruct(ctypes.Structure):
    """`perseus_client_stats`."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("state", ctypes.c_int32),
        ("level", ctypes.c_int32),
        ("clock_mhz", ctypes.c_int32),
        ("plan_version", ctypes.c_int64),
        ("iterations", ctypes.c_uint64),
        ("instructions", ctypes.c_uint64),
        ("lost_events", ctypes.c_uint64),
        ("calls", ctypes.c_uint64),
        ("coalesced", ctypes.c_uint64),
        ("refused", ctypes.c_uint64),
        ("early", ctypes.c_uint64),
        ("on_time", ctypes.c_uint64),
        ("late", ctypes.c_uint64),
        ("missed", ctypes.c_uint64),
        ("order_mismatches", ctypes.c_uint64),
        ("server_errors", ctypes.c_uint64),
        ("reports_dropped", ctypes.c_uint64),
        ("call_seconds", ctypes.c_double),
        ("latency_seconds", ctypes.c_double),
        ("overhead_share", ctypes.c_double),
        ("last_iteration_seconds", ctypes.c_double),
        ("latency", ctypes.c_uint64 * LATENCY_BUCKETS),
        ("step_plans", ctypes.c_uint64),
        ("step_plans_late", ctypes.c_uint64),
        ("joules", ctypes.c_double),
        ("saving_percent", ctypes.c_double),
        ("saving_least_percent", ctypes.c_double),
        ("saving_most_percent", ctypes.c_double),
    )


class StepRow(ctypes.Structure):
    """`perseus_step_row`."""

    _fields_ = (
        ("type", ctypes.c_int32),
        ("stage", ctypes.c_int32),
        ("microbatch", ctypes.c_int32),
        ("fused_type", ctypes.c_int32),
        ("fused_stage", ctypes.c_int32),
        ("fused_microbatch", ctypes.c_int32),
        ("clock_mhz", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("start_seconds", ctypes.c_double),
        ("duration_seconds", ctypes.c_double),
    )


# These never block, so they keep the interpreter's lock: giving it up and taking it back would cost
# more than they do.
_HOT = (
    "perseus_step_busy",
    "perseus_step_abandon",
    "perseus_instruction_work",
)
# Likewise, and called so often that their arguments are given as ctypes has them (`from_param`):
# with `argtypes` it would convert each of them anew, which takes most of a call.
_HOTTEST = (
    "perseus_step_begin",
    "perseus_step_end",
    "perseus_instruction_begin",
    "perseus_instruction_end",
    "perseus_client_listens",
    "perseus_client_problems",
)


def load() -> ctypes.CDLL:
    """Load the library: `$PERSEUS_CLIENT_LIBRARY`, beside this file, or where the loader looks.

    Raises
    ------
    LibraryError
        It cannot be found, or has another interface than this package.
    """
    return load_library("client", ABI_VERSION, _declare)


def take_message(library: ctypes.CDLL, message: ctypes.c_void_p) -> str:
    """Return a message of the library, which is freed; "" where there is none."""
    return _take_text(library.perseus_client_free_text, message)


def _declare(file: str, library: ctypes.CDLL) -> None:
    hot = ctypes.PyDLL(file)
    for function in _HOT + _HOTTEST:
        setattr(library, function, getattr(hot, function))
    client = ctypes.c_void_p
    text = (ctypes.c_char_p, ctypes.c_size_t)
    message = ctypes.POINTER(ctypes.c_void_p)
    i32, i64 = ctypes.c_int32, ctypes.c_int64
    declarations: list[tuple[str, object, tuple[object, ...]]] = [
        ("perseus_client_abi_version", ctypes.c_int, ()),
        ("perseus_client_free_text", None, (ctypes.c_void_p,)),
        ("perseus_client_options_init", None, (ctypes.POINTER(Options), ctypes.c_size_t)),
        (
            "perseus_client_open",
            ctypes.c_int,
            (ctypes.POINTER(Options), ctypes.POINTER(client), message),
        ),
        ("perseus_step_busy", None, (client, ctypes.c_int, ctypes.c_double)),
        ("perseus_instruction_work", None, (client, ctypes.c_double)),
        ("perseus_step_abandon", None, (client,)),
        (
            "perseus_step_times",
            None,
            (
                client,
                i64,
                ctypes.POINTER(ctypes.c_double),
                ctypes.POINTER(ctypes.c_double),
                ctypes.c_size_t,
            ),
        ),
        (
            "perseus_step_plan",
            ctypes.c_int,
            (client, i64, ctypes.POINTER(StepRow), ctypes.c_size_t, ctypes.c_size_t, message),
        ),
        (
            "perseus_straggler_set",
            ctypes.c_int,
            (client, i32, ctypes.c_double, ctypes.c_double, message),
        ),
        ("perseus_straggler_clear", ctypes.c_int, (client, i32, message)),
        ("perseus_client_get_stats", ctypes.c_int, (client, ctypes.POINTER(StatsStruct), message)),
        ("perseus_client_get_state", ctypes.c_int, (client,)),
        ("perseus_client_plan_version", i64, (client,)),
        ("perseus_client_job_id", ctypes.c_size_t, (client, *text)),
        ("perseus_client_last_error", ctypes.c_size_t, (client, *text)),
        ("perseus_client_stop", None, (client,)),
        ("perseus_client_close", None, (client,)),
    ]
    for name, result, arguments in declarations:
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
