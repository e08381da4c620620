// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Iterations, a lane a rank: blocks in the colour of their clock, on one time scale that is zoomed
// and moved for all of them together.

import { rgb } from 'd3-color';
import { ColourScale, scaleLinear } from 'd3-scale';

import { Child, h, svg } from './dom';
import { joules, seconds, watts } from './format';

interface Work {
  type: string;  // F, B, I, W or R.
  microbatch: number;
  stage: number;
}

export interface Block extends Work {
  start: number;
  duration: number;
  clock: number;
  fused?: Work;
  energy?: number;
  isCritical?: boolean;
}

export interface Iteration {
  ranks: Block[][];
  seconds: number;
  names?: string[];  // Of the lanes.
  end?: number;  // Where the pipeline itself ends, if before the iteration does.
  waiting?: number[];  // What each rank draws while it waits, W: then power is drawn, too.
  power?: number;  // The mean, W.
  path?: [number, number][];  // Rank and place of each block on a longest path.
}

const types: Record<string, string> = {
  F: 'forward', B: 'backward', I: 'backward input', W: 'backward weight', R: 'recompute',
};
const nameOf = (work: Work) => `${work.type}${work.microbatch}`;
const shortName = (block: Block) => nameOf(block) +
    (block.fused === undefined ? '' : `+${nameOf(block.fused)}`);
const wordsOf = (work: Work) =>
  `${types[work.type] ?? work.type}, stage ${work.stage}, microbatch ${work.microbatch}`;
const isLow = (block: Block) => block.fused === undefined && 'FR'.includes(block.type);

// ---- Clocks ---------------------------------------------------------------------------------

// The clocks of some iterations as colours, slow to fast. Without numbers, clocks are places in an
// order.
export class Clocks {
  readonly used: number[];

  constructor(iterations: Iteration[], private readonly unit: string,
              private readonly label: ((clock: number) => string) | null = null) {
    const used = new Set<number>();
    for (const iteration of iterations) {
      for (const rank of iteration.ranks) for (const block of rank) used.add(block.clock);
    }
    this.used = [...used].sort((a, b) => a - b);
  }

  get key(): string {
    return this.used.join(' ');
  }

  get lowest(): number {
    return this.used[0] ?? 0;
  }

  get highest(): number {
    return this.used[this.used.length - 1] ?? 0;
  }

  name(clock: number): string {
    return this.label === null ? `${clock}${this.unit === '' ? '' : ` ${this.unit}`}`
      : this.label(clock);
  }

  // From 0 to 1; clocks without numbers are apart by the same.
  place(clock: number): number {
    if (this.used.length < 2) return 1;
    return this.label === null ? (clock - this.lowest) / (this.highest - this.lowest)
      : this.used.indexOf(clock) / (this.used.length - 1);
  }

  // How long `iterations` run at each clock.
  legend(iterations: Iteration[], words: string): HTMLElement {
    const times = new Map(this.used.map((clock) => [clock, 0]));
    let busy = 0;
    for (const block of iterations.flatMap(({ ranks }) => ranks.flat())) {
      times.set(block.clock, (times.get(block.clock) ?? 0) + block.duration);
      busy += block.duration;
    }
    const share = (clock: number) => `${(100 * times.get(clock)! / (busy || 1)).toFixed(1)} %`;
    const said = this.used.filter((clock) => times.get(clock)! > 0)
        .map((clock) => `${this.name(clock)} ${share(clock)}`);
    const colours = colourScale();
    return h('div', { class: 'clocks' }, this.label === null
      ? this.histogram(times, share, words, said.join(', '), colours)
      : h('p', { class: 'keys' }, ...[...this.used].reverse().map((clock) => {
        const swatch = h('span', { class: 'swatch' });
        swatch.style.background = colours(this.place(clock));
        return h('span', { class: 'key' }, swatch,
            `${this.name(clock)} (${share(clock)} of busy time)`);
      })));
  }

