# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A very small GPT, cut into stages, and text to train it on."""

from __future__ import annotations

import torch
from torch import nn

VOCABULARY = 64
WIDTH = 32
HEADS = 2
SEQUENCE = 16
ROWS = 2  # Of a microbatch.


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

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute it."""
        if self.tokens is not None:
            x = self.tokens(x)
        x = self.block(x)
        return x if self.head is None else self.head(x)


def loss_of(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return the loss of a microbatch."""
    return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())


def batch_of(iteration: int, replica: int, microbatches: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the input and target of an iteration of one pipeline: counting, with mistakes."""
    random = torch.Generator().manual_seed(iteration * 1000 + replica)
    rows = microbatches * ROWS
    start = torch.randint(VOCABULARY, (rows, 1), generator=random)
    text = (start + torch.arange(SEQUENCE + 1)) % VOCABULARY
    noise = torch.randint(VOCABULARY, text.shape, generator=random)
    text = torch.where(torch.rand(text.shape, generator=random) < 0.1, noise, text)
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()
