# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A very small GPT, cut into stages."""

from __future__ import annotations

import torch
from torch import nn

VOCABULARY = 64
WIDTH = 32
HEADS = 2
NOT_A_TOKEN = -100  # In the padding of a target.


class Block(nn.Module):  # type: ignore[misc]
    """Attention and feed-forward, with residuals."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute it."""
        rows, length, _ = x.shape
        heads = self.qkv(self.norm1(x)).view(rows, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(rows, length, WIDTH))
        return x + self.feed(self.norm2(x))


class Stage(nn.Module):  # type: ignore[misc]
    """One stage of the model: the first has the embedding, the last the head."""

    def __init__(self, index: int, stages: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH) if index == 0 else None
        self.block = Block()
        self.head = nn.Linear(WIDTH, VOCABULARY) if index == stages - 1 else None

    def forward(self, x: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
        """Compute it, of the first `length` tokens of each row.

        What stages send each other is always as long: the rest stays empty.
        """
        width = x.shape[1]
        x = x[:, : int(length)]
        if self.tokens is not None:
            x = self.tokens(x)
        x = self.block(x)
        if self.head is not None:
            x = self.head(x)
        return nn.functional.pad(x, (0, 0, 0, width - x.shape[1]))


def loss_of(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return the loss of a microbatch."""
    return nn.functional.cross_entropy(
        output.flatten(0, 1), target.flatten(), ignore_index=NOT_A_TOKEN
    )
