# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Trainers that are told of by callbacks, and what Accelerate prepares."""

from __future__ import annotations

import copy
import functools
import importlib
import logging
import os
import pickle
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import perseus
import ranks
import torch
from perseus.hooks import callbacks as hooks
from ranks import ROWS, WIDTH, weights
from recording import recorded, told
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader

warnings.simplefilter("ignore")
BATCHES = 5
# As torchrun does; run_ranks sets the others, and makes the process group.
os.environ |= {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}


def dataset() -> list[dict[str, torch.Tensor]]:
    """Return BATCHES batches for each of two ranks."""
    generator = torch.Generator().manual_seed(3)
    return [{"x": torch.randn(WIDTH, generator=generator)} for _ in range(2 * ROWS * BATCHES)]


class Net(nn.Module):  # type: ignore[misc]
    """A model that computes its loss, as those of transformers do."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Compute."""
        output = self.layer(x)
        return {"loss": output.square().mean(), "output": output}


def trainer_of(callbacks: list[Any], sharded: bool = False, **options: Any) -> Any:
    """Return a trainer of Lightning's, under DDP or FSDP2 on the process group that there is."""
    pl = importlib.import_module("lightning.pytorch")
    elastic = importlib.import_module("lightning.pytorch.plugins.environments")
    strategies = importlib.import_module("lightning.pytorch.strategies")
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    made = strategies.DDPStrategy(process_group_backend="gloo")
    if sharded:
        made = strategies.ModelParallelStrategy(
            data_parallel_size=2, tensor_parallel_size=1, process_group_backend="gloo"
        )
    return pl.Trainer(
        accelerator="cpu",
        devices=2,
        strategy=made,
        plugins=[elastic.TorchElasticEnvironment()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=callbacks,
        **options,
    )


def lightning() -> object:
    """Automatic and manual optimization, accumulation, evaluation, an exception."""
    pl = importlib.import_module("lightning.pytorch")

    class Module(pl.LightningModule):  # type: ignore[misc, name-defined]
        """A module."""

        def __init__(self, manual: int, backwards: int, fails_at: int) -> None:
            super().__init__()
            self.net = Net()
            self.automatic_optimization = not manual
            self.manual, self.backwards, self.fails_at = manual, backwards, fails_at
            self.losses: list[float] = []

        def configure_model(self) -> None:
            """Shard it."""
            if self.trainer.strategy.__class__.__name__ == "ModelParallelStrategy":
                fully_shard(self.net, mesh=self.device_mesh["data_parallel"])

        def training_step(self, batch: Any, index: int) -> Any:
            """Train."""
            if len(self.losses) == self.fails_at:
                raise ZeroDivisionError
            for _ in range(self.backwards):
                loss = self.net(batch["x"])["loss"]
                if self.manual:
                    self.manual_backward(loss)
            if self.manual and (index + 1) % self.manual == 0:
                self.optimizers().step()
                self.optimizers().zero_grad()
            self.losses.append(float(loss.detach()))
            return loss

        def validation_step(self, batch: Any, _index: int) -> None:
            """Evaluate."""
            self.net(batch["x"])

        def configure_optimizers(self) -> Any:
            """Return an optimizer."""
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def fit(callbacks: list[Any], accumulate: int = 1, **options: int) -> Any:
        module = Module(
            options.get("manual", 0), options.get("backwards", 1), options.get("fails_at", -1)
        )
        loader = DataLoader(dataset(), ROWS)
        trainer = trainer_of(
            callbacks,
            sharded=bool(options.get("sharded")),
            max_epochs=2,
            accumulate_grad_batches=accumulate,
            num_sanity_val_steps=2,
            val_check_interval=2,
        )
        raised = False
        try:
            trainer.fit(module, loader, DataLoader(dataset(), ROWS))
        except ZeroDivisionError:
            raised = True
        return [module.losses, weights(module), raised]

    def on_rank() -> dict[str, Any]:
        done: dict[str, Any] = {}
        meshes: list[Any] = []
        attach = vars(hooks)["attach_ddp"]

        def attach_ddp(*arguments: Any, **given: Any) -> Any:
            meshes.append(getattr(given["mesh"], "mesh_dim_names", None))
            return attach(*arguments, **given)

        vars(hooks)["attach_ddp"] = attach_ddp
        for name, (options, ours) in {
            "automatic": ({}, {}),
            "sharded": ({"sharded": 1}, {}),
            "accumulated": ({"accumulate": 2}, {}),
            "manual": ({"manual": 1}, {}),
            "manual accumulated": ({"manual": 2}, {"accumulate": 2}),
            "two backwards": ({"manual": 1, "backwards": 2}, {}),
            "fails": ({"fails_at": 3}, {}),
        }.items():
            expected = fit([], **options)
            job, log = recorded()
            closes: list[int] = []
            job.close = functools.partial(closes.append, 1)  # type: ignore[method-assign]
            callback = perseus.lightning_callback(job=job, **ours)
            same = fit([callback], **options) == expected
            done[name] = {
                **told(log),
                "same": same,
                "raised": expected[2],
                "closes": len(closes),
                "last_error": job.last_error,
                "mesh": meshes[-1],
                "hooks": len(callback._batches._before) + len(callback._batches._after),
            }
        callback = perseus.lightning_callback(job_id="j", strict=True)
        done["copied"] = [
            copy.deepcopy(callback)._options,
            pickle.loads(pickle.dumps(callback))._options,
        ]
        done["before"] = callback.attached.report()["last_error"]
        done["is_callback"] = isinstance(callback, pl.Callback)
        return done

    return ranks.run_ranks(2, on_rank)


def older_lightning() -> object:
    """The package that was imported is the one whose callback it is."""
    pl = importlib.import_module("pytorch_lightning")
    imported = sorted(name for name in sys.modules if name == "lightning.pytorch")
    return isinstance(perseus.lightning_callback(), pl.Callback), imported


def accelerate() -> object:
    """`attach_ddp` on what `prepare` returned."""
    accelerator = importlib.import_module("accelerate")

    def train(attach: Callable[..., Any], accumulate: int) -> Any:
        one = accelerator.Accelerator(cpu=True, gradient_accumulation_steps=accumulate)
        plain = Net()
        model, optimizer, loader = one.prepare(
            plain,
            torch.optim.SGD(plain.parameters(), lr=0.1),
            DataLoader(dataset(), ROWS),
        )
        attached = attach(model, optimizer)
        losses = []
        for _ in range(2):
            for batch in loader:
                with one.accumulate(model):
                    loss = model(**batch)["loss"]
                    one.backward(loss)
                    optimizer.step()
                    optimizer.zero_grad()
                losses.append(float(loss.detach()))
            model.eval()
            with torch.no_grad():
                model(**batch)
            model.train()
        reason = attached.reason if attached is not None else ""
        if attached is not None:
            attached.detach()
        return reason, [losses, weights(model), type(model).__name__, type(optimizer).__name__]

    def on_rank() -> dict[str, Any]:
        done: dict[str, Any] = {}
        for accumulate in (1, 2):
            _, expected = train(lambda *_: None, accumulate)
            job, log = recorded()
            reason, got = train(
                lambda model, optimizer, job=job, accumulate=accumulate: perseus.attach_ddp(
                    model, optimizer, accumulate=accumulate, job=job
                ),
                accumulate,
            )
            done[str(accumulate)] = {
                **told(log),
                "same": got == expected,
                "wrapped": got[2:],
                "reason": reason,
            }
        return done

    return ranks.run_ranks(2, on_rank)


def transformers() -> object:
    """Hugging Face's Trainer, with accumulation and evaluation."""
    package = importlib.import_module("transformers")

    def train(folder: str, accumulate: int, *callbacks: Any) -> Any:
        model = Net()
        arguments = package.TrainingArguments(
            output_dir=folder,
            use_cpu=True,
            ddp_backend="gloo",
            per_device_train_batch_size=ROWS,
            gradient_accumulation_steps=accumulate,
            num_train_epochs=2,
            eval_strategy="epoch",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            logging_steps=1,
            remove_unused_columns=False,
            label_names=[],
        )
        trainer = package.Trainer(
            model=model,
            args=arguments,
            train_dataset=dataset(),
            eval_dataset=dataset(),
            callbacks=list(callbacks),
        )
        trainer.train()
        losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
        return [losses, weights(model), type(trainer.model_wrapped).__name__]

    def on_rank(folder: str) -> dict[str, Any]:
        done: dict[str, Any] = {}
        for accumulate in (1, 2):
            expected = train(folder, accumulate)
            job, log = recorded()
            callback = perseus.transformers_callback(job=job)
            got = train(folder, accumulate, callback)
            done[str(accumulate)] = {
                **told(log),
                "same": got == expected,
                "wrapped": got[2],
                "reason": callback.attached.reason,
                "undo": len(callback.attached._undo),
            }
        return done

    with tempfile.TemporaryDirectory() as folder:
        return ranks.run_ranks(2, on_rank, folder)


SCENARIOS: dict[str, Callable[..., object]] = {
    f.__name__: f for f in (lightning, older_lightning, accelerate, transformers)
}
