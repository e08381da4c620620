# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Trains with the hooks of one framework, in a Python that has it, for test_torch_*.py.

hooks_worker.py FRAMEWORK SCENARIO [ARGUMENT...] prints one line of JSON.

FRAMEWORK is a module on_FRAMEWORK.py. `orders`, `life`, `layout` and `failures` below are scenarios
of each that has a `Trainer`; SCENARIOS of the module are its own.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import logging
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import ranks
import torch
from recording import recorded, said_by, steps_of, told

ITERATIONS = 4
OTHER_MICROBATCHES = 2  # Than the plan is for.


def orders(framework: ModuleType, *cases: str) -> object:
    """What the hooks see of training, and what is computed with and without them.

    A case begins with the number of ranks; the words after it are the framework's own.
    """

    def on_rank(case: str) -> dict[str, object]:
        computed = []
        for hooked in (False, True):
            trainer = framework.Trainer(*case.split())
            if hooked:
                job, log = recorded()
                attached = trainer.attach(job=job, strict=True, tokens=7)
            losses = [trainer.step(seed) for seed in range(ITERATIONS)]
            computed.append([losses, trainer.weights()])
        seen = {**told(log), "events": [e[0] for e in log], **trainer.seen()}
        seen["tokens"] = [e[1] for e in log if e[0] == "step_end"]
        attached.detach()
        mark = len(log)
        trainer.step()
        detached = {"detached": log[mark:], "left": trainer.left()}
        return {**seen, **detached, "losses": computed[0][0], "same": computed[0] == computed[1]}

    return {case: ranks.run_ranks(int(case.split()[0]), on_rank, case) for case in cases}


def life(framework: ModuleType) -> object:
    """Evaluation, exceptions, other numbers of microbatches, tokens, accumulation, detaching."""

    def on_rank() -> dict[str, object]:
        trainer = framework.Trainer(*framework.ALONE)
        job, log = recorded()
        attached = trainer.attach(job=job, strict=True)
        trainer.step()
        done = {"begins": told(log)["begins"], **trainer.life(attached, log)}

        mark = len(log)
        trainer.evaluate()
        if framework.REFUSES_NO_GRAD:
            try:
                with torch.no_grad():
                    trainer.step()
            except RuntimeError as error:
                done["no_grad"] = str(error)
        done["evaluation"] = log[mark:]

        trainer.fails(True)
        try:
            trainer.step()
        except ZeroDivisionError:
            done["raised"] = True
        trainer.fails(False)
        trainer.step()
        done["broken"] = steps_of(log, mark)

        mark = len(log)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            trainer.use_microbatches(OTHER_MICROBATCHES)
            trainer.step()
            trainer.step()
            said_by(job)
        trainer.use_microbatches(framework.MICROBATCHES_ALONE)
        done["changed"] = steps_of(log, mark)
        done["said"] = [str(w.message) for w in seen if "perseus" in str(w.message)]

        attached.tokens = lambda: 2048
        trainer.step()
        done["tokens"] = log[-1]
        attached.tokens = lambda: 1 // 0
        trainer.step()
        done["bad_tokens"] = [log[-1][0], job.last_error]
        attached.tokens = 0

        mark = len(log)
        for _ in range(2):
            with job.step():
                trainer.step()
                trainer.step()
        done["accumulated"] = steps_of(log, mark)

        attached.detach()
        attached.detach()
        mark = len(log)
        trainer.step()
        trainer.runs_what_was_kept()
        done["detached"] = log[mark:]
        done["left"] = trainer.left()
        job, log = recorded()
        done["again"] = bool(trainer.attach(job=job))
        trainer.step()
        done["recorded_again"] = told(log)["begins"]
        return done

    return ranks.run_ranks(1, on_rank)[0]


def layout(framework: ModuleType, *sizes: str) -> object:
    """Where each rank stands; the product of the sizes is the number of ranks."""
    count = 1
    for size in sizes:
        count *= int(size)

    def on_rank() -> dict[str, Any]:
        return dataclasses.asdict(framework.place(*map(int, sizes)))

    return ranks.run_ranks(count, on_rank)


def failures(framework: ModuleType) -> object:
    """What cannot be attached: it says so once, and training is untouched."""

    def on_rank() -> dict[str, object]:
        said: dict[str, object] = {}

        def attempt(label: str, attach: Callable[[], Any]) -> None:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                attached = attach()
            said[label] = {
                "on": bool(attached),
                "reason": attached.reason,
                "report": attached.report()["last_error"],
                "warnings": [str(w.message) for w in seen if "perseus" in str(w.message)],
            }

        return {"own": framework.failures(attempt), "said": said}

    return ranks.run_ranks(1, on_rank)[0]


def main() -> None:
    """Run the scenario that the command line names."""
    logging.basicConfig()  # With logging set up a complaint is a warning, too: it is counted.
    framework = importlib.import_module(f"on_{sys.argv[1]}")
    name, arguments = sys.argv[2], sys.argv[3:]
    if name in framework.SCENARIOS:
        answer = framework.SCENARIOS[name](*arguments)
    else:
        shared = {each.__name__: each for each in (orders, life, layout, failures)}
        answer = shared[name](framework, *arguments)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
