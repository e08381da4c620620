// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The frontier as points, and what a point of it comes to. No drawing.

import type { Job, Plan } from './types';

export interface Point {
  time: number;
  energy: number;
}

export function readFrontier(csv: string): Point[] {
  return csv.trim().split('\n').slice(1).map((line) => {
    const [time, energy] = line.split(',');
    return { time: Number(time), energy: Number(energy) };
  }).filter((point) => Number.isFinite(point.time) && Number.isFinite(point.energy));
}

// Of one pipeline at maximum clocks, from what any plan says that it saves.
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
