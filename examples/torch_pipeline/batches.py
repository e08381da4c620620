# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The data loader: text to train on, all of one length or of lengths that vary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from lengths import LONGEST, REFERENCE, lengths_of
from model import NOT_A_TOKEN, VOCABULARY

ROWS = 2  # Of a microbatch.


@dataclass(frozen=True)
class Batch:
    """What one pipeline trains on in one iteration; `lengths` has one number for each microbatch.

    `others` has the same of the other pipelines, which all draw from one seed: this loader knows
    them without a word. Where yours does not, ask with `torch.distributed.all_gather_object`.
    Rows are padded to the longest that there may be.
    """

    x: torch.Tensor
    target: torch.Tensor
    lengths: list[int]
    others: list[list[int]]

    @property
    def tokens(self) -> int:
        """Of all microbatches."""
        return ROWS * sum(self.lengths)


def batches_of(
    replica: int, pipelines: int, microbatches: int, seed: int | None
) -> Iterator[Batch]:
    """Yield the batches of one pipeline, without end: counting, with mistakes.

    Parameters
    ----------
    seed
        Of the lengths; None: all are alike.
    """
    width = REFERENCE if seed is None else LONGEST
    iteration = 0
    while True:
        all_lengths = [lengths_of(seed, iteration, each, microbatches) for each in range(pipelines)]
        lengths = all_lengths.pop(replica)
        draw = torch.Generator().manual_seed(iteration * 1000 + replica)
        start = torch.randint(VOCABULARY, (microbatches * ROWS, 1), generator=draw)
        text = (start + torch.arange(width + 1)) % VOCABULARY
        noise = torch.randint(VOCABULARY, text.shape, generator=draw)
        text = torch.where(torch.rand(text.shape, generator=draw) < 0.1, noise, text)
        ends = torch.tensor(lengths).repeat_interleave(ROWS).unsqueeze(1)
        is_padding = torch.arange(width) >= ends
        yield Batch(
            text[:, :-1].masked_fill(is_padding, 0),
            text[:, 1:].masked_fill(is_padding, NOT_A_TOKEN),
            lengths,
            all_lengths,
        )
        iteration += 1
