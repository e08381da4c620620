# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A modelled profile: time and energy of every stage at every clock, without measuring anything.

From the shape of a transformer or Wide-ResNet and an analytic model of the GPU. The result is
modelled, not measured, and says so. docs/evidence/evidence.md states the model, the source of every
constant and the error against measured tables. The same arguments give the same bytes everywhere.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import math
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perseus.planner_error import PlannerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_GPT = {"vocabulary": 51200, "sequence": 2048}
_BERT = {"vocabulary": 30522, "sequence": 512}
_T5 = {"layers": 48, "hidden": 1024, "vocabulary": 32128, "encoder_layers": 24, "sequence": 512}
_GATED = {"kv_heads": 8, "head_dim": 128, "ffn_matrices": 3}
_LLAMA = {**_GATED, "vocabulary": 128256, "sequence": 8192}
_QWEN = {**_GATED, "vocabulary": 151936, "sequence": 4096}
_MIXTURE = {**_QWEN, "kv_heads": 4, "experts": 128, "active_experts": 8}


def _sized(layers: int, hidden: int, heads: int, **more: int) -> dict[str, int]:
    return {"layers": layers, "hidden": hidden, "heads": heads, **more}


# The numbers of a transformer. Sources: docs/evidence/evidence.md. GPT-3's vocabulary of 50,257 is
# padded to 51,200, as Megatron-LM does.
TRANSFORMERS: dict[str, dict[str, int]] = {
    "gpt3-1.3b": {**_GPT, **_sized(24, 2048, 16)},
    "gpt3-2.7b": {**_GPT, **_sized(32, 2560, 32)},
    "gpt3-6.7b": {**_GPT, **_sized(32, 4096, 32)},
    "gpt3-13b": {**_GPT, **_sized(40, 5120, 40)},
    "gpt3-175b": {**_GPT, **_sized(96, 12288, 96)},
    "opt-30b": {**_GPT, **_sized(48, 7168, 56), "vocabulary": 50272},
    "bloom-3b": {**_GPT, **_sized(30, 2560, 32), "vocabulary": 250880},
    "bloom-176b": {**_GPT, **_sized(70, 14336, 112), "vocabulary": 250880},
    "bert-base": {**_BERT, **_sized(12, 768, 12)},
    "bert-large": {**_BERT, **_sized(24, 1024, 16)},
    "bert-huge": {**_BERT, **_sized(24, 2048, 16)},
    "t5-large": {**_T5, "heads": 16, "head_dim": 64, "ffn": 4096},
    "t5-3b": {**_T5, "heads": 32, "head_dim": 128, "ffn": 16384},
    "t5-11b": {**_T5, "heads": 128, "head_dim": 128, "ffn": 65536},
    "llama3-8b": {**_LLAMA, **_sized(32, 4096, 32, ffn=14336)},
    "llama3-70b": {**_LLAMA, **_sized(80, 8192, 64, ffn=28672)},
    "llama3-405b": {**_LLAMA, **_sized(126, 16384, 128, ffn=53248)},
    "qwen3-8b": {**_QWEN, **_sized(36, 4096, 32, ffn=12288)},
    "qwen3-14b": {**_QWEN, **_sized(40, 5120, 40, ffn=17408)},
    "qwen3-32b": {**_QWEN, **_sized(64, 5120, 64, ffn=25600)},
    "qwen3-30b-a3b": {**_MIXTURE, **_sized(48, 2048, 32, ffn=768, expert_ffn=768)},
    "qwen3-235b-a22b": {**_MIXTURE, **_sized(94, 4096, 64, ffn=1536, expert_ffn=1536)},
    "deepseek-v3": {
        **_sized(61, 7168, 128, head_dim=128, ffn=18432, ffn_matrices=3),
        **{"vocabulary": 129280, "sequence": 4096, "experts": 256, "active_experts": 8},
        **{"shared_experts": 1, "expert_ffn": 2048, "dense_layers": 3, "q_lora_rank": 1536},
        **{"kv_lora_rank": 512, "rope_head_dim": 64, "mtp_layers": 1},
    },
}

# Bottleneck blocks in four groups, each after the first with half the height and width and twice
# the channels; the factor widens the inner convolution (Zagoruyko and Komodakis 2016).
WIDE_RESNETS = {
    "wide-resnet50_8": ((3, 4, 6, 3), 8),
    "wide-resnet101_8": ((3, 4, 23, 3), 8),
}

