// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// One iteration, rank by rank: blocks in the colour of their clock.

import { axisBottom } from 'd3-axis';
import { scaleLinear } from 'd3-scale';
import { select } from 'd3-selection';

import { h, svg } from './dom';
import { seconds } from './format';
import type { Block, Iteration } from './replay';

const width = 960;
const left = 56;
const right = 12;
const lane = 26;
const top = 6;
const shades = 5;

export class ClockScale {
  constructor(private readonly least: number, private readonly most: number) {}

  get key(): string {
    return `${this.least} ${this.most}`;
  }

  static of(iterations: Iteration[]): ClockScale {
    let least = Number.POSITIVE_INFINITY;
    let most = 0;
    for (const iteration of iterations) {
      for (const rank of iteration.ranks) {
        for (const block of rank) {
          least = Math.min(least, block.clock);
          most = Math.max(most, block.clock);
        }
      }
    }
    return new ClockScale(least, most);
  }

  shade(clock: number): number {
    const span = this.most - this.least;
    const place = span === 0 ? shades - 1 : Math.floor((clock - this.least) / span * shades);
    return Math.min(shades - 1, place);
  }

  legend(): HTMLElement {
    const span = (this.most - this.least) / shades;
    const range = (i: number) => `${Math.ceil(this.least + i * span)}\u2013` +
        `${i === shades - 1 ? this.most : Math.ceil(this.least + (i + 1) * span) - 1}`;
    const names = span === 0 ? [String(this.most)] : Array.from({ length: shades }, (_, i) =>
      range(i));
    return h('p', { class: 'legend' }, 'SM clock, MHz: ', ...names.map((name, i) =>
      h('span', { class: 'key' },
          svg('svg', { viewBox: '0 0 12 12', 'aria-hidden': 'true' }, svg('rect', {
            width: 12, height: 12, class: `clock-${span === 0 ? shades - 1 : i}`,
          })), name)),
    h('span', { class: 'key' }, 'F: forward, B: backward (with a bar on top), W: weight gradient'));
  }
}

function blockOf(block: Block, y: number, x: (time: number) => number, shade: number): SVGElement {
  const begin = x(block.start);
  const wide = Math.max(0.5, x(block.start + block.duration) - begin - 0.6);
  const group = svg('g', { class: `block clock-${shade}` },
      svg('rect', { x: begin, y, width: wide, height: lane - 4 }),
      svg('title', {}, `${block.name}: ${block.clock} MHz, ${seconds(block.duration)} ` +
          `from ${seconds(block.start)}`));
  if (block.isBackward) {
    group.append(svg('rect', { class: 'bar', x: begin, y, width: wide, height: 3 }));
  }
  if (wide >= 8 + 6 * block.name.length) {
    group.append(svg('text', { x: begin + wide / 2, y: y + lane / 2 + 3, 'text-anchor': 'middle' },
        block.name));
  }
  return group;
}

// Where the axes of iterations end that are drawn below each other. Rounded, so that one that takes
// a little longer does not change the others' pictures.
export function commonEnd(iterations: Iteration[]): number {
  const longest = Math.max(...iterations.map((iteration) => iteration.seconds));
  const step = 10 ** Math.floor(Math.log10(longest)) / 20;
  return Math.ceil(longest / step) * step;
}

// `key`: of what has the focus, when it is drawn anew.
export function drawIteration(iteration: Iteration, longest: number, clocks: ClockScale,
    label: string, key: string): HTMLElement {
  const height = top + iteration.ranks.length * lane + 26;
  const x = scaleLinear().domain([0, longest]).range([left, width - right]);
  const axis = svg('g', { class: 'axis', transform: `translate(0 ${height - 24})` });
  select(axis).call(axisBottom(x).ticks(8).tickSizeOuter(0));
  const end = x(iteration.seconds);
  const picture = svg('svg', {
    viewBox: `0 0 ${width} ${height}`, class: 'plot lanes', role: 'img', 'aria-label': label,
  });
  iteration.ranks.forEach((blocks, rank) => {
    const y = top + rank * lane;
    picture.append(
        svg('rect', { class: 'wait', x: left, y, width: end - left, height: lane - 4 }),
        svg('text', { class: 'lane-name', x: left - 8, y: y + 15, 'text-anchor': 'end' },
            `stage ${rank}`),
        ...blocks.map((block) => blockOf(block, y, x, clocks.shade(block.clock))));
  });
  picture.append(axis, svg('line', { class: 'end', x1: end, x2: end, y1: 0, y2: height - 24 }));
  return h('div', { 'class': 'scroll chart', 'tabindex': 0, 'role': 'region',
    'aria-label': label, 'data-key': key }, picture);
}
