// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Charts of lines, and the frontier, as wide as there is room for.

import { axisBottom, axisLeft, axisRight, axisTop } from 'd3-axis';
import { LinearScale, scaleLinear } from 'd3-scale';
import { select } from 'd3-selection';
import { line } from 'd3-shape';

import { Child, h, key, svg } from './dom';
import { joules, seconds } from './format';

const usualWidth = 960;
const leastWidth = 330;

interface Margin {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

// A chart that is drawn again when its width changes.
export abstract class Chart {
  readonly element: HTMLElement;
  protected width = usualWidth;
  protected picture: SVGSVGElement | null = null;

  protected constructor(label: string, ...above: Child[]) {
    this.element = h('div', { 'class': 'chart', 'role': 'group', 'aria-label': label }, ...above);
  }

  protected start(): void {
    this.redraw();
    new ResizeObserver(() => requestAnimationFrame(() => {
      const width = Math.max(leastWidth, Math.round(this.element.clientWidth));
      if (this.element.clientWidth === 0 || width === this.width) return;
      this.width = width;
      this.redraw();
    })).observe(this.element);
  }

  protected abstract draw(): SVGSVGElement;
  protected afterDraw(): void {}

  private redraw(): void {
    const drawn = this.draw();
    if (this.picture === null) this.element.append(drawn);
    else this.picture.replaceWith(drawn);
    this.picture = drawn;
    this.afterDraw();
  }
}

function root(width: number, height: number, label: string, ...children: SVGElement[]):
    SVGSVGElement {
  return svg('svg', { 'viewBox': `0 0 ${width} ${height}`, 'class': 'plot', 'role': 'img',
    'aria-label': label }, ...children);
}

function text(css: string, x: number, y: number, anchor: string, words: string): SVGTextElement {
  return svg('text', { class: css, x, y, 'text-anchor': anchor }, words);
}

interface Unit {
  name: string;
  factor: number;
}

// The greatest of them that is not above `value`; the last is the least.
function unitFor(value: number, ...units: Unit[]): Unit {
  return units.find(({ factor }) => value >= factor) ?? units[units.length - 1]!;
}

// The same places, in another unit.
const inUnit = (scale: LinearScale, { factor }: Unit, ends: [number, number]) => scaleLinear()
    .domain([scale.invert(ends[0]) / factor, scale.invert(ends[1]) / factor]).range(ends);

// Both axes; lines of the grid go with the left one.
function axes(x: LinearScale, y: LinearScale, width: number, height: number, margin: Margin,
    format: { x?: (value: number) => string; y?: (value: number) => string; rows?: number }):
    SVGElement[] {
  const bottom = svg('g', { class: 'axis', transform: `translate(0 ${height - margin.bottom})` });
  const below = axisBottom(x).ticks(Math.max(3, Math.round(width / 110))).tickSizeOuter(0);
  select(bottom).call(format.x === undefined ? below : below.tickFormat(format.x));
  const left = svg('g', { class: 'axis', transform: `translate(${margin.left} 0)` });
  const beside = axisLeft(y).ticks(format.rows ?? 5).tickSizeOuter(0)
      .tickSizeInner(margin.left + margin.right - width).tickPadding(8);
  select(left).call(format.y === undefined ? beside : beside.tickFormat(format.y));
  return [left, bottom];
}

// ---- Lines ----------------------------------------------------------------------------------

export interface Series {
  name: string;
  css: string;
  runs: [number, number][][];  // A line each; a run of one point is a dot.
}

export interface Lines {
  title: string;
  summary: string;
  xName?: string;
  yName: string;
  height: number;
  rows?: number;  // About so many lines of the grid.
  ends?: [number, number];  // Of the x axis; without: of the data.
  series: Series[];
  bands?: [number, number, number, number][];  // From, to, low, high: values that share a pixel.
  bandName?: string;
  spans?: [number, number][];  // Shaded over the whole height.
  spanName?: string;
  x?: (value: number) => string;
  y?: (value: number) => string;
}

export class LineChart extends Chart {
  constructor(private readonly lines: Lines) {
    super(lines.title);
    const keys = lines.series.map(({ css, name }) => key(`${css} of-line`, name));
    const has = (list: unknown[] | undefined) => list !== undefined && list.length > 0;
    if (has(lines.bands)) keys.push(key('band', lines.bandName ?? ''));
    if (has(lines.spans)) keys.push(key('span', lines.spanName ?? ''));
    if (keys.length > 1) this.element.append(h('p', { class: 'keys' }, ...keys));
    this.start();
  }

