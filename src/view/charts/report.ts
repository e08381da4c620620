// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Draws the charts of report.html from the JSON that it carries.

import './d3_license';

import { FrontierChart, FrontierData, LineChart, Series } from './charts';
import { Child, h } from './dom';
import { plural, seconds } from './format';
import { Block, Clocks, Iteration, shapes, Timeline } from './timeline';

interface LinesData {
  kind: 'lines';
  title: string;
  summary: string;
  xName: string;
  yName: string;
  height: number;
  series: Series[];
  bands?: [number, number, number, number][];
  bandName?: string;
  spans?: [number, number][];
  spanName?: string;
}

interface RunData {  // Lists are rank by rank in execution order.
  title: string;
  time: number;  // Nanoseconds, as are all times.
  end?: number;
  start: number[];
  duration: number[];
  option: number[];  // Index into TimelineData.options.
  critical?: number[];
  path?: number[];
  power?: number;
  waiting?: number[];
}

interface TimelineData {
  kind: 'timeline';
  isNumber: boolean;
  unit: string;
  knobs: { label: string; value: number }[];
  kinds: [string, number, string?, number?][];
  rankStages: number[][];
  rankFirst: number[];
  kindOf: number[];
  microbatch: number[];
  fusedMicrobatch: number[];
  options: [number, number?][];  // Knob, and joules.
  runs: RunData[];
  legend: string;
  legendOf: number;  // So many of the last runs are in the legend.
}

type ChartData = LinesData | TimelineData | (Omit<FrontierData, 'points'> & {
  kind: 'frontier';
  points: [number, number][];
});

function iterationOf(data: TimelineData, run: RunData): Iteration {
  const ns = 1e-9;
  const critical = new Set(run.critical);
  const placeOf: [number, number][] = [];
  const ranks = data.rankStages.map((_, rank) => {
    const blocks: Block[] = [];
    for (let i = data.rankFirst[rank]!; i < data.rankFirst[rank + 1]!; ++i) {
      const [type, stage, fusedType, fusedStage] = data.kinds[data.kindOf[i]!]!;
      const [knob, energy] = data.options[run.option[i]!]!;
      placeOf.push([rank, blocks.length]);
      blocks.push({ type, stage, microbatch: data.microbatch[i]!, start: run.start[i]! * ns,
        duration: run.duration[i]! * ns, energy, isCritical: critical.has(i),
        // Without numbers, profiles list the fastest first.
        clock: data.isNumber ? data.knobs[knob]!.value : -knob,
        fused: fusedType === undefined ? undefined
          : { type: fusedType, stage: fusedStage!, microbatch: data.fusedMicrobatch[i]! } });
    }
    return blocks;
  });
  const isPlain = data.rankStages.every((stages, rank) => stages.length === 1 &&
      stages[0] === rank);
  return { ranks, seconds: run.time * ns, power: run.power, waiting: run.waiting,
    end: run.end === undefined ? undefined : run.end * ns,
    path: run.path?.map((i) => placeOf[i]!),
    names: data.rankStages.map((stages, rank) =>
      (isPlain ? `rank ${rank}` : `rank ${rank} \u00b7 s${stages.join(',')}`)) };
}

function drawTimeline(data: TimelineData): Child[] {
  const iterations = data.runs.map((run) => iterationOf(data, run));
  const clocks = new Clocks(iterations, data.unit,
      data.isNumber ? null : (clock) => data.knobs[-clock]!.label);
  const whole = Math.max(...iterations.map((iteration) => iteration.seconds));
  const timeline = new Timeline(clocks, whole, iterations.length);
  return [
    h('div', { class: 'legend' }, clocks.legend(iterations.slice(-data.legendOf), data.legend),
        shapes(iterations)),
    ...data.runs.map((run, i) => h('figure', {}, h('figcaption', {}, run.title),
        timeline.add(iterations[i]!, `${run.title}. ` +
          `${plural(data.kindOf.length, 'computation')} on ` +
          `${plural(data.rankStages.length, 'rank')}, ${seconds(iterations[i]!.seconds)}.`,
        `run-${i}`))),
    timeline.element,
  ];
}

function draw(data: ChartData): Child[] {
  switch (data.kind) {
    case 'lines': return [new LineChart(data).element];
    case 'timeline': return drawTimeline(data);
    case 'frontier': return [new FrontierChart({ ...data,
      points: data.points.map(([time, energy]) => ({ time, energy })) }).element];
  }
}

for (const script of document.querySelectorAll('script[type="application/json"]')) {
  const place = script.previousElementSibling;
  const data = JSON.parse(script.textContent ?? '') as ChartData;
  place?.replaceChildren(...draw(data).filter((child): child is Node | string => child !== null));
}
document.body.dataset['rendered'] = 'true';