  private histogram(times: Map<number, number>, share: (clock: number) => string, words: string,
      said: string, colours: ColourScale): SVGSVGElement {
    const [wide, left, right, base] = [620, 14, 606, 74];
    const at = (place: number) => left + place * (right - left);
    const bar = Math.max(8, Math.min(18, (right - left) / this.used.length * 0.8));
    const most = Math.max(...times.values()) || 1;
    const steps = 124;
    const each = (right - left) / steps;
    const x = scaleLinear().domain([this.lowest, this.highest]).range([left, right]);
    const ticks = this.used.length < 2 ? this.used : x.ticks(7);
    const middle = (tick: number) => (this.used.length < 2 ? right - 6 : x(tick));
    return svg('svg', { 'viewBox': `0 0 ${wide} 110`, 'role': 'img',
      'aria-label': `Share of busy time that is spent at each clock: ${said}` },
    svg('text', { x: left, y: 12 }, `busy time at each clock, ${words}`),
    svg('text', { 'x': right, 'y': 12, 'text-anchor': 'end' },
        `${this.name(this.lowest)} to ${this.name(this.highest)}`),
    ...[...times].filter(([, time]) => time > 0).map(([clock, time]) => svg('rect', {
      x: Math.min(at(this.place(clock)) - bar / 2, right - bar), width: bar,
      y: base - time / most * (base - 22), height: time / most * (base - 22),
      fill: colours(this.place(clock)),
    }, svg('title', {}, `${this.name(clock)}: ${share(clock)}`))),
    ...Array.from({ length: steps }, (_, i) => svg('rect', { x: left + i * each, y: base + 3,
      width: each + 0.6, height: 12, fill: colours(i / (steps - 1)) })),
    ...ticks.map((tick) => svg('text', { 'x': Math.max(left + 10, Math.min(right - 10,
        middle(tick))), 'y': base + 31, 'text-anchor': 'middle' }, String(tick))));
  }
}

const token = (name: string) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function colourScale(): ColourScale {
  return scaleLinear<string>().domain([0, 0.25, 0.5, 0.75, 1]).clamp(true)
      .range([0, 1, 2, 3, 4].map((i) => token(`--clock-${i}`)));
}

// Black or white, whichever can be read on `colour`.
function inkOn(colour: string): string {
  const { r, g, b } = rgb(colour);
  return 0.299 * r + 0.587 * g + 0.114 * b > 105 ? '#111' : '#fff';
}

// A legend of the forms of blocks.
export function shapes(iterations: Iteration[]): HTMLElement {
  const seen = new Set<string>();
  for (const block of iterations.flatMap(({ ranks }) => ranks.flat())) {
    seen.add(block.type);
    if (block.fused !== undefined) seen.add(seen.has('R') || block.type === 'R' ? 'RB' : 'FB');
  }
  const one = (name: string, ...parts: SVGElement[]) => h('span', { class: 'key' },
      svg('svg', { 'viewBox': '0 0 30 16', 'class': 'shape', 'aria-hidden': 'true' }, ...parts),
      name);
  const block = (y: number, height: number, width = 28) =>
    svg('rect', { class: 'block', x: 1, y, width, height });
  const pale = () => svg('rect', { class: 'block pale', x: 1, y: 0, width: 13, height: 16 });
  const hasCritical = iterations.some(({ path }) => path !== undefined);
  const all: (HTMLElement | false)[] = [
    one(seen.has('R') ? 'F forward, R recompute: low block' : 'F forward: low block', pale(),
        block(5, 11, 13)),
    one(seen.has('I') ? 'B, I backward: full height' : 'B backward: full height', block(0, 16)),
    seen.has('W') && one('W weight gradient: hanging', pale(), block(0, 11, 13)),
    (seen.has('FB') || seen.has('RB')) && one(
        seen.has('RB') ? 'two that run as one' : 'forward and backward overlapped', block(0, 16),
        svg('path', { class: 'lane-line', d: 'M1 8H29' })),
    one('waiting', svg('rect', { class: 'lane', width: 30, height: 16 }),
        svg('path', { class: 'lane-line', d: 'M2 15L16 1M14 15L28 1' })),
    hasCritical && one('critical path', svg('path', { class: 'path', d: 'M0 12H17V4H30' })),
  ];
  return h('p', { class: 'keys' }, ...all.filter((each): each is HTMLElement => each !== false));
}