  protected draw(): SVGSVGElement {
    const { lines, width } = this;
    const { height } = lines;
    const margin = { left: 64, right: 16, top: 28, bottom: lines.xName === undefined ? 28 : 46 };
    const points = lines.series.flatMap((series) => series.runs.flat());
    const bands = lines.bands ?? [];
    const ups = [...points.map(([, up]) => up), ...bands.flatMap(([, , low, high]) => [low, high])];
    const least = ups.reduce((a, b) => Math.min(a, b), Infinity);
    const most = ups.reduce((a, b) => Math.max(a, b), -Infinity);
    // Of figures that hardly change, noise would fill the chart.
    const room = Math.max((most - least) * 0.08, Math.abs(most) * 0.01, 1e-9);
    const ends = lines.ends ?? [points.reduce((a, [at]) => Math.min(a, at), Infinity),
      points.reduce((a, [at]) => Math.max(a, at), -Infinity)];
    const x = scaleLinear().domain(ends).range([margin.left, width - margin.right]);
    const y = scaleLinear().domain([least >= 0 ? Math.max(0, least - room) : least - room,
      most + room]).nice(3).range([height - margin.bottom, margin.top]);
    const drawn = axes(x, y, width, height, margin, lines);
    const top = margin.top;
    for (const [from, to] of lines.spans ?? []) {
      drawn.unshift(svg('rect', { class: 'span', x: x(from), y: top,
        width: Math.max(1, x(to) - x(from)), height: height - margin.bottom - top }));
    }
    const place = (value: number) => value.toFixed(1);
    if (bands.length > 0) {
      drawn.push(svg('path', { class: 'band', d: bands.map(([from, to, low, high]) =>
        `M${place(x(from))} ${place(y(high))}H${place(x(to))}V${place(y(low))}H${place(x(from))}Z`)
          .join('') }));
    }
    const path = line<[number, number]>().x(([at]) => x(at)).y(([, up]) => y(up));
    for (const { css, runs } of lines.series) {
      drawn.push(...runs.map((run) => (run.length > 1
        ? svg('path', { class: `line ${css}`, d: path(run) ?? '' })
        : svg('circle', { class: css, r: 3, cx: x(run[0]![0]), cy: y(run[0]![1]) }))));
    }
    drawn.push(text('axis-name', 8, 16, 'start', lines.yName));
    if (lines.xName !== undefined) {
      drawn.push(text('axis-name', width - margin.right, height - 8, 'end', lines.xName));
    }
    return root(width, height, lines.summary, ...drawn);
  }
}

// ---- Frontier -------------------------------------------------------------------------------

export interface Point {
  time: number;
  energy: number;
}

export interface Mark extends Point {
  name: string;
  kind: 'baseline' | 'chosen' | 'point' | 'straggler';
  isNamed?: boolean;
}

export interface FrontierData {
  points: Point[];
  isBound: boolean;  // No plan lies below the curve.
  baseline: Point | null;
  marks: Mark[];
  times: { name: string; time: number }[];
  xName: string;  // Its unit is added.
  yName: string;
  source: string;  // Where figures come from.
}

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

const overlap = (a: Box, b: Box) => a.left < b.right && b.left < a.right && a.top < b.bottom &&
    b.top < a.bottom;
const letterWidth = 6.7;  // On the safe side.
const widthOf = (words: string) => words.length * letterWidth;
const named = (time: string) => time.split('_') as [string, string?];

export class FrontierChart extends Chart {
  private x = scaleLinear();
  private y = scaleLinear();
  private height = 420;
  private margin: Margin = { left: 64, right: 24, top: 28, bottom: 46 };
  private chosen: Point | null = null;
  private taken: Box[] = [];

  // `onPick`: where the chart lets a point be chosen.
  constructor(private readonly data: FrontierData,
              private readonly onPick: ((time: number) => void) | null = null) {
    super('Chart of the frontier');
    if (data.baseline !== null) this.margin = { left: 64, right: 62, top: 42, bottom: 46 };
    this.start();
  }

  // null: no other point than the plan's is being looked at.
  choose(point: Point | null): void {
    this.chosen = point;
    this.drawChosen();
  }

