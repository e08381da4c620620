# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A process of `perseus serve` for tests."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

START_SECONDS = 60.0


class GoneError(Exception):
    """The server was killed before it answered."""


class Server:
    """One process of `perseus serve` on a store.

    Parameters
    ----------
    binary
        The program perseus.
    store
        The file of the store, or all that --store takes.
    options
        Further options of `serve`.
    listen
        Its address.
    """

    def __init__(
        self, binary: Path, store: Path | str, *options: str, listen: str = "127.0.0.1:0"
    ) -> None:
        spec = store if isinstance(store, str) else f"sqlite:{store}"
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as this)
        self._process = subprocess.Popen(
            [
                *(str(binary), "serve", "--listen", listen),
                *("--store", spec, *options),
            ],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if "ready at " not in line:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"the server did not start: {line!r} {self.log()}")
        self.url = line.split("ready at ")[1].strip()

    def log(self) -> str:
        """Return what the server logged."""
        self._log.seek(0)
        return self._log.read().decode()

    @property
    def pid(self) -> int:
        """Return the id of the process."""
        return self._process.pid

    def kill(self) -> None:
        """End it as kill -9 does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> int:
        """End it as systemd does; return the exit status."""
        self._process.terminate()
        return self._process.wait(START_SECONDS)

    def call(
        self, method: str, path: str, body: object = None, *, url: str = ""
    ) -> tuple[int, Any]:
        """Ask (at `url`, where it is given); return status and JSON (or text) of the answer.

        Raises
        ------
        GoneError
            There was no answer.
        """
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request((url or self.url) + path, data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=70) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        except (OSError, ValueError) as error:
            raise GoneError from error
        except Exception as error:  # http.client's own, which are not OSErrors.
            raise GoneError from error
        try:
            return status, json.loads(text) if text else None
        except ValueError:
            return status, text.decode()