// ---- Panels ---------------------------------------------------------------------------------

interface Hit {
  panel: Panel;
  rank: number;
  block: Block | null;  // null: waiting.
}

const rightMargin = 12;
const powerHeight = 58;
const alive = new Set<Timeline>();  // Those on the page.

function redrawAll(now: boolean): void {
  for (const timeline of alive) {
    if (!timeline.element.isConnected) alive.delete(timeline);
    else timeline.redraw(now);
  }
}
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change',
    () => redrawAll(false));
window.addEventListener('beforeprint', () => redrawAll(true));
window.addEventListener('afterprint', () => redrawAll(false));

class Panel {
  readonly canvas: HTMLCanvasElement;
  private readonly context: CanvasRenderingContext2D;
  private pitch = 0;
  private strip = 0;  // Under each lane, for the critical path.
  private lane = 0;
  private gutter = 0;
  private plotWidth = 0;
  private axisTop = 0;

  constructor(readonly timeline: Timeline, public iteration: Iteration, label: string,
              key: string) {
    this.canvas = h('canvas', { 'class': 'lanes', 'tabindex': 0, 'role': 'img',
      'aria-label': label, 'data-key': key });
    this.context = this.canvas.getContext('2d')!;
    this.listen();
  }

  x(time: number): number {
    const { from, to } = this.timeline.view;
    return this.gutter + (time - from) / (to - from) * this.plotWidth;
  }

  timeAt(x: number): number {
    const { from, to } = this.timeline.view;
    return from + (x - this.gutter) / this.plotWidth * (to - from);
  }

  get width(): number {
    return this.plotWidth;
  }

