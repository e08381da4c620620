# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus._told`, the compiled form of `perseus.hooks.told`: not needed, and quicker.

It lies beside libperseus_client.so, where it was built. Without it, and with
``PERSEUS_EXTENSION=0``, Python does the same.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import logging
import os
from pathlib import Path
from typing import Any

_FILE = "_told.abi3.so"
_VERSION = 1  # As in python/extension/told.cc.
_log = logging.getLogger("perseus")


def load(library_file: str) -> Any:
    """Return the module that lies beside a library's file; None: there is none for this Python."""
    # A Python without its global lock does not name the stable ABI, and could not use this file.
    stable = ".abi3.so" in importlib.machinery.EXTENSION_SUFFIXES
    if not stable or os.environ.get("PERSEUS_EXTENSION") == "0":
        return None
    return _load(Path(library_file).with_name(_FILE))


@functools.cache
def _load(file: Path) -> Any:
    if file.parent == Path():
        return None  # The library is where the loader looks.
    try:
        if not file.is_file():
            return None
        spec = importlib.util.spec_from_file_location("perseus._told", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if module.VERSION != _VERSION:
            raise ImportError(f"it has version {module.VERSION}, not {_VERSION}")
    except Exception as error:
        _log.info("perseus: %s is not used: %s", file, error)
        return None
    return module
