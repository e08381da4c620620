# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""How problems reach whoever trains: in one line, once a job."""

from __future__ import annotations

import _thread
import atexit
import contextlib
import hashlib
import importlib
import logging
import os
import re
import socket
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

_log = logging.getLogger("perseus")

_PAUSE_SECONDS = 1.0  # Ranks that have the same problem notice it within this time.
_LEAVE_SECONDS = 1.0  # At most, for what is still to be said when the job is closed.
_MOST_NAMED = 8  # Ranks that a sentence names.
_DIGIT = re.compile(r"\d")


def say(text: str) -> None:
    """Log one sentence and, where logging is set up, warn of it; never raises."""
    text = f"perseus: {_in_one_line(text).rstrip('.')}; training goes on"
    _log.warning("%s", text)
    # In a plain script the log ends up on stderr, as the warning would. A log may be a file that
    # nobody looks at.
    if _log.hasHandlers():
        with contextlib.suppress(Warning):  # -W error: it is in the log.
            warnings.warn(text, RuntimeWarning, stacklevel=3)


def inform(text: str) -> None:
    """Log one sentence that is no warning; where nobody set up logging, write it to stderr."""
    text = f"perseus: {_in_one_line(text)}"
    if _log.hasHandlers():
        _log.info("%s", text)
    elif sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # It is closed.
            sys.stderr.write(text + "\n")


def _in_one_line(text: str) -> str:
    """Return the text without line ends and the like, whatever a stranger's server answered."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in " ".join(text.split()))


def kind_of(text: str) -> str:
    """Return what two complaints have in common that differ in numbers or names of GPUs alone."""
    return " ".join(word for word in text.split() if not _DIGIT.search(word))


class Speaker:
    """Says what several ranks complain of once, with their numbers.

    The first rank that has a complaint waits a second for others, and speaks for all. The ranks
    count themselves in a store of `torch.distributed`. All of it, and writing to a log, is done on
    threads beside training.

    Parameters
    ----------
    store
        A `torch.distributed.Store` that all ranks share; None: this rank speaks for itself.
    rank, world
        Of this process, and how many there are.
    """

    def __init__(self, store: Any = None, rank: int = 0, world: int = 1) -> None:
        self._store = store
        self._rank = rank
        self._world = world
        self._hurry = threading.Event()
        self._ends: list[threading.Event] = []  # Of what is being said.
        atexit.register(self.close)

    def say(self, text: str) -> None:
        """Say it, unless another rank has. Returns at once."""
        self._beside(self._speak, text)

    def inform(self, text: str) -> None:
        """Say what is no problem, for this rank alone. Returns at once."""
        self._beside(inform, text)

    def _beside(self, tell: Callable[[str], None], text: str) -> None:
        end = threading.Event()
        self._ends.append(end)

        def told() -> None:
            try:
                tell(text)
            finally:
                end.set()

        # Not a `threading.Thread`, whose `start` waits until it runs.
        _thread.start_new_thread(told, ())

    def close(self) -> None:
        """Say now what waits for other ranks. May be called again."""
        atexit.unregister(self.close)
        self._hurry.set()
        for end in self._ends:
            end.wait(_LEAVE_SECONDS)
        self._ends.clear()

    def _speak(self, text: str) -> None:
        if self._store is not None:
            text = self._with_ranks(text)
        if text:
            say(text)

    def _with_ranks(self, text: str) -> str:
        try:
            ranks = self._ranks_with(text)
        except Exception:  # The store has gone with its rank: each speaks for itself.
            ranks = [self._rank]
        return f"{text.rstrip('.')} ({self._named(ranks)})" if ranks else ""

    def _ranks_with(self, text: str) -> list[int]:
        """Return the ranks with this complaint; none: another rank speaks for them."""
        # A connection of its own: training must not wait for one that is in use here.
        clone: Callable[[], Any] | None = getattr(self._store, "clone", None)
        store = self._store if clone is None else clone()
        key = f"perseus/said/{hashlib.sha256(kind_of(text).encode()).hexdigest()[:24]}"
        number = store.add(key, 1)
        store.set(f"{key}/{number}", str(self._rank))
        if number > 1:
            return []
        self._hurry.wait(_PAUSE_SECONDS)
        places = [f"{key}/{place}" for place in range(1, store.add(key, 0) + 1)]
        return sorted(int(store.get(place)) for place in places if store.check([place]))

    def _named(self, ranks: list[int]) -> str:
        if len(ranks) == self._world:
            return f"all {self._world} ranks"
        named = ", ".join(map(str, ranks[:_MOST_NAMED]))
        more = len(ranks) - _MOST_NAMED
        return f"{'rank' if len(ranks) == 1 else 'ranks'} {named}" + (
            f" and {more} more" if more > 0 else ""
        )


def say_once(text: str) -> None:
    """Say it once for all ranks of `torch.distributed`; never raises."""
    speaker = speaker_of_ranks()
    if speaker is None:
        say(text)
    else:
        speaker.say(text)


def other_of_rank(store: Any, job: str, rank: int) -> str:
    """Return which other process has said that it is this rank of the job; empty: none has.

    Parameters
    ----------
    store
        As of `Speaker`; None, and one that is gone: nobody knows.
    job, rank
        A name that all ranks give the job, and what this process says that it is.
    """
    own = f"process {os.getpid()} on {socket.gethostname()}"
    key = f"perseus/rank/{hashlib.sha256(job.encode()).hexdigest()[:24]}/{rank}"
    try:
        first = bytes(store.compare_set(key, "", own)).decode()
    except Exception:
        return ""
    return "" if first == own else first


def speaker_of_ranks() -> Speaker | None:
    """Return who speaks for all ranks; None: this process speaks for itself."""
    store = store_of_ranks()
    if store is None:
        return None
    distributed = sys.modules["torch.distributed"]
    return Speaker(store, distributed.get_rank(), distributed.get_world_size())


def store_of_ranks() -> Any:
    """Return the store that the ranks of `torch.distributed` share; None: there is one rank."""
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        if not distributed.is_initialized() or distributed.get_world_size() < 2:
            return None
        c10d = importlib.import_module("torch.distributed.distributed_c10d")
        return c10d._get_default_store()
    except Exception:  # No PyTorch, or one that keeps its store elsewhere.
        return None