  // The place of the first block of `rank` that ends after `time`.
  firstAfter(rank: number, time: number): number {
    const blocks = this.iteration.ranks[rank] ?? [];
    let low = 0;
    let high = blocks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (blocks[middle]!.start + blocks[middle]!.duration > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  hit(x: number, y: number): Hit | null {
    const rank = Math.floor(y / this.pitch);
    const time = this.timeAt(x);
    const { ranks, seconds: whole } = this.iteration;
    if (x < this.gutter || rank < 0 || rank >= ranks.length || time < 0 || time > whole) {
      return null;
    }
    const block = ranks[rank]![this.firstAfter(rank, time)];
    return { panel: this, rank, block: block !== undefined && block.start <= time ? block : null };
  }

  bottomOf(rank: number): number {
    return rank * this.pitch + this.lane;
  }

  // Mean power of the pipeline in each of `columns` of the time from `from` to `to`.
  powerColumns(columns: number, from: number, to: number): Float64Array {
    const power = new Float64Array(columns);
    const width = (to - from) / columns;
    const add = (start: number, end: number, drawn: number) => {
      const a = Math.max(0, (start - from) / width);
      const b = Math.min(columns, (end - from) / width);
      for (let c = Math.floor(a); c < b; ++c) {
        power[c] += drawn * (Math.min(b, c + 1) - Math.max(a, c));
      }
    };
    this.iteration.ranks.forEach((blocks, rank) => {
      const waiting = this.iteration.waiting?.[rank] ?? 0;
      add(0, this.iteration.seconds, waiting);
      for (let i = this.firstAfter(rank, from); i < blocks.length; ++i) {
        const { start, duration, energy } = blocks[i]!;
        if (start >= to) break;
        if (duration > 0) add(start, start + duration, (energy ?? 0) / duration - waiting);
      }
    });
    return power;
  }

  draw(): void {
    const { canvas, context, iteration, timeline } = this;
    const width = canvas.clientWidth;
    if (width === 0) return;
    const ranks = iteration.ranks.length;
    const ratio = window.devicePixelRatio || 1;
    const snap = (x: number) => Math.round(x * ratio) / ratio;
    const font = getComputedStyle(document.body).fontFamily;
    const names = iteration.names ?? iteration.ranks.map((_, rank) => `rank ${rank}`);
    this.pitch = Math.max(9, Math.min(timeline.mostPitch, Math.floor(330 / Math.max(1, ranks))));
    this.strip = iteration.path === undefined ? 0 : this.pitch >= 18 ? 5 : 2;
    this.lane = this.pitch - this.strip - (this.pitch >= 18 ? 2 : 1);
    const isPowered = iteration.waiting !== undefined;
    const longest = names.reduce((most, name) => Math.max(most, name.length), isPowered ? 12 : 4);
    this.gutter = Math.min(160, 20 + 6.4 * longest);
    this.plotWidth = Math.max(50, width - this.gutter - rightMargin);
    const { gutter, pitch, lane } = this;
    const powerTop = pitch * ranks + 12;
    this.axisTop = isPowered ? powerTop + powerHeight : pitch * ranks + 4;
    const height = this.axisTop + 24;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const right = gutter + this.plotWidth;
    const end = this.x(iteration.seconds);

    context.textBaseline = 'middle';
    context.font = `${pitch < 13 ? 9.5 : 12.5}px ${font}`;
    context.fillStyle = token('--soft');
    context.textAlign = 'right';
    names.forEach((name, rank) => {
      if (rank % (pitch < 11 ? 2 : 1) === 0) {
        context.fillText(name, gutter - 10, rank * pitch + lane / 2);
      }
    });
    context.save();
    context.beginPath();
    context.rect(gutter, 0, right - gutter, this.axisTop);
    context.clip();
    context.fillStyle = this.hatch(ratio) ?? token('--wait');
    for (let rank = 0; rank < ranks; ++rank) {
      context.fillRect(this.x(0), rank * pitch, end - this.x(0), lane);
    }
    this.drawBlocks(font, right, ratio, snap);
    if (iteration.path !== undefined) this.drawPath(iteration.path);
    const columns = Math.max(1, Math.round((right - gutter) * ratio));
    const meanAt = isPowered ? this.drawPower(columns, ratio, right, end) : 0;
    this.drawEnds(end, right);
    this.outline(timeline.selected);
    context.restore();
    if (isPowered) {
      context.font = `12px ${font}`;
      context.fillStyle = token('--soft');
      context.textAlign = 'right';
      context.fillText('power', gutter - 10, powerTop + 8);
      context.fillText(`mean ${watts(iteration.power)}`, gutter - 10,
          Math.max(powerTop + 24, Math.min(meanAt, this.axisTop - 8)));
    }
    this.drawAxis(right, font);
  }

  // Waiting: hatched, wherever no computation covers it.
  private hatch(ratio: number): CanvasPattern | null {
    const tile = h('canvas');
    tile.width = tile.height = Math.round(6 * ratio);
    const context = tile.getContext('2d')!;
    context.scale(ratio, ratio);
    context.fillStyle = token('--wait');
    context.fillRect(0, 0, 6, 6);
    context.strokeStyle = token('--wait-line');
    context.beginPath();
    for (const dx of [-6, 0, 6]) {
      context.moveTo(dx - 1, 7);
      context.lineTo(dx + 7, -1);
    }
    context.stroke();
    const pattern = this.context.createPattern(tile, 'repeat');
    pattern?.setTransform(new DOMMatrix([1 / ratio, 0, 0, 1 / ratio, 0, 0]));
    return pattern;
  }

  private drawBlocks(font: string, right: number, ratio: number,
      snap: (x: number) => number): void {
    const { context, iteration, timeline, pitch, lane, strip, gutter } = this;
    const scale = colourScale();
    const colours = new Map(timeline.clocks.used.map((clock) => {
      const fill = scale(timeline.clocks.place(clock));
      return [clock, { fill, ink: inkOn(fill) }];
    }));
    const [panel, accent] = [token('--panel'), token('--accent')];
    context.textAlign = 'center';
    context.font = `${lane >= 20 ? 12 : 10}px ${font}`;
    const low = Math.round(lane * 0.34);
    iteration.ranks.forEach((blocks, rank) => {
      const top = rank * pitch;
      for (let i = this.firstAfter(rank, timeline.view.from); i < blocks.length; ++i) {
        const block = blocks[i]!;
        if (block.start >= timeline.view.to) break;
        const x0 = snap(this.x(block.start));
        const x1 = snap(this.x(block.start + block.duration));
        const gap = x1 - x0 >= 12 ? 1 : x1 - x0 >= 3.5 ? 1 / ratio : 0;
        const { fill, ink } = colours.get(block.clock) ?? { fill: panel, ink: '#111' };
        const isFused = block.fused !== undefined;
        const y = isLow(block) ? top + low : top;
        const high = isLow(block) || (block.type === 'W' && !isFused) ? lane - low : lane;
        const drawn = Math.max(x1 - x0 - gap, 1 / ratio);
        if (high < lane) {
          // The rest of the lane is not waiting: a pale tint of the same clock.
          context.fillStyle = panel;
          context.fillRect(x0, top, x1 - x0, lane);
          context.globalAlpha = 0.3;
          context.fillStyle = fill;
          context.fillRect(x0, top, drawn, lane);
          context.globalAlpha = 1;
        }
        context.fillStyle = fill;
        context.fillRect(x0, y, drawn, high);
        if (isFused && x1 - x0 >= 3.5) {
          context.fillStyle = panel;
          context.fillRect(x0, top + lane / 2 - 0.5, drawn, 1);
        }
        if (x1 - x0 > 15 && high >= 10) {
          // A fused pair has a half of the lane each: the second above, the first below.
          const names = [...(block.fused === undefined ? [] : [nameOf(block.fused)]),
            nameOf(block)];
          const [from, to] = [Math.max(x0, gutter), Math.min(x1, right)];
          const widest = Math.max(...names.map((name) => context.measureText(name).width));
          if (widest + 5 < to - from && high / names.length >= 10) {
            context.fillStyle = ink;
            names.forEach((name, at) => context.fillText(name, (from + to) / 2 - gap / 2,
                y + high * (at + 0.5) / names.length + 0.5));
          }
        }
        if (block.isCritical === true) {
          context.fillStyle = accent;
          context.fillRect(x0, top + lane + 1, Math.max(x1 - x0, 1 / ratio),
              Math.max(1.5, strip - 2));
        }
      }
    });
  }

  // Draws the critical path where it goes from one rank to another.
  private drawPath(path: [number, number][]): void {
    const { context } = this;
    context.strokeStyle = token('--accent');
    context.lineWidth = 1.5;
    context.beginPath();
    let last: { rank: number; end: number } | null = null;
    for (const [rank, place] of path) {
      const { start, duration } = this.iteration.ranks[rank]![place]!;
      if (last !== null && last.rank !== rank) {
        context.moveTo(this.x(last.end), this.bottomOf(last.rank) + this.strip / 2);
        context.lineTo(this.x(start), this.bottomOf(rank) + this.strip / 2);
      }
      last = { rank, end: start + duration };
    }
    context.stroke();
  }

  // Of the whole pipeline; returns where the mean is drawn.
  private drawPower(columns: number, ratio: number, right: number, end: number): number {
    const { context, timeline, gutter, axisTop } = this;
    const { from, to } = timeline.view;
    const power = this.powerColumns(columns, from, to);
    const y = (drawn: number) => axisTop - drawn / timeline.mostPower() * (powerHeight - 4);
    context.fillStyle = token('--power');
    context.beginPath();
    context.moveTo(gutter, axisTop);
    power.forEach((drawn, c) => {
      context.lineTo(gutter + c / ratio, y(drawn));
      context.lineTo(gutter + (c + 1) / ratio, y(drawn));
    });
    context.lineTo(right, axisTop);
    context.fill();
    const mean = Math.round(y(this.iteration.power ?? 0)) + 0.5;
    this.stroke('--ink', [4, 3], this.x(0), mean, end, mean);
    return mean;
  }

  private stroke(colour: string, dashes: number[], x0: number, y0: number, x1: number,
      y1: number): void {
    const { context } = this;
    context.strokeStyle = token(colour);
    context.lineWidth = 1;
    context.setLineDash(dashes);
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
    context.setLineDash([]);
  }

  private drawEnds(end: number, right: number): void {
    const { iteration } = this;
    const own = iteration.end === undefined ? null : this.x(iteration.end);
    if (own !== null) this.stroke('--ink', [3, 3], own, 0, own, this.axisTop);
    const last = Math.min(end, right - 0.5);
    if (end <= right + 1) {
      this.stroke(own === null ? '--ink' : '--accent', [], last, 0, last, this.axisTop);
    }
  }

  private outline(hit: Hit | null): void {
    if (hit === null || hit.block === null) return;
    // The same computation in the other iterations, too.
    const blocks = this.iteration.ranks[hit.rank] ?? [];
    const block = hit.panel === this ? hit.block
      : blocks[hit.panel.iteration.ranks[hit.rank]?.indexOf(hit.block) ?? -1];
    if (block === undefined) return;
    const x0 = this.x(block.start);
    this.context.strokeStyle = token('--ink');
    this.context.lineWidth = 2;
    this.context.strokeRect(x0, hit.rank * this.pitch + 1,
        Math.max(2, this.x(block.start + block.duration) - x0), this.lane - 2);
  }

  private drawAxis(right: number, font: string): void {
    const { context, gutter, axisTop, timeline } = this;
    const { from, to } = timeline.view;
    const unit = to - from >= 0.02 ? { factor: 1, name: 's' }
      : to - from >= 2e-5 ? { factor: 1e-3, name: 'ms' } : { factor: 1e-6, name: '\u00b5s' };
    const count = Math.max(2, (right - gutter) / 110);
    const x = scaleLinear().domain([from / unit.factor, to / unit.factor]).range([gutter, right]);
    const ticks = x.ticks(count);
    const format = x.tickFormat(count);
    context.strokeStyle = token('--rule');
    context.lineWidth = 1;
    context.font = `12px ${font}`;
    context.fillStyle = token('--soft');
    context.textAlign = 'center';
    context.beginPath();
    context.moveTo(gutter, axisTop + 0.5);
    context.lineTo(right, axisTop + 0.5);
    ticks.forEach((tick, at) => {
      context.moveTo(x(tick), axisTop);
      context.lineTo(x(tick), axisTop + 5);
      const label = format(tick) + (at === ticks.length - 1 ? ` ${unit.name}` : '');
      const half = context.measureText(label).width / 2;
      context.fillText(label, Math.min(x(tick), right + rightMargin - half), axisTop + 15);
    });
    context.stroke();
  }

  private listen(): void {
    const { canvas, timeline } = this;
    let drag: { x: number; from: number; to: number } | null = null;
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      drag = { x: event.offsetX, ...timeline.view };
    });
    canvas.addEventListener('pointermove', (event) => {
      if (drag !== null) {
        const by = (drag.x - event.offsetX) / this.plotWidth * (drag.to - drag.from);
        if (Math.abs(drag.x - event.offsetX) > 3) timeline.hideTip();
        timeline.look(drag.from + by, drag.to + by);
        return;
      }
      const hit = this.hit(event.offsetX, event.offsetY);
      timeline.select(hit);
      if (hit !== null) timeline.showTip(hit, event.clientX, event.clientY);
      else timeline.hideTip();
    });
    const drop = () => {
      drag = null;
    };
    canvas.addEventListener('pointerup', drop);
    canvas.addEventListener('pointercancel', drop);
    canvas.addEventListener('pointerleave', () => {
      timeline.hideTip();
      timeline.select(null);
    });
    canvas.addEventListener('dblclick', (event) => timeline.zoom(0.5, this.timeAt(event.offsetX)));
    canvas.addEventListener('wheel', (event) => {
      // A wheel over a timeline that was not clicked still scrolls the page.
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        timeline.pan(event.deltaX / this.plotWidth);
      } else {
        timeline.zoom(Math.exp(Math.max(-0.7, Math.min(0.7, event.deltaY * 0.0025))),
            this.timeAt(event.offsetX));
      }
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (timeline.press(this, event.key)) event.preventDefault();
    });
    canvas.addEventListener('blur', () => timeline.hideTip());
  }
}

