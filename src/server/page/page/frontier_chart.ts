// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The frontier, drawn: where the plan is, where maximum clocks are, and the point to be chosen.

import { axisBottom, axisLeft } from 'd3-axis';
import { scaleLinear } from 'd3-scale';
import { select } from 'd3-selection';
import { line } from 'd3-shape';

import { h, svg } from './dom';
import { joules, seconds } from './format';
import { baselineEnergy, Point } from './frontier';
import type { Job } from './types';

const width = 960;
const height = 340;
const margin = { left: 64, right: 24, top: 28, bottom: 44 };

interface Mark {
  name: string;
  time: number;
  energy: number;
  kind: string;
}

function marksOf(job: Job): Mark[] {
  const marks: Mark[] = [];
  const energy = baselineEnergy(job.plan);
  if (energy !== null && job.frontier !== null) {
    marks.push({ name: 'maximum clocks', time: job.frontier.baseline_s, energy, kind: 'baseline' });
  }
  const add = (name: string, time: number | undefined, joule: number | undefined, kind: string) => {
    if (time !== undefined && joule !== undefined) marks.push({ name, time, energy: joule, kind });
  };
  add('plan', job.plan?.iteration_time_s, job.plan?.energy_j, 'chosen');
  for (const [pipeline, plan] of Object.entries(job.plan?.pipelines ?? {})) {
    add(`pipeline ${pipeline}`, plan.iteration_time_s, plan.energy_j, 'straggler');
  }
  return marks.slice(0, 6);
}

export class FrontierChart {
  readonly element: SVGSVGElement;
  private readonly x;
  private readonly y;
  private readonly chosen = svg('g', { class: 'candidate', hidden: true },
      svg('line', { y1: margin.top, y2: height - margin.bottom }), svg('circle', { r: 6 }));

  constructor(points: Point[], job: Job, private readonly onPick: (time: number) => void) {
    const marks = marksOf(job);
    const first = points[0]!;
    const last = points[points.length - 1]!;
    const energies = [...points, ...marks].map((each) => each.energy);
    const most = Math.max(...energies);
    const least = Math.min(...energies);
    const latest = Math.max(last.time, ...marks.map((mark) => mark.time));
    const room = (latest - first.time) * 0.04 || first.time * 0.01;
    this.x = scaleLinear().domain([first.time - room, latest + room])
        .range([margin.left, width - margin.right]);
    this.y = scaleLinear().domain([least, most]).nice(6)
        .range([height - margin.bottom, margin.top]);
    this.element = svg('svg', {
      viewBox: `0 0 ${width} ${height}`, class: 'plot', role: 'img',
      'aria-label': this.summary(points, marks),
    }, ...this.axes(), ...this.lines(points, job), ...this.drawMarks(marks), this.chosen);
    let isDragging = false;
    const pick = (event: PointerEvent) => {
      const box = this.element.getBoundingClientRect();
      this.onPick(this.x.invert((event.clientX - box.left) / box.width * width));
    };
    this.element.addEventListener('pointerdown', (event) => {
      isDragging = true;
      this.element.setPointerCapture(event.pointerId);
      pick(event);
    });
    this.element.addEventListener('pointermove', (event) => {
      if (isDragging) pick(event);
    });
    this.element.addEventListener('pointerup', () => {
      isDragging = false;
    });
  }

  // null: no other point than the plan's is being looked at.
  choose(point: Point | null): void {
    this.chosen.toggleAttribute('hidden', point === null);
    if (point === null) return;
    this.chosen.setAttribute('transform', `translate(${this.x(point.time)} 0)`);
    this.chosen.querySelector('circle')?.setAttribute('cy', String(this.y(point.energy)));
  }

  private axes(): SVGElement[] {
    const bottom = svg('g', { class: 'axis', transform: `translate(0 ${height - margin.bottom})` });
    select(bottom).call(axisBottom(this.x).ticks(6).tickSizeOuter(0));
    const left = svg('g', { class: 'axis', transform: `translate(${margin.left} 0)` });
    select(left).call(axisLeft(this.y).ticks(5).tickSizeOuter(0)
        .tickSizeInner(margin.left + margin.right - width));
    return [left, bottom,
      svg('text', { class: 'axis-name', x: width - margin.right, y: height - 8,
        'text-anchor': 'end' }, 'Iteration time, s (promised)'),
      svg('text', { class: 'axis-name', x: 8, y: 16 },
          'Energy of an iteration of one pipeline, J (promised)')];
  }

  private lines(points: Point[], job: Job): SVGElement[] {
    const path = line<Point>().x((point) => this.x(point.time)).y((point) => this.y(point.energy));
    const drawn: SVGElement[] = [svg('path', { class: 'curve', d: path(points) ?? '' })];
    if (job.frontier === null) return drawn;
    for (const [name, time, anchor] of [
      ['T_min', job.frontier.fastest_s, 'start'], ['T*', job.frontier.tstar_s, 'end'],
    ] as const) {
      const at = this.x(time);
      drawn.push(svg('line', { class: 'mark', x1: at, x2: at, y1: margin.top,
        y2: height - margin.bottom }));
      drawn.push(svg('text', { class: 'mark-name', x: at + (anchor === 'start' ? 5 : -5),
        y: height - margin.bottom - 6, 'text-anchor': anchor }, name));
    }
    return drawn;
  }

  private drawMarks(marks: Mark[]): SVGElement[] {
    return marks.map((mark) => {
      const at = this.x(mark.time);
      const isRight = at > width * 0.7;
      const shape = mark.kind === 'baseline'
        ? svg('rect', { x: -5, y: -5, width: 10, height: 10 })
        : mark.kind === 'chosen' ? svg('circle', { r: 6.5 })
          : svg('path', { d: 'M0 -7 L7 6 L-7 6 Z' });
      return svg('g', { class: mark.kind, transform: `translate(${at} ${this.y(mark.energy)})` },
          shape, svg('text', { x: isRight ? -11 : 11, y: mark.kind === 'straggler' ? 16 : -7,
            'text-anchor': isRight ? 'end' : 'start' }, mark.name));
    });
  }

  private summary(points: Point[], marks: Mark[]): string {
    const first = points[0]!;
    const last = points[points.length - 1]!;
    return `The frontier falls from ${joules(first.energy)} at ${seconds(first.time)} to ` +
        `${joules(last.energy)} at ${seconds(last.time)}. ` +
        marks.map((mark) => `${mark.name}: ${joules(mark.energy)} at ${seconds(mark.time)}.`)
            .join(' ');
  }
}

// A dozen points, for those who read rather than look.
export function someOf(points: Point[], most = 12): Point[] {
  if (points.length <= most) return points;
  const step = (points.length - 1) / (most - 1);
  return Array.from({ length: most }, (_, i) => points[Math.round(i * step)]!);
}

export function legend(): HTMLElement {
  return h('p', { class: 'soft' },
      'Square: maximum clocks. Circle: the plan. Triangles: pipelines with another plan, because ',
      'of a straggler. No plan lies below the curve. T_min: the shortest iteration. T*: beyond ',
      'it, slower clocks save nothing more; only a straggler makes iterations so long. Drag in ',
      'the chart, or move the slider, to look at another point.');
}
