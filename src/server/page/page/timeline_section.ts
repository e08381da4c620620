// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// An iteration before and after: at maximum clocks, as planned, and as measured.

import { Clocks, Iteration, shapes, Timeline } from 'charts/timeline';
import { parse, put, remember } from './address';
import { ApiError, get, jobPath } from './api';
import { behind, Child, h, replace, table } from './dom';
import { percent, seconds } from 'charts/format';
import { MeasuredIteration } from './measured_iteration';
import { asGiven, atMaximumClocks } from './replay';
import type { Job, PlanFile } from './types';

// More are neither drawn quickly nor told apart.
const mostBlocks = 6000;

interface RankRow {
  rank: number;
  clocks: string;
  busy: number;
  share: number;
}

function rankRows(iteration: Iteration): RankRow[] {
  return iteration.ranks.map((blocks, rank) => {
    const clocks = blocks.map((block) => block.clock);
    const busy = blocks.reduce((sum, block) => sum + block.duration, 0);
    return { rank, busy, share: 100 * (1 - busy / iteration.seconds),
      clocks: `${Math.min(...clocks)} to ${Math.max(...clocks)} MHz` };
  });
}

function summary(title: string, iteration: Iteration): string {
  const clocks = iteration.ranks.flatMap((blocks) => blocks.map((block) => block.clock));
  return `${title}: ${seconds(iteration.seconds)}. ${clocks.length} computations on ` +
      `${iteration.ranks.length} ranks, at ${Math.min(...clocks)} to ${Math.max(...clocks)} MHz.`;
}

// The common end of the axes that are drawn below each other. Rounded, so that a slightly longer
// iteration does not change the others' pictures.
function commonEnd(iterations: Iteration[]): number {
  const longest = Math.max(...iterations.map((iteration) => iteration.seconds));
  const step = 10 ** Math.floor(Math.log10(longest)) / 20;
  return Math.ceil(longest / step) * step;
}

function rankTable(key: string, summaryText: string, title: string, iteration: Iteration): Child {
  return behind(key, summaryText, table(title, [
    { head: 'Stage', cell: (row) => String(row.rank) },
    { head: 'Clocks', cell: (row) => row.clocks },
    { head: 'Computes', cell: (row) => seconds(row.busy), isNumber: true },
    { head: 'Waits', cell: (row) => percent(row.share), isNumber: true },
  ], rankRows(iteration)));
}

function caption(title: string, iteration: Iteration): string {
  return `${title}: ${seconds(iteration.seconds)}`;
}

export class TimelineSection {
  readonly element = h('section', { 'aria-labelledby': 'timeline-head', hidden: true });
  private readonly content = h('div');
  private readonly measuredContent = h('div');
  private readonly measured: MeasuredIteration;
  private job: Job | null = null;
  private plans: { before: Iteration | null; after: Iteration } | null = null;
  private drawn = '';  // The last scale of the planned ones.
  private timeline: Timeline | null = null;
  private picture: HTMLCanvasElement | null = null;  // Of the measured one.
  private readonly controls = h('div');
  private readonly select = h('select', { id: 'pipeline' });
  private version = -1;
  private pipeline = 0;
  private newest = 0;  // The newest request; older answers may come later.

  constructor(private readonly signal: AbortSignal) {
    this.pipeline = Number(parse(location.hash).query.get('pipeline') ?? '0') || 0;
    this.element.append(h('h2', { id: 'timeline-head' }, 'An iteration'),
        h('p', {}, h('label', { for: 'pipeline' }, 'Pipeline '), this.select),
        this.content, this.measuredContent, this.controls);
    this.measured = new MeasuredIteration(this.signal, () => this.draw());
  }

  update(job: Job): void {
    this.job = job;
    const version = job.plan?.iteration_time_s === undefined ? 0 : job.plan.version;
    this.element.hidden = version === 0;
    if (version === 0) return;
    if (version === this.version) return this.lookAtMeasured();
    this.version = version;
    const other = Object.keys(job.plan?.pipelines ?? {});
    this.drawChoice(job, other);
    void this.read(job);
  }

  // Pipelines that run the same plan look the same: the first stands for them.
  private drawChoice(job: Job, other: string[]): void {
    const numbers = Array.from({ length: job.data_parallel }, (_, i) => i);
    const usual = numbers.find((number) => !other.includes(String(number)));
    const shown = [...new Set([...(usual === undefined ? [] : [usual]), ...other.map(Number),
      this.pipeline])].filter((number) => number < job.data_parallel).sort((a, b) => a - b);
    replace(this.select, ...shown.map((number) => h('option', { value: number,
      selected: number === this.pipeline }, other.includes(String(number))
      ? `${number} (its own plan)` : `${number} (the job\u2019s plan)`)));
    this.select.onchange = () => {
      this.pipeline = Number(this.select.value);
      remember((query) => put(query, 'pipeline', this.select.value, '0'));
      void this.read(job);
    };
  }