  protected draw(): SVGSVGElement {
    const { width, margin } = this;
    this.height = Math.max(320, Math.min(470, Math.round(width * 0.42)));
    this.scale();
    const clip = svg('clipPath', { id: 'inside' }, svg('rect', { x: margin.left, y: margin.top,
      width: width - margin.left - margin.right, height: this.height - margin.top - margin.bottom,
    }));
    this.taken = [];
    const reading = svg('g', { class: 'reading' });
    const drawn = root(width, this.height, this.summary(), clip, ...this.drawAxes(),
        ...this.drawCurve(), ...this.drawTimes(), ...this.drawMarks(),
        svg('g', { class: 'candidate', hidden: true },
            svg('line', { y1: margin.top, y2: this.height - margin.bottom }),
            svg('circle', { r: 6 })), reading);
    this.listen(drawn, reading);
    return drawn;
  }

  protected override afterDraw(): void {
    this.drawChosen();
  }

  private get isNarrow(): boolean {
    return this.width < 600;
  }

  private scale(): void {
    const { data, width, margin, height } = this;
    const all = [...data.points, ...data.marks];
    const marked = data.marks.length > 0 ? data.marks : data.points;
    const first = Math.min(data.points[0]!.time, ...marked.map((mark) => mark.time),
        ...data.times.map(({ time }) => time));
    const last = Math.max(...data.marks.map((mark) => mark.time),
        ...data.times.map(({ time }) => time),
        ...(data.times.length > 0 ? [] : data.points.map(({ time }) => time)));
    const energies = all.map((each) => each.energy);
    const most = energies.reduce((a, b) => Math.max(a, b));
    const least = energies.reduce((a, b) => Math.min(a, b));
    const wide = Math.max(last - first, 0.02 * last);
    const high = Math.max(most - least, 0.02 * most);
    this.x = scaleLinear()
        .domain([Math.max(0, first - 0.045 * wide), last + 0.045 * wide || 1])
        .range([margin.left, width - margin.right]);
    // Above the curve stay free the lines with the names of times.
    const inner = height - margin.top - margin.bottom;
    const low = Math.max(0, least - 0.14 * high);
    const top = low + (most + 0.05 * high - low) * inner / (inner - 20 * data.times.length);
    this.y = scaleLinear().domain([low, top > low ? top : low + 1])
        .range([height - margin.bottom, margin.top]);
  }

  private energyAt(time: number): number | null {
    const { points } = this.data;
    const after = points.findIndex((point) => point.time >= time);
    if (after < 0 || time < points[0]!.time * (1 - 1e-9)) return null;
    const [a, b] = [points[Math.max(0, after - 1)]!, points[after]!];
    return b.time > a.time
      ? a.energy + (b.energy - a.energy) * (time - a.time) / (b.time - a.time) : b.energy;
  }

  private drawAxes(): SVGElement[] {
    const { data, width, height, margin, x, y } = this;
    const across: [number, number] = [margin.left, width - margin.right];
    const up: [number, number] = [height - margin.bottom, margin.top];
    const time = unitFor(x.invert(across[1]), { name: 's', factor: 1 },
        { name: 'ms', factor: 1e-3 }, { name: '\u00b5s', factor: 1e-6 });
    const energy = unitFor(y.invert(up[1]), { name: 'MJ', factor: 1e6 },
        { name: 'kJ', factor: 1e3 }, { name: 'J', factor: 1 }, { name: 'mJ', factor: 1e-3 });
    const drawn = axes(inUnit(x, time, across), inUnit(y, energy, up), width, height, margin,
        { rows: 6 });
    drawn.push(text('axis-name', across[1], height - 8, 'end',
        `${data.xName}, ${time.name} (${data.source})`),
    text('axis-name', 8, 16, 'start', `${data.yName}, ${energy.name} (${data.source})`));
    const { baseline } = data;
    if (baseline === null) return drawn;
    // The same two quantities against the baseline.
    const [early, late] = across.map((at) => x.invert(at)) as [number, number];
    const factor = scaleLinear().domain([early / baseline.time, late / baseline.time])
        .range(across);
    const above = svg('g', { class: 'axis', transform: `translate(0 ${margin.top})` });
    select(above).call(axisTop(factor).ticks(Math.max(3, Math.round(width / 130)))
        .tickSizeOuter(0).tickFormat((value) => `${value.toFixed(2)}\u00d7`));
    const [least, most] = up.map((at) => y.invert(at)) as [number, number];
    const saving = scaleLinear().domain([100 * (1 - least / baseline.energy),
      100 * (1 - most / baseline.energy)]).range(up);
    const right = svg('g', { class: 'axis', transform: `translate(${width - margin.right} 0)` });
    select(right).call(axisRight(saving).ticks(6).tickSizeOuter(0)
        .tickFormat((value) => `${saving.tickFormat(6)(value)} %`));
    drawn.push(above, right);
    if (!this.isNarrow) drawn.push(text('axis-name', width - 4, 16, 'end', 'saves'));
    return drawn;
  }