// ---- All of them ----------------------------------------------------------------------------

export class Timeline {
  readonly element = h('div', { class: 'controls' });
  readonly view = { from: 0, to: 1 };
  readonly mostPitch: number;
  selected: Hit | null = null;
  private whole = 1;
  private readonly panels: Panel[] = [];
  private readonly range = h('output');
  private readonly said = h('div', { 'class': 'hidden', 'aria-live': 'polite' });
  private readonly tip = h('div', { class: 'tip', role: 'tooltip' });
  private isDrawing = false;
  private scale = 0;
  private readonly observer = new ResizeObserver(() => this.redraw());

  // `whole`: where all axes end. `element` has the controls, and goes behind the panels.
  constructor(readonly clocks: Clocks, whole: number, count: number) {
    this.mostPitch = count > 3 ? 24 : 34;
    this.whole = whole > 0 ? whole : 1;
    this.view.to = this.whole;
    const button = (name: string, press: () => void) =>
      h('button', { type: 'button', click: press }, name);
    const keys = (text: string) => text.split(' ').map((each) => h('kbd', {}, each));
    this.element.append(button('Zoom in', () => this.zoom(0.5, this.middle)),
        button('Zoom out', () => this.zoom(2, this.middle)),
        button('Whole iteration', () => this.look(0, this.whole)),
        h('span', {}, 'Drag to pan. Ctrl + wheel zooms; after a click into a timeline the wheel ',
            'alone does. Keys: ', ...keys('+ \u2212 \u2190 \u2192 0'), ', ',
            ...keys('n p \u2191 \u2193'), ' walk through computations.'),
        this.range, this.said, this.tip);
    alive.add(this);
  }

