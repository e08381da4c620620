# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs hooks_worker.py on the `torch.distributed.pipelining` in a folder, for older_torch.py.

older_torch_runner.py FOLDER torch SCENARIO [ARGUMENT...]
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(sys.argv[1])


class Finder(importlib.abc.MetaPathFinder):
    """Finds the package in the folder."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find it; its modules are found in the folder, too."""
        if name != "torch.distributed.pipelining":
            return None
        places = [str(FOLDER)]
        return importlib.util.spec_from_file_location(
            name, FOLDER / "__init__.py", submodule_search_locations=places
        )


class _All(list[Any]):
    """Works of a batch, the last of which stands for all."""

    def pop(self, index: Any = -1) -> Any:
        """Return what waits for all."""
        return self

    def wait(self) -> None:
        """Wait for all."""
        for work in self:
            work.wait()


def _wait_for_whole_batches() -> None:
    """Old schedules wait for the last send or receive of a batch, which is all of it with NCCL.

    With gloo it is not.
    """
    if "batch_isend_irecv(p2p_ops).pop()" in (FOLDER / "schedules.py").read_text():
        import torch.distributed as dist

        batch = dist.batch_isend_irecv
        dist.batch_isend_irecv = lambda ops: _All(batch(ops))


if __name__ == "__main__":
    sys.meta_path.insert(0, Finder())
    _wait_for_whole_batches()
    worker = Path(__file__).with_name("hooks_worker.py")
    sys.argv = [str(worker), *sys.argv[2:]]
    runpy.run_path(str(worker), run_name="__main__")
