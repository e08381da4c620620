# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with what the planner is told: a class for each code of its library."""

from __future__ import annotations

from typing import Any


class PlannerError(ValueError):
    """What is wrong with an input, or why there is no plan: one sentence, that of `perseus plan`.

    What is raised is always of the class below that has the code.

    Attributes
    ----------
    code
        "invalid", "infeasible", "io", "overflow", "cancelled", "no memory" or "internal".
    """

    def __new__(cls, message: str = "", code: str = "invalid") -> PlannerError:
        """Make an error of the class that has the code, as OSError does."""
        return super().__new__(_OF_CODE.get(code, cls), message)

    def __init__(self, message: str = "", code: str = "invalid") -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the code in a copy."""
        return PlannerError, (str(self), self.code)


class InvalidInputError(PlannerError):
    """Something in a profile, a job or an argument is wrong."""


class InfeasibleError(PlannerError):
    """There is no such plan: the time is too short, or the constraints allow none."""


class InputFileError(PlannerError):
    """A file cannot be read."""


class TooLargeError(PlannerError):
    """The numbers or the pipeline are too large to be computed with."""


class CancelledError(PlannerError):
    """A callback for progress gave up."""


class OutOfMemoryError(PlannerError):
    """There is not enough memory for this pipeline."""


class InternalError(PlannerError):
    """A mistake in Perseus: please report it."""


_OF_CODE: dict[str, type[PlannerError]] = {
    "invalid": InvalidInputError,
    "infeasible": InfeasibleError,
    "io": InputFileError,
    "overflow": TooLargeError,
    "cancelled": CancelledError,
    "no memory": OutOfMemoryError,
    "internal": InternalError,
}
