// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Iterations: as a plan or a measurement has them, and one at maximum clocks, made from a plan: the
// same order on each rank, each computation as soon as its inputs are there. No drawing.

import type { Block, Iteration } from 'charts/timeline';
import type { Computation, PlanFile, Run } from './types';

const letters: Record<string, string> = {
  forward: 'F', backward: 'B', backward_input: 'I', backward_weight: 'W', recompute: 'R',
};

function workOf({ type, stage, microbatch }: { type: string; stage: number; microbatch: number }) {
  return { type: letters[type] ?? '?', stage, microbatch };
}

function blockOf(computation: Run, start: number, duration: number, clock: number): Block {
  return { ...workOf(computation), start, duration, clock };
}

// A computation that is fused is followed by the one that runs with it.
function blocksOf(computations: Run[]): Block[] {
  const blocks: Block[] = [];
  computations.forEach((each, i) => {
    if (i > 0 && computations[i - 1]!.fused === true) {
      blocks[blocks.length - 1]!.fused = workOf(each);
    } else {
      blocks.push(blockOf(each, each.start_s, each.duration_s, each.knob));
    }
  });
  return blocks;
}

const namesOf = (ranks: unknown[]) => ranks.map((_, rank) => `stage ${rank}`);

// Of plan.json, or of a measured timeline.
export function asGiven(
    given: { ranks: { computations: Run[] }[]; iteration_time_s: number }): Iteration {
  return {
    ranks: given.ranks.map((rank) => blocksOf(rank.computations)),
    seconds: given.iteration_time_s,
    names: namesOf(given.ranks),
  };
}

const isForward = (type: string) => type === 'forward';
const isInput = (type: string) => type === 'backward' || type === 'backward_input';
const keyOf = (kind: string, stage: number, microbatch: number) => `${kind}${stage}.${microbatch}`;

// null: the order is of a kind that this does not know (fused computations, delays), as the result
// does not take the time that the plan says of it.
export function atMaximumClocks(plan: PlanFile): Iteration | null {
  const costs = new Map(plan.baseline.computations.map(
      (each) => [`${each.type}${each.stage}`, each] as const));
  let lastStage = 0;
  for (const rank of plan.ranks) {
    for (const each of rank.computations) {
      if (each.fused === true || !costs.has(`${each.type}${each.stage}`)) return null;
      lastStage = Math.max(lastStage, each.stage);
    }
  }
  const ends = new Map<string, number>();
  const next = plan.ranks.map(() => 0);
  const free = plan.ranks.map(() => 0);
  const ranks: Block[][] = plan.ranks.map(() => []);
  const readyAt = (each: Computation): number | undefined => {
    if (isForward(each.type)) {
      return each.stage === 0 ? 0 : ends.get(keyOf('F', each.stage - 1, each.microbatch));
    }
    if (isInput(each.type) && each.stage < lastStage) {
      return ends.get(keyOf('B', each.stage + 1, each.microbatch));
    }
    return 0;
  };
  for (let moved = true; moved;) {
    moved = false;
    plan.ranks.forEach((rank, r) => {
      for (;;) {
        const each = rank.computations[next[r]!];
        const ready = each === undefined ? undefined : readyAt(each);
        if (each === undefined || ready === undefined) return;
        const cost = costs.get(`${each.type}${each.stage}`)!;
        const start = Math.max(ready, free[r]!);
        free[r] = start + cost.duration_s;
        if (isForward(each.type)) ends.set(keyOf('F', each.stage, each.microbatch), free[r]!);
        if (isInput(each.type)) ends.set(keyOf('B', each.stage, each.microbatch), free[r]!);
        ranks[r]!.push(blockOf(each, start, cost.duration_s, cost.knob));
        next[r]! += 1;
        moved = true;
      }
    });
  }
  const seconds = Math.max(...free);
  const isWhole = plan.ranks.every((rank, r) => next[r] === rank.computations.length);
  const isAsSaid = Math.abs(seconds / plan.baseline.iteration_time_s - 1) < 0.005;
  return isWhole && isAsSaid ? { ranks, seconds, names: namesOf(ranks) } : null;
}
