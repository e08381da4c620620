# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes with a relay each, for bench/server_scale.py --agents.

The first is `perseus agent relay` itself; the others run the same code, some hundred in one
process (bench/relay_fleet.cc).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

IN_ONE_PROCESS = 256


class Nodes:
    """Relays in processes of their own.

    Parameters
    ----------
    perseus
        The program perseus.
    fleet
        The program relay_fleet.
    server
        The address of the server.
    folder
        Where their sockets go.
    count
        How many.
    """

    def __init__(self, perseus: Path, fleet: Path, server: str, folder: Path, count: int) -> None:
        self.sockets = [folder / str(node) for node in range(count)]
        commands = [
            [str(perseus), "agent", "relay", "--server", server, "--socket", str(self.sockets[0])]
        ]
        for first in range(1, count, IN_ONE_PROCESS):
            some = min(IN_ONE_PROCESS, count - first)
            commands.append([str(fleet), server, str(folder), str(first), str(some)])
        self.processes = [
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            for command in commands
        ]
        for process in self.processes:
            assert process.stdout is not None
            assert b"ready" in process.stdout.readline()

    @property
    def pids(self) -> list[int]:
        """Of the real relay, then of the fleets."""
        return [process.pid for process in self.processes]

    def stop(self) -> None:
        """End them."""
        for process in self.processes:
            process.kill()
            process.wait()