# Fields of a shape, with what each means: 0 is "as the named model", or the default.
SHAPE_FIELDS = {
    "layers": "Layers.",
    "hidden": "Hidden size.",
    "heads": "Attention heads.",
    "kv_heads": "Key-value heads (default: heads).",
    "head_dim": "Size of a head (default: hidden / heads).",
    "ffn": "Inner size of the feed-forward block (default: 4 x hidden).",
    "ffn_matrices": "Matrices of the feed-forward block: 2, or 3 if it is gated.",
    "vocabulary": "Tokens of the vocabulary.",
    "sequence": "Tokens of a sample.",
    "encoder_layers": "Encoder-decoder models: how many of the first layers are the encoder's.",
    "experts": "Mixture of experts: experts in a layer.",
    "active_experts": "Mixture of experts: routed experts that a token goes to.",
    "shared_experts": "Mixture of experts: experts that every token goes to.",
    "expert_ffn": "Inner size of one expert (default: --ffn).",
    "dense_layers": "Mixture of experts: how many of the first layers have no experts.",
    "q_lora_rank": "Latent attention: rank of the queries' projection.",
    "kv_lora_rank": "Latent attention: rank of the keys' and values' projection.",
    "rope_head_dim": "Latent attention: size of a head's rotary part.",
    "mtp_layers": "Multi-token prediction modules, on the last stage.",
}
_NEEDED = ("layers", "hidden", "heads", "vocabulary", "sequence")
_MOST_LAYERS = 1024
_MOST_WIDTH = 100_000_000
_MOST_COUNT = 1_000_000
_RESNET_EXPANSION = 4  # Outer channels of a bottleneck, over the narrow ones.


class Direction(NamedTuple):
    """What forward or backward costs: shares of the peak rate at the highest clock."""

    efficiency: float
    clock_share: float  # Of the time at the highest clock, what scales with 1 / clock.
    head_efficiency: float
    head_overhead_seconds: float = 0.0  # Per microbatch, at the highest clock.


@dataclass(frozen=True)
class Gpu:
    """An analytic GPU: power has two slopes with a knee, cut off at the cap."""

    title: str
    peak_flops: float  # Dense bf16, a second.
    clocks: tuple[int, int, int]  # Lowest that is modelled, highest, step; MHz.
    blocking_watts: float
    knee: tuple[float, float]  # MHz, watts.
    slopes: tuple[float, float]  # Watts a MHz, below and above the knee.
    cap_watts: float
    forward: Direction
    backward: Direction
    head_overhead_power_share: float = 0.0
    # Of convolutions: both directions, and the efficiency of the four groups over the third's.
    convolutions: tuple[Direction, Direction, tuple[float, ...]] | None = None

    def effective_mhz(self, mhz: float) -> float:
        """Return the clock at which the card really runs when set to `mhz`."""
        cap_mhz = self.knee[0] + (self.cap_watts - self.knee[1]) / self.slopes[1]
        return min(mhz, cap_mhz)

    def watts(self, mhz: float) -> float:
        """Return the mean power of computation when set to `mhz`."""
        above = self.effective_mhz(mhz) - self.knee[0]
        return self.knee[1] + self.slopes[0 if above < 0 else 1] * above


GPUS = {
    "a100-sxm": Gpu(
        *("NVIDIA A100 SXM 80 GB", 311.87e12, (855, 1410, 15), 83.64, (1140, 302.6)),
        *((0.23, 0.71), 476, Direction(0.7506, 0.8693, 0.7506, 0.002575)),
        *(Direction(0.8102, 0.8390, 0.8102, 0.003162), 0.314),
    ),
    # No knee within the clocks that were measured: one slope, up to the cap.
    "a100-pcie": Gpu(
        *("NVIDIA A100 PCIe 80 GB", 311.87e12, (1050, 1410, 15), 83.64, (1125, 271.2)),
        *((0.417, 0.417), 300, Direction(0.1866, 0.7486, 0.2251)),
        Direction(0.2158, 0.6249, 0.2023),
    ),
    "a40": Gpu(
        *("NVIDIA A40", 149.67e12, (855, 1740, 15), 70.38, (1155, 206.4), (0.105, 0.26), 294),
        *(Direction(0.6013, 0.3031, 0.8748), Direction(0.6815, 0.4984, 0.8061), 0.0),
        (
            *(Direction(0.2912, 0.3338, 0.2912), Direction(0.3044, 0.6657, 0.3044)),
            (0.6705, 0.8726, 1.0, 0.6323),
        ),
    ),
}
_UNSOURCED = ("h100-sxm", "h100-pcie", "h200-sxm", "b200", "v100", "rtx-3090", "rtx-a6000")


