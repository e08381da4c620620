# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Finding and loading the shared libraries of the package."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
import os
from pathlib import Path
from typing import Callable


class LibraryError(RuntimeError):
    """No library of this version, or a strict client that cannot open."""


# `perseus_status`, the same in every library.
OK = 0
STATUS_NAMES = {
    1: "invalid",
    2: "infeasible",
    3: "io",
    4: "overflow",
    5: "cancelled",
    6: "no memory",
    7: "internal",
    8: "unavailable",
    9: "closed",
}


def take_text(free: Callable[[ctypes.c_void_p], None], text: ctypes.c_void_p) -> str:
    """Return a text of a library, which `free` frees; "" where there is none."""
    if not text.value:
        return ""
    try:
        return ctypes.string_at(text.value).decode("utf-8", "replace")
    finally:
        free(text)


def load_library(
    name: str, abi_version: int, declare: Callable[[str, ctypes.CDLL], None]
) -> ctypes.CDLL:
    """Load ``libperseus_NAME.so``: `$PERSEUS_NAME_LIBRARY`, beside this file, or the loader's.

    Parameters
    ----------
    abi_version
        What ``perseus_NAME_abi_version()`` is to say.
    declare
        Gets the file's name and the library, and says the types of its functions.

    Raises
    ------
    LibraryError
        It cannot be found, or has another interface than this package.
    """
    variable = f"PERSEUS_{name.upper()}_LIBRARY"
    why = ""
    for file in _candidates(name, os.environ.get(variable)):
        try:
            library = ctypes.CDLL(file)
            declare(file, library)
        except (OSError, AttributeError) as error:
            why = why or str(error)
            continue
        if getattr(library, f"perseus_{name}_abi_version")() != abi_version:
            raise LibraryError(f"{file} has another interface than this Python package")
        return library
    raise LibraryError(
        f"libperseus_{name}.so cannot be loaded ({why}); install it, or name its file in {variable}"
    )


def _candidates(name: str, named: str | None) -> list[str]:
    if named:
        return [named]
    file = f"libperseus_{name}.so"
    found = ctypes.util.find_library(f"perseus_{name}")
    return [
        str(Path(__file__).with_name(file)),
        *([found] if found else []),
        f"{file}.{_series()}",
        file,
    ]


def _series() -> str:
    """Return the end of the library's name in its ABI: "0.2" of version 0.2.1."""
    version: str = importlib.import_module("perseus").__version__
    return version.rpartition(".")[0]
