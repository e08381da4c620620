// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The table of jobs: its columns, filter, order and pages. Rows keep their elements, so that the
// focus stays while figures change.

import { jobLink } from './address';
import { Child, h, setText } from './dom';
import { between, count, percent, seconds, unknown, watts } from 'charts/format';
import { hasEnded, nameOf, planStage, predictedSaving, predictedTime, reasonOf } from './plan_words';
import { chips, labelsOf } from './labels';
import type { JobSummary } from './types';

export interface JobColumn {
  key: string;
  head: string;
  about: string;
  isNumber?: boolean;
  order: (job: JobSummary) => number | string;
  text: (job: JobSummary) => string;
  detail?: (job: JobSummary) => string;
  isBad?: (job: JobSummary) => boolean;
}

const missing = Number.NEGATIVE_INFINITY;

export const columns: JobColumn[] = [
  { key: 'name', head: 'Job', about: 'Name and id', order: (job) => nameOf(job).toLowerCase(),
    text: nameOf, detail: (job) => (job.name === '' ? '' : job.id) },
  { key: 'state', head: 'State', about: 'State, and why', order: (job) => job.state,
    text: (job) => job.state, detail: reasonOf, isBad: (job) => job.state === 'failed' },
  { key: 'ranks', head: 'Ranks', about: 'Registered of all; following the plan', isNumber: true,
    order: (job) => job.world_size,
    text: (job) => (job.ranks_registered === job.world_size
      ? count(job.world_size) : `${count(job.ranks_registered)} of ${count(job.world_size)}`),
    detail: (job) => (job.following === undefined ? '' : `${count(job.following)} following`) },
  { key: 'plan', head: 'Plan', about: 'Whether a better plan is still to come', order: planStage,
    text: planStage, detail: (job) => (job.plan === null ? '' : `version ${job.plan.version}`) },
  { key: 'time', head: 'Iteration', about: 'Measured lately; predicted by the plan', isNumber: true,
    order: (job) => job.measured?.iteration_time_s ?? predictedTime(job) ?? missing,
    text: (job) => (hasEnded(job) ? unknown : seconds(job.measured?.iteration_time_s)),
    detail: (job) => `predicted ${seconds(predictedTime(job))}` },
  { key: 'power', head: 'Power', about: 'Measured lately, all GPUs together', isNumber: true,
    order: (job) => (hasEnded(job) ? missing : job.measured?.power_w ?? missing),
    text: (job) => (hasEnded(job) ? unknown : watts(job.measured?.power_w)) },
  { key: 'saved', head: 'Saved', isNumber: true,
    about: 'Measured against default clocks, with its 95 % interval; predicted against maximum clocks',
    order: (job) => job.measured_saving?.mean ?? predictedSaving(job) ?? missing,
    text: (job) => (job.measured_saving === null || job.measured_saving === undefined ? unknown
      : `${percent(job.measured_saving.mean)} (${between(job.measured_saving.least, job.measured_saving.most)})`),
    detail: (job) => `predicted ${percent(predictedSaving(job))}` },
  { key: 'stragglers', head: 'Stragglers', about: 'Slow pipelines, now or announced',
    isNumber: true, order: (job) => job.slow_pipelines, text: (job) => count(job.slow_pipelines),
    isBad: (job) => job.slow_pipelines > 0 },
  { key: 'troubles', head: 'Troubles', about: 'Ranks that report an error', isNumber: true,
    order: (job) => job.complaining, text: (job) => count(job.complaining),
    isBad: (job) => job.complaining > 0 },
];

export function columnOf(key: string): JobColumn {
  return columns.find((column) => column.key === key) ?? columns[0]!;
}

export function sorted(jobs: JobSummary[], key: string, descending: boolean): JobSummary[] {
  const order = columnOf(key).order;
  const sign = descending ? -1 : 1;
  return jobs.map((job) => ({ job, by: order(job) })).sort((a, b) => {
    if (a.by !== b.by) return a.by < b.by ? -sign : sign;
    if (a.job.created_at !== b.job.created_at) return b.job.created_at - a.job.created_at;
    return a.job.id < b.job.id ? -1 : 1;
  }).map(({ job }) => job);
}

export class JobRow {
  readonly element: HTMLTableRowElement;
  private readonly texts: HTMLElement[] = [];
  private readonly details: HTMLElement[] = [];
  private readonly labels = h('span', { class: 'chips' });
  private shownLabels = '';

  constructor(job: JobSummary) {
    this.element = h('tr', {}, ...columns.map((column, i) => this.cell(column, i, job)));
    this.update(job);
  }

  private cell(column: JobColumn, place: number, job: JobSummary): Child {
    const text = place === 0 ? h('a', { href: jobLink(job.id) }) : h('span');
    const detail = h('span', { class: 'detail' });
    this.texts.push(text);
    this.details.push(detail);
    return place === 0 ? h('th', { scope: 'row' }, text, detail, this.labels)
      : h('td', { class: column.isNumber === true ? 'number' : null }, text, detail);
  }

  update(job: JobSummary): void {
    const labels = labelsOf(job);
    if (labels.join() !== this.shownLabels) {
      this.shownLabels = labels.join();
      this.labels.replaceChildren(...chips(labels));
    }
    columns.forEach((column, i) => {
      setText(this.texts[i]!, column.text(job));
      setText(this.details[i]!, column.detail?.(job) ?? '');
      this.texts[i]!.classList.toggle('bad', column.isBad?.(job) ?? false);
    });
  }
}