@dataclass
class Spec:
    """What to model; fields are those of the command line."""

    model: str = ""  # Empty: all from `shape`.
    gpu: str = ""
    stages: int = 0  # Of the model: ranks x virtual stages.
    virtual_stages: int = 1
    tp: int = 1
    microbatch_size: int = 1
    microbatches: int = 0  # 0: four per rank.
    partition: str = "balanced"  # Or "uniform", or layers of each stage: "7,7,6,4".
    schedule: str = ""
    recompute: bool = False
    efficiency: float = 0.0  # 0: the constant that was fitted for the GPU.
    min_clock: int = 0
    max_clock: int = 0
    clock_step: int = 0
    shape: dict[str, int] = field(default_factory=dict)  # Overrides, by SHAPE_FIELDS.


class Flops(NamedTuple):
    """Operations of one microbatch's forward, on all tensor-parallel GPUs together."""

    layers: list[float]  # Or residual blocks, the first with the convolution before it.
    head: float
    mtp: float = 0.0


class Stage(NamedTuple):
    """One stage at the highest clock of the profile."""

    layers: int
    forward_seconds: float
    backward_seconds: float


class Modelled(NamedTuple):
    """A modelled profile, its job file and what it comes to."""

    profile_csv: str
    job_toml: str
    command: str  # That makes the same again.
    stages: list[Stage]
    flops_per_microbatch: float  # Forward and backward, recomputation left out.
    imbalance: float  # Slowest stage over the mean stage, forward + backward.


