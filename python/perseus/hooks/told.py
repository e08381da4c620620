# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Wrappers that tell a client of each computation: what each of them costs training.

`perseus._told` has the same three names, compiled (python/extension/told.cc): between computations
the caches hold none of this, and a line of Python then costs a microsecond. `choose` takes it where
there is one. What is here is what it does.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable

from perseus.library import Instruction

if TYPE_CHECKING:
    from perseus.client import Client

_MANY = 65_536


class Teller:
    """What the wrappers of one job share.

    Attributes
    ----------
    plain
        A computation that begins or ends now is told to the client, and no more is to be done.
    loss
        Stage and microbatch of the forward that waits for its loss; None: there is none.
    """

    __slots__ = ("client", "fail", "loss", "plain")

    def __init__(self, client: Client, fail: Callable[[str, BaseException], None]) -> None:
        self.client = client
        self.fail = fail
        self.plain = False
        self.loss: tuple[int, int] | None = None


class _Words(dict[int, Any]):
    """What the client is told of a stage's computations of one kind, by microbatch."""

    def __init__(self, client: Client, kind: int, stage: int) -> None:
        super().__init__()
        self._client = client
        self._kind = kind
        self._stage = stage

    def __missing__(self, microbatch: int) -> Any:
        words = self._client.words(self._kind, self._stage, microbatch)
        if len(self) < _MANY:
            self[microbatch] = words
        return words


def computation(
    teller: Teller,
    original: Callable[..., Any],
    careful: Callable[..., Any],
    stage: int,
    whole: int,
    half: int,
    most_args: int,
    has_loss: bool,
) -> Callable[..., Any]:
    """Return `original`, which computes a microbatch, with its begin and end told.

    Parameters
    ----------
    careful
        What is called instead where more than that is to be done, or where a call has no
        microbatch as its first argument, or more than `most_args` without a name.
    stage
        Of the model.
    whole, half
        What it is (`Instruction`), and what it is with a false `full_backward`.
    has_loss
        It is a forward that ends with its loss: `loss` tells that.
    """
    client = teller.client
    wholes, halves = _Words(client, whole, stage), _Words(client, half, stage)
    begin, end = client.begin, client.end

    def told(*args: Any, **kwargs: Any) -> Any:
        if not teller.plain or teller.loss is not None or len(args) > most_args:
            return careful(*args, **kwargs)
        try:
            words = (wholes if kwargs.get("full_backward", True) else halves)[args[0]]
            begin(*words)
        except Exception:
            return careful(*args, **kwargs)
        result = original(*args, **kwargs)
        if has_loss:
            teller.loss = (stage, args[0])
            return result
        try:
            if teller.plain:
                end(*words)
        except Exception as error:
            teller.fail("a computation is not recorded", error)
        return result

    return told


def loss(
    teller: Teller, original: Callable[..., Any], careful: Callable[[], None]
) -> Callable[..., Any]:
    """Return `original`, which computes a loss, with the end of its forward told.

    Parameters
    ----------
    careful
        Tells it where more is to be done.
    """
    client = teller.client

    def told(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        waiting = teller.loss
        if waiting is None:
            return result
        if not teller.plain:
            careful()
            return result
        try:
            teller.loss = None
            client.end(*client.words(Instruction.FORWARD, *waiting))
        except Exception as error:
            teller.fail("a computation is not recorded", error)
        return result

    return told


def choose(client: Client, fail: Callable[[str, BaseException], None]) -> tuple[Any, Any]:
    """Return this module, or the compiled one, and its teller of a client.

    Parameters
    ----------
    fail
        Says what went wrong: a sentence and the exception.
    """
    compiled = client.compiled
    if compiled is None:
        return sys.modules[__name__], Teller(client, fail)
    return compiled, compiled.Teller(client, *client.addresses)