  // A picture, with what it shows in words.
  add(iteration: Iteration, label: string, key: string): HTMLCanvasElement {
    const panel = new Panel(this, iteration, label, key);
    this.panels.push(panel);
    this.scale = 0;
    this.observer.observe(panel.canvas);
    return panel.canvas;
  }

  // Another iteration in a picture that is there.
  change(canvas: HTMLCanvasElement, iteration: Iteration, label: string): void {
    const panel = this.panels.find((each) => each.canvas === canvas);
    if (panel === undefined) return;
    panel.iteration = iteration;
    canvas.setAttribute('aria-label', label);
    this.selected = null;
    this.redraw();
  }

  redraw(now = false): void {
    if (!now && this.isDrawing) return;
    const draw = () => {
      this.isDrawing = false;
      for (const panel of this.panels) panel.draw();
      this.range.textContent = `${seconds(this.view.from)} to ${seconds(this.view.to)}`;
    };
    if (now) return draw();
    this.isDrawing = true;
    requestAnimationFrame(draw);
  }

  // The highest of a whole view, so that zooming does not change the scale of power.
  mostPower(): number {
    if (this.scale === 0) {
      this.scale = 1.04 * Math.max(1e-9, ...this.panels.map((panel) =>
        panel.powerColumns(400, 0, this.whole).reduce((a, b) => Math.max(a, b), 0)));
    }
    return this.scale;
  }