def _folded(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def _known(what: str, given: str, names: Sequence[str], more: str = "") -> str:
    """Return the name that is meant, however it is spelled."""
    by_fold = {_folded(name): name for name in names}
    if _folded(given) in by_fold:
        return by_fold[_folded(given)]
    near = difflib.get_close_matches(_folded(given), by_fold, 1, 0.7)
    hint = f"; did you mean '{by_fold[near[0]]}'?" if near else ""
    raise PlannerError(
        f"--{what}: there is no {given[:40]!r}{hint}; expected one of {', '.join(names)}{more}"
    )


def transformer_of(spec: Spec) -> dict[str, int]:
    """Return the shape of a transformer, complete and checked."""
    shape = dict.fromkeys(SHAPE_FIELDS, 0) | TRANSFORMERS.get(spec.model, {})
    for name, value in spec.shape.items():
        if not 0 <= value <= _MOST_WIDTH:
            raise PlannerError(f"{_flag(name)} {value}: expected 1 to {_MOST_WIDTH}")
        shape[name] = value or shape[name]
    for name in _NEEDED:
        if shape[name] <= 0:
            raise PlannerError(
                f"{_flag(name)} is missing: without --model, give at least "
                f"{', '.join(map(_flag, _NEEDED))}"
            )
    shape["kv_heads"] = shape["kv_heads"] or shape["heads"]
    shape["head_dim"] = shape["head_dim"] or shape["hidden"] // shape["heads"]
    shape["ffn"] = shape["ffn"] or 4 * shape["hidden"]
    shape["ffn_matrices"] = shape["ffn_matrices"] or 2
    shape["expert_ffn"] = shape["expert_ffn"] or shape["ffn"]
    experts, layers = shape["experts"], shape["layers"]
    for wrong, sentence in (
        (layers > _MOST_LAYERS, f"--layers {layers} is too many: at most {_MOST_LAYERS}"),
        (not shape["head_dim"], "--heads is more than --hidden: a head needs a width"),
        (shape["heads"] % shape["kv_heads"], "--kv-heads must divide --heads"),
        (
            shape["ffn_matrices"] not in (2, 3),
            "--ffn-matrices: expected 2 (plain) or 3 (gated: SwiGLU, GeGLU)",
        ),
        (
            max(shape["encoder_layers"], shape["dense_layers"]) > layers,
            f"--encoder-layers and --dense-layers are counted among --layers {layers}: neither "
            "can be more",
        ),
        (
            experts and not 0 < shape["active_experts"] <= experts,
            f"--active-experts {shape['active_experts']}: expected 1 to {experts}, the experts",
        ),
        (
            not experts
            and any(shape[n] for n in ("active_experts", "shared_experts", "dense_layers")),
            "--active-experts, --shared-experts and --dense-layers describe a mixture of experts: "
            "give --experts, too",
        ),
        (
            not shape["kv_lora_rank"] and (shape["q_lora_rank"] or shape["rope_head_dim"]),
            "--q-lora-rank and --rope-head-dim describe multi-head latent attention: give "
            "--kv-lora-rank, too",
        ),
    ):
        if wrong:
            raise PlannerError(sentence)
    return shape


def transformer_flops(s: dict[str, int], samples: int) -> Flops:
    """Count products of matrices, attention scores as if there were no causal mask.

    As Narayanan et al. 2021 (appendix), and nothing else.
    """
    tokens = float(samples * s["sequence"])
    hidden, heads, width = s["hidden"], s["heads"], s["head_dim"]
    weights = float(2 * hidden * (heads + s["kv_heads"]) * width)
    score_width = heads * 2 * width  # Of queries and values together, all heads.
    if s["kv_lora_rank"]:
        query = heads * (width + s["rope_head_dim"])
        rank = s["q_lora_rank"]
        weights = float((hidden + query) * rank if rank else hidden * query)
        weights += float(hidden * (s["kv_lora_rank"] + s["rope_head_dim"]))
        weights += float(s["kv_lora_rank"] * 2 * heads * width) + float(heads * width * hidden)
        score_width = heads * (2 * width + s["rope_head_dim"])
    attention = 2 * tokens * (weights + s["sequence"] * float(score_width))

    def feed_forward(dense: bool) -> float:
        if dense:
            return 2 * tokens * float(s["ffn_matrices"] * hidden * s["ffn"])
        expert = float(s["ffn_matrices"] * hidden * s["expert_ffn"])
        experts = s["active_experts"] + s["shared_experts"]
        return 2 * tokens * (expert * experts + float(hidden * s["experts"]))

    layers = [
        (2 if 0 < s["encoder_layers"] <= k else 1) * attention
        + feed_forward(not s["experts"] or k < s["dense_layers"])
        for k in range(s["layers"])
    ]
    head = 2 * tokens * float(hidden * s["vocabulary"])
    # Each module joins two hidden states, runs a layer and projects again.
    module = 2 * tokens * float(2 * hidden * hidden) + attention + feed_forward(not s["experts"])
    return Flops(layers, head, s["mtp_layers"] * (module + head))


def wide_resnet_flops(
    blocks: Sequence[int], factor: int, images: int, pixels: int = 224, classes: int = 1000
) -> Flops:
    """Count convolutions and the classifier, without normalization, activations and pooling."""

    def convolution(inner: int, outer: int, kernel: int, size: int) -> float:
        return 2.0 * (inner * outer * kernel * kernel) * (size * size)

    narrow = before = 64
    size = pixels // 4  # The stem halves height and width, and so does the pooling after it.
    layers = []
    for group, count in enumerate(blocks):
        outer, inner = _RESNET_EXPANSION * narrow, narrow * factor
        for block in range(count):
            # A group's first block skips every other pixel, and projects its shortcut.
            out_size = size // 2 if block == 0 and group > 0 else size
            flops = convolution(before, inner, 1, size) + convolution(inner, inner, 3, out_size)
            flops += convolution(inner, outer, 1, out_size)
            flops += convolution(before, outer, 1, out_size) if block == 0 else 0
            layers.append(images * flops)
            before, size = outer, out_size
        narrow *= 2
    layers[0] += images * convolution(3, 64, 7, pixels // 2)
    return Flops(layers, images * 2.0 * (before * classes))


def _best_cuts(
    ends: list[float], stages: int, tail: float, combine: Callable[[float, float], float]
) -> list[int]:
    """Cut prefix sums into non-empty runs of least total cost; return their lengths."""
    layers = len(ends) - 1
    best = [0.0, *[math.inf] * layers]
    cuts = []
    for stage in range(stages):
        extra = tail if stage + 1 == stages else 0.0
        after, cut = [math.inf] * (layers + 1), [0] * (layers + 1)
        for end in range(stage + 1, layers - (stages - 1 - stage) + 1):
            for start in range(stage, end):
                cost = combine(best[start], ends[end] - ends[start] + extra)
                if cost < after[end]:
                    after[end], cut[end] = cost, start
        best = after
        cuts.append(cut)
    counts, end = [], layers
    for cut in reversed(cuts):
        counts.append(end - cut[end])
        end = cut[end]
    return counts[::-1]


def _partition(text: str, stages: int, layer_seconds: list[float], tail: float) -> list[int]:
    layers = len(layer_seconds)
    if text.lower() == "uniform":
        return [layers // stages + (k < layers % stages) for k in range(stages)]
    if text.lower() != "balanced":
        try:
            counts = [int(part) for part in text.split(",")]
        except ValueError:
            counts = [0]
        if min(counts) < 1:
            raise PlannerError(
                f"--partition {text[:40]!r}: expected uniform, balanced or layers of each stage "
                "such as 7,7,6,4, each at least 1"
            )
        if len(counts) != stages:
            raise PlannerError(f"--partition lists {len(counts)} stages, but --stages is {stages}")
        if sum(counts) != layers:
            raise PlannerError(
                f"--partition does not add up to the model's {layers} layers (of a Wide-ResNet: "
                "residual blocks); embedding, stem and head are not counted"
            )
        return counts
    # The slowest stage as fast as can be; among such partitions, the most even.
    ends = [0.0, *itertools.accumulate(layer_seconds)]
    slowest, start = 0.0, 0
    for stage, count in enumerate(_best_cuts(ends, stages, tail, max)):
        last = tail if stage + 1 == stages else 0.0
        slowest = max(slowest, ends[start + count] - ends[start] + last)
        start += count
    limit = slowest * (1 + 1e-9)  # Sums of equal layers differ in the last bits.
    return _best_cuts(ends, stages, tail, lambda cost, s: math.inf if s > limit else cost + s * s)


class _Costs:
    """Seconds and joules of work (operations of layers and of the head) on one GPU."""

    def __init__(self, gpu: Gpu, directions: tuple[Direction, Direction], recompute: bool) -> None:
        self.gpu, self.recompute = gpu, recompute
        self.forward_direction, self.backward_direction = directions

    def _of(
        self, direction: Direction, factor: int, work: tuple[float, float | None], mhz: int
    ) -> tuple[float, float]:
        gpu, (layers, head) = self.gpu, work
        slowdown = gpu.clocks[1] / gpu.effective_mhz(mhz)
        stretch = (1 - direction.clock_share) + direction.clock_share * slowdown
        computing = factor * layers / (direction.efficiency * gpu.peak_flops)
        computing += factor * (head or 0.0) / (direction.head_efficiency * gpu.peak_flops)
        computing *= stretch
        overhead = 0.0 if head is None else direction.head_overhead_seconds * stretch
        energy = (computing + overhead * gpu.head_overhead_power_share) * gpu.watts(mhz)
        return computing + overhead, energy

    def forward(self, work: tuple[float, float | None], mhz: int) -> tuple[float, float]:
        return self._of(self.forward_direction, 1, work, mhz)

    def backward(self, work: tuple[float, float | None], mhz: int) -> tuple[float, float]:
        seconds, joules = self._of(self.backward_direction, 2, work, mhz)
        if self.recompute:  # The layers run forward once more; the head keeps its activations.
            more = self.forward((work[0], None), mhz)
            return seconds + more[0], joules + more[1]
        return seconds, joules

    def both(self, work: tuple[float, float | None], mhz: int) -> float:
        return self.forward(work, mhz)[0] + self.backward(work, mhz)[0]


def _gpu_of(name: str) -> str:
    for known in _UNSOURCED:
        if _folded(name) in (_folded(known), _folded(known.split("-sxm")[0])):
            raise PlannerError(
                f"--gpu {known}: no public source gives its blocking power, voltage knee, power "
                "slopes, power under training load and the share of time that follows the clock, "
                "so it is not modelled (nothing is guessed); sweep its clocks and plan from the "
                "measured profile (`perseus plan PROFILE.csv`), or model one of: "
                f"{', '.join(GPUS)}"
            )
    if _folded(name) == "a100":
        raise PlannerError("--gpu a100: say which card, a100-sxm or a100-pcie")
    return _known("gpu", name, list(GPUS))


def _clocks(spec: Spec, gpu: Gpu) -> list[int]:
    least, most, step = gpu.clocks
    low, high, by = spec.min_clock or least, spec.max_clock or most, spec.clock_step or step
    if not least <= low <= high <= most:
        raise PlannerError(
            f"--min-clock {low} --max-clock {high}: {gpu.title} is modelled from {least} to {most} "
            "MHz, where measured tables reach; give a range within"
        )
    if (most - high) % step:
        raise PlannerError(
            f"--max-clock {high}: the clocks of {gpu.title} are {most} MHz and every {step} MHz "
            "below"
        )
    if by < 1 or by % step:
        raise PlannerError(
            f"--clock-step {by}: expected a multiple of {step} MHz, the step of {gpu.title}"
        )
    return list(range(high, low - 1, -by))


def _check_layout(spec: Spec, layers: int, heads: int | None) -> None:
    """Check what stages and tensor parallelism ask for; `heads` None: of a Wide-ResNet."""
    for name in ("stages", "virtual_stages", "tp", "microbatch_size", "microbatches"):
        value, least = getattr(spec, name), int(name != "microbatches")
        if not least <= value <= _MOST_COUNT:
            raise PlannerError(
                f"{_flag(name)} {value} is out of range: expected {least} to {_MOST_COUNT}"
            )
    if spec.stages > layers:
        what = "layers" if heads else "residual blocks"
        raise PlannerError(
            f"--stages {spec.stages} is more than the model's {layers} {what}: every stage needs "
            "at least one"
        )
    if spec.stages % spec.virtual_stages:
        raise PlannerError(
            f"--virtual-stages {spec.virtual_stages} does not divide --stages {spec.stages}, the "
            "model's stages: ranks x virtual stages"
        )
    if heads and heads % spec.tp:
        raise PlannerError(f"--tp {spec.tp} does not divide the model's {heads} attention heads")
    if not heads and (spec.tp != 1 or any(spec.shape.values())):
        raise PlannerError(f"{spec.model} is a convolutional network: leave out --tp and shapes")
    if not 0 <= spec.efficiency <= 1:
        raise PlannerError(f"--efficiency {spec.efficiency:g}: expected above 0 and at most 1")
    if not spec.schedule.replace("-", "").replace("_", "").isalnum() and spec.schedule:
        raise PlannerError(f"--schedule {spec.schedule[:40]!r}: expected a name, such as 1f1b")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _command(spec: Spec) -> str:
    """Return the command line that makes the same profile again."""
    words = [f"--model {spec.model}"] if spec.model else []
    words += [f"{_flag(name)} {spec.shape[name]}" for name in SHAPE_FIELDS if spec.shape.get(name)]
    words += [f"--gpu {spec.gpu}", f"--stages {spec.stages}"]
    usual = Spec()
    for name in ("virtual_stages", "tp", "microbatch_size", "microbatches", "partition"):
        if (value := getattr(spec, name)) != getattr(usual, name):
            words.append(f"{_flag(name)} {str(value).replace(' ', '')}")
    words += [f"--schedule {spec.schedule}"] if spec.schedule else []
    words += ["--recompute"] if spec.recompute else []
    words += [f"--efficiency {spec.efficiency:.9g}"] if spec.efficiency else []
    for name in ("min_clock", "max_clock", "clock_step"):
        words += [f"{_flag(name)} {getattr(spec, name)}"] if getattr(spec, name) else []
    return " ".join(["perseus synth", *words])


def synthesize(spec: Spec, profile_path: str = "profile.csv") -> Modelled:
    """Model a profile; `profile_path` is how the job file refers to it.

    Raises
    ------
    PlannerError
        With a sentence that names the option, what was expected and what there is instead.
    """
    spec = Spec(**vars(spec))
    if spec.model:
        names = [*TRANSFORMERS, *WIDE_RESNETS]
        more = f", or the numbers of another transformer ({', '.join(map(_flag, _NEEDED))})"
        spec.model = _known("model", spec.model, names, more)
    resnet = WIDE_RESNETS.get(spec.model)
    shape = None if resnet else transformer_of(spec)
    spec.gpu = _gpu_of(spec.gpu)
    gpu = GPUS[spec.gpu]
    layers = sum(resnet[0]) if resnet else shape["layers"] if shape else 0
    _check_layout(spec, layers, shape["heads"] if shape else None)
    clocks = _clocks(spec, gpu)
    directions = (gpu.forward, gpu.backward)
    if shape:
        flops = transformer_flops(shape, spec.microbatch_size)
        each = flops.layers
    elif resnet:
        flops = wide_resnet_flops(*resnet, spec.microbatch_size)
        if gpu.convolutions is None:
            able = [name for name, one in GPUS.items() if one.convolutions]
            raise PlannerError(
                f"--model {spec.model} on --gpu {spec.gpu}: no measured table gives the efficiency "
                "of convolutions on this card and the share of their time that follows the clock, "
                "so they are not modelled there (nothing is guessed); sweep its clocks and plan "
                f"from the measured profile, or model one of: {', '.join(able)}"
            )
        directions = gpu.convolutions[:2]
        groups = [k for k, count in enumerate(resnet[0]) for _ in range(count)]
        each = [f / gpu.convolutions[2][k] for f, k in zip(flops.layers, groups, strict=True)]
    if spec.efficiency:
        factor = spec.efficiency / directions[0].efficiency
        scaled = [
            Direction(
                min(1.0, d.efficiency * factor),
                d.clock_share,
                min(1.0, d.head_efficiency * factor),
                d.head_overhead_seconds / factor,
            )
            for d in directions
        ]
        directions = (scaled[0], scaled[1])
    costs = _Costs(gpu, directions, spec.recompute)
    per_gpu = [f / spec.tp for f in each]
    tail = (flops.mtp / spec.tp, flops.head / spec.tp)
    layer_seconds = [costs.both((f, None), clocks[0]) for f in per_gpu]
    counts = _partition(spec.partition, spec.stages, layer_seconds, costs.both(tail, clocks[0]))
    works: list[tuple[float, float | None]] = []
    left: Iterator[float] = iter(per_gpu)
    for stage, count in enumerate(counts):
        work, head = tail if stage + 1 == spec.stages else (0.0, None)
        for f in itertools.islice(left, count):
            work += f
        works.append((work, head))
    stages = [
        Stage(count, costs.forward(work, clocks[0])[0], costs.backward(work, clocks[0])[0])
        for count, work in zip(counts, works, strict=True)
    ]
    times = [one.forward_seconds + one.backward_seconds for one in stages]
    command = _command(spec)
    listed = ",".join(map(str, counts))
    lines = [
        f"# MODELLED, not measured: an analytic model of {gpu.title}.",
        f"# Made by: {command}",
        f"# Residual blocks per stage: {listed}; the first stage also has the stem, the last the "
        "classifier."
        if resnet
        else f"# Layers per stage: {listed}; the last stage also has the vocabulary head.",
        "# Seconds and joules of one GPU; the model and its error: docs/evidence/evidence.md.",
        "stage,instruction,frequency,time,energy",
    ]
    # Nine digits: the same text whatever the last bits of a machine's doubles.
    for stage, one in enumerate(works):
        for name, cost in (("forward", costs.forward), ("backward", costs.backward)):
            for mhz in clocks:
                seconds, joules = cost(one, mhz)
                lines.append(f"{stage},{name},{mhz},{seconds:.9g},{joules:.9g}")
    usual = "interleaved-1f1b" if spec.virtual_stages > 1 else "1f1b"
    quoted = profile_path.replace("\\", "\\\\").replace('"', '\\"')
    job = [
        f"# A modelled training job, made by: {command}",
        "# Plan it with: perseus plan JOB.toml",
        f'profile = "{quoted}"',
        f'schedule = "{spec.schedule or usual}"',
        f"stages = {spec.stages}",
        f"virtual_stages = {spec.virtual_stages}",
        f"microbatches = {spec.microbatches or 4 * spec.stages // spec.virtual_stages}",
        f"tp = {spec.tp}",
        "# Watts of one GPU that waits for its neighbour.",
        f"blocking_power = {gpu.blocking_watts:.9g}",
    ]
    total = 3 * (sum(flops.layers) + flops.mtp + flops.head)
    imbalance = max(times) / (sum(times) / len(times))
    return Modelled(
        "\n".join(lines) + "\n", "\n".join(job) + "\n", command, stages, total, imbalance
    )


def write(spec: Spec, folder: str | os.PathLike[str]) -> Modelled:
    """Model a profile and write profile.csv and job.toml, unless they would replace measured ones.

    Raises
    ------
    PlannerError
        As `synthesize`, and where a file there was not written by this function.
    """
    made = synthesize(spec)
    files = {"profile.csv": made.profile_csv, "job.toml": made.job_toml}
    for name in files:
        path = Path(folder, name)
        if path.exists() and not path.read_bytes().startswith((b"# MODELLED", b"# A modelled")):
            raise PlannerError(
                f"{path}: --output would replace a file that 'perseus synth' did not write; "
                "choose another place"
            )
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        fresh = Path(folder, f".{name}.new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(Path(folder, name))
    return made


def main(arguments: Sequence[str]) -> int:
    """Answer `perseus synth`."""
    parser = argparse.ArgumentParser(
        prog="perseus synth",
        description=__doc__.splitlines()[0] + " Without -o the profile is printed.",
    )
    usual = Spec()
    parser.add_argument("--model", default="", help=", ".join([*TRANSFORMERS, *WIDE_RESNETS]))
    parser.add_argument("--gpu", default="", help=", ".join(GPUS))
    for name, says in {
        "stages": "stages of the model = ranks x virtual stages",
        "virtual_stages": "stages that each rank holds (default 1)",
        "tp": "GPUs of one rank (default 1)",
        "microbatch_size": "samples of a microbatch (default 1)",
        "microbatches": "of one iteration, for the job file (default: four per rank)",
    }.items():
        parser.add_argument(
            _flag(name), type=int, default=getattr(usual, name), metavar="N", help=says
        )
    parser.add_argument(
        "--partition",
        default=usual.partition,
        metavar="uniform|balanced|N,N,...",
        help="layers of each stage (default: balanced, the slowest stage as fast as possible)",
    )
    parser.add_argument("--schedule", default="", metavar="NAME", help="of the job file")
    parser.add_argument("--recompute", action="store_true", help="activations in the backward")
    parser.add_argument(
        "--efficiency", type=float, default=0.0, help="share of the peak rate of a forward"
    )
    for name in ("min_clock", "max_clock", "clock_step"):
        parser.add_argument(_flag(name), type=int, default=0, metavar="MHZ")
    parser.add_argument("-o", "--output", metavar="DIR", help="write profile.csv and job.toml here")
    group = parser.add_argument_group("shape of the transformer, instead of the model's")
    for name, says in SHAPE_FIELDS.items():
        group.add_argument(_flag(name), type=int, default=0, metavar="N", help=says)
    given = vars(parser.parse_args(arguments))
    output = given.pop("output")
    spec = Spec(shape={name: given.pop(name) for name in SHAPE_FIELDS}, **given)
    missing = ["--gpu"] * (not spec.gpu) + ["--stages"] * (not spec.stages)
    if not spec.model and not any(spec.shape.values()):
        missing.insert(0, "--model")
    if missing:
        raise PlannerError(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing, as in 'perseus "
            "synth --model gpt3-1.3b --gpu a100-sxm --stages 4' ('perseus synth --help' lists "
            "models and GPUs)"
        )
    if output is None:
        sys.stdout.write(synthesize(spec).profile_csv)
        return 0
    made = write(spec, output)
    print("One microbatch at the highest clock\nstage  layers  forward ms  backward ms")
    for k, one in enumerate(made.stages):
        forward, backward = 1e3 * one.forward_seconds, 1e3 * one.backward_seconds
        print(f"{k:>5}  {one.layers:>6}  {forward:>10,.3f}  {backward:>11,.3f}")
    print(
        f"\nModelled, not measured. The slowest stage takes {made.imbalance:.3f} times the mean.\n"
        f"Written  {output}: profile.csv, job.toml.\nNext     perseus plan {output}/job.toml"
    )
    return 0
