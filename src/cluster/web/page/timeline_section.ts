// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// An iteration before and after: at maximum clocks, and as planned.

import { parse, put, remember } from './address';
import { ApiError, get, jobPath } from './api';
import { behind, Child, h, replace, table } from './dom';
import { percent, seconds } from './format';
import { atMaximumClocks, Iteration, planned } from './replay';
import { ClockScale, drawIteration } from './timeline';
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

function caption(title: string, iteration: Iteration): string {
  return `${title}: ${seconds(iteration.seconds)}`;
}

export class TimelineSection {
  readonly element = h('section', { 'aria-labelledby': 'timeline-head', hidden: true });
  private readonly content = h('div');
  private readonly select = h('select', { id: 'pipeline' });
  private version = -1;
  private pipeline = 0;
  private newest = 0;  // What was asked for last; older answers may come later.

  constructor(private readonly signal: AbortSignal) {
    this.pipeline = Number(parse(location.hash).query.get('pipeline') ?? '0') || 0;
    this.element.append(h('h2', { id: 'timeline-head' }, 'An iteration'),
        h('p', {}, h('label', { for: 'pipeline' }, 'Pipeline '), this.select), this.content);
  }

  update(job: Job): void {
    const version = job.plan?.iteration_time_s === undefined ? 0 : job.plan.version;
    this.element.hidden = version === 0;
    if (version === 0 || version === this.version) return;
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
      return replace(this.content, h('p', {}, 'An iteration of this job has about ' +
          `${blocks} computations, too many to draw here. `,
      h('code', {}, `perseus job plan ${job.id}`), ' writes the plan to a file, of which ',
      h('code', {}, 'perseus report'), ' makes a page.'));
    }
    this.newest += 1;
    const asked = this.newest;
    try {
      const plan = await get<PlanFile>(`${jobPath(job.id)}/plan.json?pipeline=${this.pipeline}`,
          this.signal);
      if (asked === this.newest) replace(this.content, ...this.draw(plan));
    } catch (error) {
      if (this.signal.aborted || asked !== this.newest) return;
      this.version = -1;
      const isAtMaximum = error instanceof ApiError && error.status === 409;
      replace(this.content, h('p', {}, isAtMaximum
        ? `Pipeline ${this.pipeline} runs at maximum clocks: it straggles, and no plan helps it.`
        : `The plan cannot be read: ${error instanceof Error ? error.message : ''}`));
    }
  }

  private draw(plan: PlanFile): Child[] {
    const after = planned(plan);
    const before = atMaximumClocks(plan);
    const both = before === null ? [after] : [before, after];
    const clocks = ClockScale.of(both);
    const longest = Math.max(...both.map((iteration) => iteration.seconds));
    const parts: Child[] = [clocks.legend()];
    if (before === null) {
      parts.push(h('p', { class: 'soft' }, 'Maximum clocks are not drawn: this page does not know ' +
          'the order of this schedule well enough.'));
    } else {
      parts.push(h('h3', {}, caption('At maximum clocks (modelled)', before)),
          drawIteration(before, longest, clocks, summary('At maximum clocks', before)));
    }
    parts.push(h('h3', {}, caption('As planned (promised)', after)),
        drawIteration(after, longest, clocks, summary('As planned', after)),
        behind('timeline-table', 'The planned iteration as a table', table(
            'Each rank of the pipeline, as planned', [
              { head: 'Stage', cell: (row) => String(row.rank) },
              { head: 'Clocks', cell: (row) => row.clocks },
              { head: 'Computes', cell: (row) => seconds(row.busy), isNumber: true },
              { head: 'Waits', cell: (row) => percent(row.share), isNumber: true },
            ], rankRows(after))));
    return parts;
  }
}