  look(from: number, to: number): void {
    const span = Math.min(this.whole, Math.max(this.whole / 2e4, to - from));
    this.view.from = Math.min(Math.max(0, from), this.whole - span);
    this.view.to = this.view.from + span;
    this.redraw();
  }

  get isZoomed(): boolean {
    return this.view.to - this.view.from < this.whole;
  }

  zoom(factor: number, centre: number): void {
    const { from, to } = this.view;
    this.look(centre - (centre - from) * factor, centre + (to - centre) * factor);
  }

  pan(share: number): void {
    const by = share * (this.view.to - this.view.from);
    this.look(this.view.from + by, this.view.to + by);
  }

  select(hit: Hit | null): void {
    const isSame = this.selected?.block === hit?.block;
    this.selected = hit;
    if (!isSame) this.redraw();
  }

  showTip(hit: Hit, x: number, y: number): void {
    this.tip.replaceChildren(h('strong', {}, this.title(hit)),
        h('dl', {}, ...this.facts(hit).flatMap(([name, value]): Child[] =>
          [h('dt', {}, name), h('dd', {}, value)]) as HTMLElement[]),
        ...(hit.block?.isCritical === true
          ? [h('div', { class: 'critical' }, 'on the critical path')] : []));
    const { width, height } = this.tip.getBoundingClientRect();
    const left = x + 16 + width > window.innerWidth ? x - 16 - width : x + 16;
    const top = y + 18 + height > window.innerHeight ? y - 18 - height : y + 18;
    this.tip.style.transform = `translate(${Math.max(4, left)}px,${Math.max(4, top)}px)`;
    this.tip.style.visibility = 'visible';
  }

