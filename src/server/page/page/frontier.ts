// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The frontier as points, and the figures of a point. No drawing.

import type { FrontierData, Mark, Point } from 'charts/charts';
import type { Job, Plan } from './types';

export function readFrontier(csv: string): Point[] {
  return csv.trim().split('\n').slice(1).map((line) => {
    const [time, energy] = line.split(',');
    return { time: Number(time), energy: Number(energy) };
  }).filter((point) => Number.isFinite(point.time) && Number.isFinite(point.energy));
}

// Of one pipeline at maximum clocks, from any plan's saving.
export function baselineEnergy(plan: Plan | null): number | null {
  for (const each of [plan, ...Object.values(plan?.pipelines ?? {})]) {
    if (each?.energy_j === undefined || each.saving_percent === undefined) continue;
    if (each.saving_percent < 100) return each.energy_j / (1 - each.saving_percent / 100);
  }
  return null;
}

// The point with the greatest time up to `time`; the first one if all take longer.
export function pointAt(points: Point[], time: number): number {
  let low = 0;
  let high = points.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (points[middle]!.time <= time * (1 + 1e-9)) low = middle;
    else high = middle - 1;
  }
  return low;
}

export interface Preview {
  time: number;
  energy: number;
  watts: number;
  slowdown: number;  // Percent of the time at maximum clocks.
  saving: number | null;
}

export function previewOf(point: Point, job: Job): Preview {
  const baseline = baselineEnergy(job.plan);
  const fastest = job.frontier?.baseline_s ?? point.time;
  return {
    time: point.time,
    energy: point.energy * job.data_parallel,
    watts: point.energy * job.data_parallel / point.time,
    slowdown: 100 * (point.time / fastest - 1),
    saving: baseline === null ? null : 100 * (1 - point.energy / baseline),
  };
}

// As PUT .../point takes it: never below the time of the point.
export function targetOf(point: Point): string {
  return `${(Math.ceil(point.time * 1e6) / 1e6).toFixed(6)}s`;
}

const mostMarks = 6;

// As it is drawn: where the plan is, where maximum clocks are, and pipelines with another plan.
export function chartOf(points: Point[], job: Job): FrontierData {
  const energy = baselineEnergy(job.plan);
  const baseline = energy === null || job.frontier === null ? null
    : { time: job.frontier.baseline_s, energy };
  const marks: Mark[] =
      baseline === null ? [] : [{ name: 'maximum clocks', kind: 'baseline', ...baseline }];
  const add = (name: string, plan: Partial<Plan> | null, kind: Mark['kind']) => {
    if (plan?.iteration_time_s === undefined || plan.energy_j === undefined) return;
    marks.push({ name, time: plan.iteration_time_s, energy: plan.energy_j, kind });
  };
  add('plan', job.plan, 'chosen');
  for (const [pipeline, plan] of Object.entries(job.plan?.pipelines ?? {})) {
    add(`pipeline ${pipeline}`, plan, 'straggler');
  }
  return {
    points, baseline, isBound: true, marks: marks.slice(0, mostMarks),
    times: job.frontier === null ? [] : [{ name: 'T_min', time: job.frontier.fastest_s },
      { name: 'T*', time: job.frontier.tstar_s }],
    xName: 'Iteration time', yName: 'Energy of an iteration of one pipeline', source: 'predicted',
  };
}

// A dozen points, for people who read rather than look.
export function someOf(points: Point[], most = 12): Point[] {
  if (points.length <= most) return points;
  const step = (points.length - 1) / (most - 1);
  return Array.from({ length: most }, (_, i) => points[Math.round(i * step)]!);
}
