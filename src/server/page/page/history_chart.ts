// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// One figure of a job over time, drawn: a line that breaks where no rank reported.

import { axisBottom, axisLeft } from 'd3-axis';
import { scaleLinear } from 'd3-scale';
import { select } from 'd3-selection';
import { line } from 'd3-shape';

import { svg } from './dom';
import { clockTime, unknown } from './format';

const width = 960;
const height = 170;
const margin = { left: 64, right: 24, top: 28, bottom: 28 };

export interface Sample {
  start: number;  // Of its span, seconds since 1970.
  value: number | null;
}

export interface Span {
  from: number;
  to: number;
  each: number;  // Seconds from one sample to the next.
}

// Samples that follow each other, and have a value.
function runsOf(samples: Sample[], each: number): { start: number; value: number }[][] {
  const runs: { start: number; value: number }[][] = [];
  let last = Number.NEGATIVE_INFINITY;
  for (const { start, value } of samples) {
    if (value === null) continue;
    if (start - last > 1.5 * each) runs.push([]);
    runs[runs.length - 1]!.push({ start, value });
    last = start;
  }
  return runs;
}

export function summaryOf(name: string, samples: Sample[],
                          text: (value: number) => string): string {
  const values = samples.map((sample) => sample.value)
      .filter((value): value is number => value !== null);
  if (values.length === 0) return `${name}: ${unknown}.`;
  return `${name}: ${text(Math.min(...values))} to ${text(Math.max(...values))}, last ` +
      `${text(values[values.length - 1]!)}.`;
}

// Null: no sample has a value.
export function historyChart(name: string, samples: Sample[], span: Span,
                             text: (value: number) => string): SVGSVGElement | null {
  const runs = runsOf(samples, span.each);
  const values = runs.flatMap((run) => run.map((sample) => sample.value));
  if (values.length === 0) return null;
  const least = Math.min(...values);
  const most = Math.max(...values);
  // Of figures that hardly change, noise would fill the chart.
  const room = Math.max((most - least) * 0.1, Math.abs(most) * 0.01, 1e-9);
  // In minutes or hours of this place, so that ticks are whole ones.
  const unit = span.to - span.from > 7200 ? 3600 : 60;
  const shift = 60 * new Date(span.to * 1000).getTimezoneOffset();
  const placed = scaleLinear().domain([(span.from - shift) / unit, (span.to - shift) / unit])
      .range([margin.left, width - margin.right]);
  const x = (at: number) => placed((at - shift) / unit);
  const y = scaleLinear().domain([least - room, most + room]).nice(3)
      .range([height - margin.bottom, margin.top]);
  const bottom = svg('g', { class: 'axis', transform: `translate(0 ${height - margin.bottom})` });
  select(bottom).call(axisBottom(placed).ticks(6).tickSizeOuter(0)
      .tickFormat((at) => clockTime(at * unit + shift).slice(0, 5)));
  const left = svg('g', { class: 'axis', transform: `translate(${margin.left} 0)` });
  select(left).call(axisLeft(y).ticks(3).tickFormat(text).tickSizeOuter(0)
      .tickSizeInner(margin.left + margin.right - width));
  const path = line<{ start: number; value: number }>()
      .x((sample) => x(sample.start + span.each / 2)).y((sample) => y(sample.value));
  const drawn = runs.map((run) => (run.length > 1
    ? svg('path', { class: 'curve', d: path(run) ?? '' })
    : svg('circle', { class: 'alone', r: 2.5, cx: x(run[0]!.start + span.each / 2),
      cy: y(run[0]!.value) })));
  return svg('svg', { viewBox: `0 0 ${width} ${height}`, class: 'plot', role: 'img',
    'aria-label': summaryOf(name, samples, text) }, left, bottom, ...drawn,
  svg('text', { class: 'axis-name', x: 8, y: 16 }, name));
}