  private async read(job: Job): Promise<void> {
    const settings = job.settings ?? {};
    const number = (name: string) => (typeof settings[name] === 'number' ? settings[name] : 1);
    const blocks = 2 * job.pipeline_parallel * Number(number('virtual_stages')) *
        Number(number('microbatches'));
    if (blocks > mostBlocks) {
      return this.say(h('p', {}, 'An iteration of this job has about ' +
          `${blocks} computations, too many to draw here. `,
      h('code', {}, `perseus job plan ${job.id}`), ' writes the plan to a file, of which ',
      h('code', {}, 'perseus report'), ' makes a page.'));
    }
    this.newest += 1;
    const asked = this.newest;
    try {
      const plan = await get<PlanFile>(`${jobPath(job.id)}/plan.json?pipeline=${this.pipeline}`,
          this.signal);
      if (asked !== this.newest) return;
      this.plans = { before: atMaximumClocks(plan), after: asGiven(plan) };
      this.drawn = '';
      this.draw();
      this.lookAtMeasured();
    } catch (error) {
      if (this.signal.aborted || asked !== this.newest) return;
      this.version = -1;
      const isAtMaximum = error instanceof ApiError && error.status === 409;
      this.say(h('p', {}, isAtMaximum
        ? `Pipeline ${this.pipeline} runs at maximum clocks: it straggles, and no plan helps it.`
        : `The plan cannot be read: ${error instanceof Error ? error.message : ''}`));
    }
  }

  // Instead of all pictures.
  private say(sentence: Child): void {
    this.plans = null;
    replace(this.content, sentence);
    replace(this.measuredContent);
    replace(this.controls);
  }

  private lookAtMeasured(): void {
    if (this.plans === null || this.job === null) return;
    if (this.pipeline === 0) this.measured.update(this.job);
    if (this.measured.timeline === null) this.draw();
  }

  // All have the same scale. A picture stays as long as its scale: a reader may be in it.
  private draw(): void {
    if (this.plans === null || this.job === null) return;
    const { before, after } = this.plans;
    const measured = this.pipeline === 0 ? this.measured.iteration : null;
    const all = [before, after, measured].filter((each): each is Iteration => each !== null);
    const clocks = new Clocks(all, 'MHz');
    const longest = commonEnd(all);
    const scale = `${clocks.key} ${longest}`;
    if (this.timeline === null || scale !== this.drawn) {
      this.drawn = scale;
      this.picture = null;
      const old = this.timeline;
      this.timeline = new Timeline(clocks, longest, all.length);
      replace(this.content, ...this.drawPlans(before, after, this.timeline));
      if (old?.isZoomed) this.timeline.look(old.view.from, old.view.to);
      replace(this.controls, this.timeline.element);
    }
    if (measured === null) return this.drawNothingMeasured(this.job);
    const said = summary('As measured', measured);
    if (this.picture === null) this.picture = this.timeline.add(measured, said, 'measured');
    else this.timeline.change(this.picture, measured, said);
    replace(this.measuredContent, h('h3', {}, this.measuredTitle(measured, after)),
        ...this.measured.words(), this.picture,
        rankTable('measured-table', 'The measured iteration as a table',
            'Each rank of the pipeline, as measured', measured));
  }

  private measuredTitle(measured: Iteration, after: Iteration): string {
    const title = caption('As measured', measured);
    if (this.measured.timeline?.plan_version !== this.version) return title;
    const share = 100 * (measured.seconds / after.seconds - 1);
    return Math.abs(share) < 0.05 ? `${title}, as planned`
      : `${title}, ${percent(Math.abs(share))} ${share < 0 ? 'less' : 'more'} than planned`;
  }

  private drawNothingMeasured(job: Job): void {
    const content = h('div', {}, h('h3', {}, 'As measured'), ...(this.pipeline === 0
      ? MeasuredIteration.empty(job)
      : [h('p', {}, 'Only the iterations of pipeline 0 are measured: choose it above.')]));
    if (this.measuredContent.textContent === content.textContent) return;
    replace(this.measuredContent, content);
  }

  private drawPlans(before: Iteration | null, after: Iteration,
      timeline: Timeline): Child[] {
    const parts: Child[] = [h('div', { class: 'legend' },
        timeline.clocks.legend([after], 'as planned'), shapes([after]))];
    if (before === null) {
      parts.push(h('p', { class: 'soft' }, 'Maximum clocks are not drawn: this page does not ' +
          'know the order of this schedule well enough.'));
    } else {
      parts.push(h('h3', {}, caption('At maximum clocks (modelled)', before)),
          timeline.add(before, summary('At maximum clocks', before), 'before'));
    }
    parts.push(h('h3', {}, caption('As planned (predicted)', after)),
        timeline.add(after, summary('As planned', after), 'after'),
        rankTable('timeline-table', 'The planned iteration as a table',
            'Each rank of the pipeline, as planned', after));
    return parts;
  }
}
