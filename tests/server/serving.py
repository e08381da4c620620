# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A process of `perseus serve` for tests."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

START_SECONDS = 60.0
MOST_LOG_BYTES = 1 << 26


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
    is_standby
        Another server may have the store: wait only until it is known whether it has.
    """

    def __init__(
        self,
        binary: Path,
        store: Path | str,
        *options: str,
        listen: str = "127.0.0.1:0",
        is_standby: bool = False,
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
        if is_standby:
            self.url = self._listening()
            return
        line = self._process.stdout.readline()
        if "ready at " not in line:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"the server did not start: {line!r} {self.log()}")
        self.url = line.split("ready at ")[1].strip()

    def _listening(self) -> str:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            log = self.log()
            found = re.search(r" listening url=(\S+)", log)
            if found and re.search(" (standby active|ready url)=", log):
                return found[1]
            time.sleep(0.01)
        raise AssertionError(f"the server does not listen: {self.log()}")

    def is_active(self) -> bool:
        """Whether it has the store."""
        try:
            return self.call("GET", "/readyz")[0] == 200
        except GoneError:
            return False

    def log(self) -> str:
        """Return what the server logged."""
        # The server writes at the file's place, which must stay.
        return os.pread(self._log.fileno(), MOST_LOG_BYTES, 0).decode()

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