  hideTip(): void {
    this.tip.style.visibility = 'hidden';
  }

  // Returns whether the key means something.
  press(panel: Panel, key: string): boolean {
    const at = this.selected?.block ? this.selected : null;
    const ranks = panel.iteration.ranks;
    switch (key) {
      case '+': case '=': this.zoom(0.7, this.middle); return true;
      case '-': this.zoom(1 / 0.7, this.middle); return true;
      case '0': this.look(0, this.whole); return true;
      case 'ArrowLeft': this.pan(-0.15); return true;
      case 'ArrowRight': this.pan(0.15); return true;
      case 'Escape': this.hideTip(); this.select(null); return true;
      case 'n': case 'p': {
        const rank = at?.rank ?? 0;
        const place = at === null ? panel.firstAfter(0, this.view.from)
          : panel.firstAfter(rank, at.block!.start) + (key === 'n' ? 1 : -1);
        this.visit(panel, rank, place);
        return true;
      }
      case 'ArrowUp': case 'ArrowDown': {
        if (at === null) return false;
        const rank = Math.min(ranks.length - 1, Math.max(0, at.rank + (key === 'ArrowUp' ? -1 : 1)));
        this.visit(panel, rank, panel.firstAfter(rank, at.block!.start));
        return true;
      }
      default: return false;
    }
  }

  private get middle(): number {
    return (this.view.from + this.view.to) / 2;
  }

  // By keyboard: makes the block visible, shows and says it.
  private visit(panel: Panel, rank: number, place: number): void {
    const blocks = panel.iteration.ranks[rank] ?? [];
    const block = blocks[Math.min(blocks.length - 1, Math.max(0, place))];
    if (block === undefined) return;
    const end = block.start + block.duration;
    if (block.start < this.view.from || end > this.view.to) {
      const half = (this.view.to - this.view.from) / 2;
      this.look((block.start + end) / 2 - half, (block.start + end) / 2 + half);
    }
    const hit = { panel, rank, block };
    this.select(hit);
    const box = panel.canvas.getBoundingClientRect();
    this.showTip(hit, box.left + panel.x((block.start + end) / 2), box.top + panel.bottomOf(rank));
    this.said.textContent = `${this.title(hit)}, ` +
        this.facts(hit).map((pair) => pair.join(' ')).join(', ');
  }

  private title({ panel, rank, block }: Hit): string {
    if (block === null) return `${panel.iteration.names?.[rank] ?? `rank ${rank}`} waits`;
    return `${shortName(block)} \u2013 ${wordsOf(block)}` +
        (block.fused === undefined ? '' : ` + ${wordsOf(block.fused)}`);
  }

  private facts({ panel, rank, block }: Hit): [string, string][] {
    if (block === null) {
      const drawn = panel.iteration.waiting?.[rank];
      return drawn === undefined ? [] : [['power', watts(drawn)]];
    }
    return [['clock', this.clocks.name(block.clock)], ['start', seconds(block.start)],
      ['duration', seconds(block.duration)], ...(block.energy === undefined ? []
        : [['energy', joules(block.energy)], ['power', watts(block.energy / block.duration)]] as
          [string, string][])];
  }
}