  private drawCurve(): SVGElement[] {
    const { data, height, margin, x, y } = this;
    const curve = line<Point>().x((point) => x(point.time)).y((point) => y(point.energy));
    const path = curve(data.points) ?? '';
    const drawn: SVGElement[] = [];
    const bottom = height - margin.bottom;
    if (data.isBound) {
      const [first, last] = [data.points[0]!, data.points[data.points.length - 1]!];
      drawn.push(svg('pattern', { id: 'hatch', width: 7, height: 7,
        patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
      svg('line', { class: 'hatch', x1: 0, y1: 0, x2: 0, y2: 7 })),
      svg('path', { 'class': 'impossible', 'clip-path': 'url(#inside)',
        'd': `M${x(first.time)} ${margin.top}L${path.slice(1)}L${x(last.time)} ${bottom}` +
          `H${margin.left}V${margin.top}Z` }));
    }
    drawn.push(svg('path', { 'class': 'curve', 'clip-path': 'url(#inside)', 'd': path }));
    if (data.isBound && !this.isNarrow) {
      drawn.push(text('region', margin.left + 14, bottom - 12, 'start',
          'no plan can be in the hatched region'));
    }
    return drawn;
  }

  // A dashed line each, and the name in a band at the top.
  private drawTimes(): SVGElement[] {
    const { data, width, margin, x, y } = this;
    const names: Box[] = [];
    return data.times.map(({ name, time }) => {
      const at = x(time);
      const [base, below] = named(name);
      const value = this.isNarrow ? '' : seconds(time);
      const wide = widthOf(`${name} ${value}`) + 8;
      const isLeft = at + wide > width - margin.right;
      const box = { left: isLeft ? at - wide : at, right: isLeft ? at : at + wide,
        top: margin.top + 4, bottom: margin.top + 19 };
      while (names.some((other) => overlap(other, box))) {
        box.top += 17;
        box.bottom += 17;
      }
      names.push(box);
      const energy = this.energyAt(time);
      return svg('g', { class: 'mark' },
          svg('line', { x1: at, x2: at, y1: box.top - 2,
            y2: energy === null ? this.height - margin.bottom : y(energy) }),
          svg('text', { x: isLeft ? at - 6 : at + 6, y: box.top + 11,
            'text-anchor': isLeft ? 'end' : 'start' }, base,
          below === undefined ? null : svg('tspan', { class: 'sub', dy: 3 }, below),
          svg('tspan', { class: 'value', dy: below === undefined ? 0 : -3 }, ` ${value}`)));
    });
  }

  private drawMarks(): SVGElement[] {
    const { data, x, y } = this;
    const shapes = {
      baseline: () => svg('rect', { x: -5.5, y: -5.5, width: 11, height: 11 }),
      chosen: () => svg('path', { d: 'M0 -8l8 8l-8 8l-8 -8Z' }),
      point: () => svg('circle', { r: 4.5 }),
      straggler: () => svg('path', { d: 'M0 -7 L7 6 L-7 6 Z' }),
    };
    for (const mark of data.marks) {
      const [at, up] = [x(mark.time), y(mark.energy)];
      this.taken.push({ left: at - 8, right: at + 8, top: up - 8, bottom: up + 8 });
    }
    const drawn: SVGElement[] = [];
    // From the slowest: then no leader crosses the name of another point.
    for (const mark of [...data.marks].sort((a, b) => b.time - a.time)) {
      const [at, up] = [x(mark.time), y(mark.energy)];
      const names = mark.isNamed === false || (mark.kind === 'point' && this.isNarrow) ? []
        : this.place(mark, at, up);
      drawn.push(svg('g', { class: mark.kind }, ...names,
          svg('g', { transform: `translate(${at} ${up})` }, shapes[mark.kind](),
              svg('title', {}, `${mark.name}: ${seconds(mark.time)}, ${joules(mark.energy)}`))));
    }
    return drawn;
  }

  // Puts a name up and to the right of its point, where a falling curve leaves room, at the first
  // height that is free.
  private place(mark: Mark, at: number, up: number): SVGElement[] {
    const { width, margin } = this;
    const wide = widthOf(mark.name) + 4;
    for (let level = 0; level < 12; ++level) {
      const rise = 16 + 17 * level;
      const run = Math.min(0.45 * rise + 4, width - margin.right - wide - at);
      const box = { left: at + run, right: at + run + wide, top: up - rise - 9,
        bottom: up - rise + 6 };
      if (box.top < margin.top + 20 * this.data.times.length - 10) break;
      if (this.taken.some((other) => overlap(other, box))) continue;
      this.taken.push(box);
      return [svg('line', { class: 'leader', x1: at + 0.16 * run, y1: up - 0.16 * rise,
        x2: at + run, y2: up - rise + 5 }),
      text('', box.left + 2, up - rise + 2, 'start', mark.name)];
    }
    // No room above: below the point.
    return [text('', Math.min(at + 6, width - margin.right - wide), up + 26, 'start', mark.name)];
  }

  private summary(): string {
    const { points, marks } = this.data;
    const first = points[0]!;
    const least = points.reduce((a, b) => (b.energy < a.energy ? b : a));
    return `The frontier falls from ${joules(first.energy)} at ${seconds(first.time)} to ` +
        `${joules(least.energy)} at ${seconds(least.time)}. ` +
        marks.map((mark) => `${mark.name}: ${joules(mark.energy)} at ${seconds(mark.time)}.`)
            .join(' ');
  }

  private drawChosen(): void {
    const group = this.picture?.querySelector('.candidate');
    group?.toggleAttribute('hidden', this.chosen === null);
    if (this.chosen === null) return;
    group?.setAttribute('transform', `translate(${this.x(this.chosen.time)} 0)`);
    group?.querySelector('circle')?.setAttribute('cy', String(this.y(this.chosen.energy)));
  }

  private listen(drawn: SVGSVGElement, reading: SVGElement): void {
    let isDragging = false;
    const placeOf = (event: PointerEvent) => {
      const box = drawn.getBoundingClientRect();
      return { x: (event.clientX - box.left) / box.width * this.width,
        y: (event.clientY - box.top) / box.width * this.width };
    };
    const pick = (event: PointerEvent) => this.onPick?.(this.x.invert(placeOf(event).x));
    drawn.addEventListener('pointerdown', (event) => {
      if (this.onPick === null) return;
      isDragging = true;
      drawn.setPointerCapture(event.pointerId);
      pick(event);
    });
    drawn.addEventListener('pointermove', (event) => {
      if (isDragging) pick(event);
      reading.replaceChildren(...(isDragging ? [] : this.read(placeOf(event))));
    });
    drawn.addEventListener('pointerup', () => {
      isDragging = false;
    });
    drawn.addEventListener('pointerleave', () => reading.replaceChildren());
  }

  // A reading of the curve under the pointer.
  private read(at: { x: number; y: number }): SVGElement[] {
    const { data, width, height, margin } = this;
    const time = this.x.invert(at.x);
    const energy = this.energyAt(time);
    if (energy === null || at.x > width - margin.right || at.y < margin.top ||
        at.y > height - margin.bottom) {
      return [];
    }
    const { baseline } = data;
    const words = [
      seconds(time) + (baseline === null ? '' : `  (${(time / baseline.time).toFixed(3)}\u00d7)`),
      `${data.isBound ? 'at least ' : ''}${joules(energy)}`,
      ...(baseline === null ? []
        : [`saves${data.isBound ? ' at most' : ''} ` +
           `${(100 * (1 - energy / baseline.energy)).toFixed(2)} %`]),
    ];
    const left = at.x + 192 > width - margin.right ? at.x - 192 : at.x + 12;
    const top = Math.max(margin.top + 4, Math.min(at.y - 80, height - margin.bottom - 74));
    return [
      svg('line', { x1: at.x, x2: at.x, y1: margin.top, y2: height - margin.bottom }),
      svg('circle', { cx: at.x, cy: this.y(energy), r: 4 }),
      svg('rect', { x: left, y: top, width: 180, height: 10 + 18 * words.length, rx: 6 }),
      ...words.map((word, i) => text('', left + 12, top + 20 + 18 * i, 'start', word)),
    ];
  }
}
