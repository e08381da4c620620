# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in a job: it is said once, and is `last_error` while it lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from perseus.hooks.speaker import kind_of, say

if TYPE_CHECKING:
    from perseus.hooks.speaker import Speaker

# So many different complaints are said; who has not read these reads no more.
_MOST_COMPLAINTS = 20
_MICROBATCHES = "microbatches"


class Complaints:
    """The problems of one rank. Nothing here raises.

    Parameters
    ----------
    speaker
        Says each once for all ranks; None: this rank says its own.
    """

    def __init__(self, speaker: Speaker | None = None) -> None:
        self._speaker = speaker
        self._failures: dict[str, str] = {}  # Failures of now, newest last.
        self._of_step: set[str] = set()  # Those of them that end with the step.
        self._said: set[str] = set()  # Without their digits.

    @property
    def last_error(self) -> str:
        """What is wrong now, one sentence; empty: nothing is."""
        return next(reversed(self._failures.values()), "")

    def fail(self, what: str, error: BaseException | None = None, about: str = "") -> None:
        """Say once that something of Perseus went wrong; training goes on.

        Parameters
        ----------
        what
            One sentence.
        error
            What was raised, if anything was.
        about
            A word for it, with which `recover` says that it is over. Empty: it is over when the
            next step begins.
        """
        text = what if error is None else f"{what}: {type(error).__name__}: {error}"
        self._failures.pop(about or what, None)
        self._failures[about or what] = text
        if not about:
            self._of_step.add(what)
        self.complain(text)

    def recover(self, about: str) -> None:
        """Say that what `fail` said is over."""
        self._failures.pop(about, None)

    def recover_step(self) -> None:
        """Say that a step begins: what was wrong with the one before is over."""
        while self._of_step:
            self._failures.pop(self._of_step.pop(), None)

    def guarded(self, tell: Callable[..., object], *arguments: object) -> bool:
        """Call what is ours: it may fail, and training goes on; False: it did."""
        try:
            tell(*arguments)
        except Exception as error:
            self.fail("a computation is not recorded", error)
            return False
        return True

    def is_changed(self, microbatches: float, planned: int) -> bool:
        """Return whether an iteration has another number of microbatches than the plan is for."""
        if microbatches == planned:
            self.recover(_MICROBATCHES)
            return False
        self.fail(
            f"an iteration has {microbatches:g} microbatches and the plan is for {planned}: "
            "such iterations are not used; detach and attach again where this stays",
            about=_MICROBATCHES,
        )
        return True

    def complain(self, text: str) -> None:
        """Say it, unless it was said: the same of another iteration is nothing new."""
        kind = kind_of(text)
        if not text or kind in self._said or len(self._said) >= _MOST_COMPLAINTS:
            return
        self._said.add(kind)
        if self._speaker is None:
            say(text)
        else:
            self._speaker.say(text)
