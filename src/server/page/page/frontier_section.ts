// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The frontier with the choice of a point: its figures, and then, with the right to it, the change.

import { FrontierChart, Point } from 'charts/charts';
import { get, jobPath, send } from './api';
import { behind, h, replace, setText, table } from './dom';
import { joules, percent, seconds, signedPercent, watts } from 'charts/format';
import { chartOf, pointAt, previewOf, readFrontier, someOf, targetOf } from './frontier';
import type { Job } from './types';

const mostPoints = 600;
const steps = 200;  // Of the slider, by keys.

export class FrontierSection {
  readonly element = h('section', { 'aria-labelledby': 'frontier-head' });
  private readonly slider = h('input', {
    type: 'range', id: 'point', 'aria-describedby': 'preview',
  });
  private readonly preview = h('output', { id: 'preview', for: 'point' });
  private readonly outcome = h('p', { role: 'status', id: 'outcome' });
  private readonly apply = h('button', { type: 'button', id: 'apply', disabled: true }, 'Apply');
  private readonly cancel = h('button', { type: 'button', disabled: true }, 'Back to the plan');
  private readonly picture = h('div');
  private readonly listed = h('div');
  private readonly signal: AbortSignal;
  private job: Job | null = null;
  private points: Point[] = [];
  private chart: FrontierChart | null = null;
  private curve = '';
  private drawn = '';
  private isLooking = false;

  constructor(signal: AbortSignal, private readonly onChange: () => void) {
    this.signal = signal;
    this.element.append(h('h2', { id: 'frontier-head' }, 'Frontier'),
        h('p', { class: 'soft' }, 'Square: maximum clocks. Diamond: the plan. Triangles: pipelines ' +
            'with another plan, because of a straggler. No plan lies below the curve. T_min: the ' +
            'shortest iteration. T*: beyond it, slower clocks save nothing more; only a straggler ' +
            'makes iterations so long. Drag in the chart, or move the slider, to look at another ' +
            'point.'), this.picture,
        h('div', { class: 'choice' }, h('label', { for: 'point' }, 'Iteration time'), this.slider,
            this.preview, this.apply, this.cancel),
        this.outcome, behind('frontier-table', 'The frontier as a table', this.listed));
    this.element.hidden = true;
    this.slider.addEventListener('input', () => this.look());
    this.apply.addEventListener('click', () => void this.change());
    this.cancel.addEventListener('click', () => this.settle());
  }

  update(job: Job): void {
    this.job = job;
    this.element.hidden = job.frontier === null;
    if (job.frontier === null) return;
    const curve = JSON.stringify([job.frontier, job.refined]);
    if (curve !== this.curve) {
      this.curve = curve;
      void this.read();
    } else {
      this.draw();
    }
  }

  private async read(): Promise<void> {
    if (this.job === null) return;
    try {
      const answer = await send('GET', `${jobPath(this.job.id)}/frontier?points=${mostPoints}`,
          { signal: this.signal });
      this.points = readFrontier(await answer.text());
      this.drawn = '';
      this.draw();
    } catch {
      this.curve = '';
    }
  }

  private draw(): void {
    const job = this.job;
    if (job === null || this.points.length === 0) return;
    const state = JSON.stringify([this.curve, job.plan]);
    if (state === this.drawn) return;
    this.drawn = state;
    this.chart = new FrontierChart(chartOf(this.points, job), (time) => {
      this.slider.value = String(time);
      this.look();
    });
    replace(this.picture, this.chart.element);
    const [first, last] = [this.points[0]!.time, this.points[this.points.length - 1]!.time];
    this.slider.min = String(first);
    this.slider.max = String(last);
    this.slider.step = String((last - first) / steps);
    replace(this.listed, table('Points of the frontier, one pipeline, predicted', [
      { head: 'Iteration time', cell: (point) => seconds(point.time) },
      { head: 'Energy', cell: (point) => joules(point.energy), isNumber: true },
      { head: 'Saving', cell: (point) => percent(previewOf(point, job).saving), isNumber: true },
    ], someOf(this.points)));
    if (this.isLooking) this.look();
    else this.settle();
  }

  // The slider is as the chart's axis: by time.
  private chosen(): Point | undefined {
    return this.points[pointAt(this.points, Number(this.slider.value))];
  }

  private look(): void {
    const point = this.chosen();
    if (point === undefined || this.job === null) return;
    this.isLooking = true;
    this.chart?.choose(point);
    const { time, energy, watts: power, slowdown, saving } = previewOf(point, this.job);
    const text = `${seconds(time)} (${signedPercent(slowdown)} against maximum clocks), ` +
        `${watts(power)}, ${joules(energy)} an iteration, saves ${percent(saving)} ` +
        '(predicted, all pipelines, no straggler)';
    setText(this.preview, text);
    this.slider.setAttribute('aria-valuetext', text);
    this.apply.disabled = false;
    this.cancel.disabled = false;
    setText(this.outcome, '');
  }

  // Shows the plan's own point.
  private settle(): void {
    this.isLooking = false;
    this.apply.disabled = true;
    this.cancel.disabled = true;
    this.chart?.choose(null);
    const time = this.job?.plan?.iteration_time_s;
    if (this.job === null || time === undefined) return;
    this.slider.value = String(time);
    const text = `${seconds(time)}: the plan (target ${this.job.at})`;
    this.slider.setAttribute('aria-valuetext', text);
    setText(this.preview, text);
  }

  private async change(): Promise<void> {
    const point = this.chosen();
    if (point === undefined || this.job === null) return;
    this.apply.disabled = true;
    const at = targetOf(point);
    try {
      await send('PUT', `${jobPath(this.job.id)}/point`, { body: { at }, signal: this.signal });
      this.settle();
      const job = await get<Job>(jobPath(this.job.id), this.signal);
      this.update(job);
      setText(this.outcome, `The target is ${job.at}; ranks get the new plan within an iteration.`);
      this.onChange();
    } catch (error) {
      this.apply.disabled = false;
      setText(this.outcome, `Not changed: ${error instanceof Error ? error.message : ''}`);
    }
  }
}
