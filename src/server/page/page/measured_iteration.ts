// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The last iteration of pipeline 0 as its ranks timed it. The job says when there is a new one, so
// that nothing is asked for twice.

import type { Iteration } from 'charts/timeline';
import { get, jobPath } from './api';
import { Child, h, setText } from './dom';
import { age, plural, seconds } from 'charts/format';
import { asGiven } from './replay';
import type { Job, Timeline, TimelineHead } from './types';

const restBetweenReads = 10_000;

const keyOf = (head: TimelineHead) => `${head.iteration} ${head.at}`;

export class MeasuredIteration {
  iteration: Iteration | null = null;
  timeline: Timeline | null = null;
  private readonly when = h('span');
  private isReading = false;
  private readAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly signal: AbortSignal, private readonly onNew: () => void) {}

  update(job: Job): void {
    this.drawAge(job);
    const head = job.timeline;
    const isKnown = head === null
      ? this.timeline === null : this.timeline !== null && keyOf(head) === keyOf(this.timeline);
    if (isKnown || this.isReading) return;
    if (head === null) return this.take(null, job);
    const now = Date.now();
    if (now - this.readAt >= restBetweenReads) {
      this.readAt = now;
      void this.read(job);
    }
  }

  // Describes the picture.
  words(): Child[] {
    const timeline = this.timeline;
    if (timeline === null) return [];
    const apart = timeline.ranks.filter((rank) => rank.offset_s === null).map((rank) => rank.rank);
    const order = apart.length > 0
      ? `Stages count from when their own iteration began, and stage ${apart.join(', ')} may be ` +
        'shifted against the first: nothing goes both ways between them.'
      : `Hosts\u2019 clocks differ: stages are lined up by what goes from one to the next and ` +
        `back, to within \u00b1${seconds(timeline.error_s)}.`;
    return [
      h('p', { class: 'soft', id: 'measured-words' }, this.when,
          ' Times are the ranks\u2019 own; colours are the clocks that the plan asks for. ',
          order),
    ];
  }

  // Says why there is no picture, and names the remedy.
  static empty(job: Job): Child[] {
    const all = 'all ranks of pipeline 0 must follow the plan (not in shadow mode), report to ' +
        'this server, and have a client of its version. ';
    const why = job.ended === true
      ? 'The job has ended, and this server has heard no such iteration since it began.'
      : job.following === undefined || job.following === 0
        ? 'No rank is known to follow the plan yet.'
        : `${plural(job.following, 'rank follows', 'ranks follow')} the plan: one comes within ` +
          'ten iterations.';
    return [
      h('p', { id: 'measured-empty' }, 'No iteration was measured yet. Ranks send the times of ' +
          `every tenth one. ${why} `, ...(job.ended === true ? [] : [`If none comes: ${all}`,
        h('code', {}, `perseus job show ${job.id}`), ' says what they do.'])),
    ];
  }

  private drawAge(job: Job): void {
    const timeline = this.timeline;
    if (timeline === null) return;
    const version = job.plan?.version;
    const plan = `plan ${timeline.plan_version}` +
        (version === timeline.plan_version ? '' : ', which is not in force now');
    setText(this.when, `Iteration ${timeline.iteration} of pipeline 0 with ${plan}, ` +
        `${age(Date.now() / 1000 - timeline.at)} ago.`);
  }

  private take(timeline: Timeline | null, job: Job): void {
    this.timeline = timeline;
    this.iteration = timeline === null ? null : asGiven(timeline);
    this.drawAge(job);
    this.onNew();
  }

  private async read(job: Job): Promise<void> {
    this.isReading = true;
    try {
      this.take(await get<Timeline>(`${jobPath(job.id)}/timeline`, this.signal), job);
    } catch {
      // The next look at the job asks again; it shows errors of the connection.
    } finally {
      this.isReading = false;
    }
  }
}
