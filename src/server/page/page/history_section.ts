// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A job's last hour or day: iteration time, power, and the savings of its plans.

import { LineChart } from 'charts/charts';
import { parse, put, remember } from './address';
import { ApiError, get, jobPath } from './api';
import { behind, h, replace, table } from './dom';
import { clockTime, count, percent, seconds, unknown, watts } from 'charts/format';
import type { History, HistoryRow } from './types';

// Of a day there are 1,440 minutes to send.
const restSeconds = { hour: 30, day: 300 };
const emptyRestSeconds = 5;
const lengths = { hour: 3600, day: 86400 };
const mostRows = 24;  // Of the table.

// As a share of the use at maximum clocks.
function saving(used: number | null, saved: number | null): number | null {
  if (used === null || saved === null || used + saved <= 0) return null;
  return 100 * saved / (used + saved);
}
const predicted = (row: HistoryRow) => saving(row.energy_j, row.predicted_saved_j);
const measured = (row: HistoryRow) => saving(row.compared_energy_j, row.measured_saved_j);
const percentOf = (value: number) => percent(value);

interface Figure {
  name: string;
  of: (row: HistoryRow) => number | null;
  text: (value: number) => string;
}
const figures: Figure[] = [
  { name: 'Iteration time (measured, the slowest rank of each)',
    of: (row) => row.iteration_time_s, text: seconds },
  { name: 'Power of all GPUs (measured)', of: (row) => row.power_w, text: watts },
  { name: 'Energy saved (predicted by the plans)', of: predicted, text: percentOf },
  { name: 'Energy saved (measured, where plans were compared)', of: measured, text: percentOf },
];

interface Sample {
  start: number;  // Of its span, seconds since 1970.
  value: number | null;
}

interface Span {
  from: number;
  to: number;
  each: number;  // Seconds from one sample to the next.
}

function summaryOf({ name, text }: Figure, samples: Sample[]): string {
  const values = samples.map((sample) => sample.value)
      .filter((value): value is number => value !== null);
  if (values.length === 0) return `${name}: ${unknown}.`;
  return `${name}: ${text(Math.min(...values))} to ${text(Math.max(...values))}, last ` +
      `${text(values[values.length - 1]!)}.`;
}

// A line that breaks where no rank reported; null: no sample has a value.
function chartOf(figure: Figure, samples: Sample[], span: Span): HTMLElement | null {
  // In minutes or hours of this place, so that ticks are whole ones.
  const unit = span.to - span.from > 7200 ? 3600 : 60;
  const shift = 60 * new Date(span.to * 1000).getTimezoneOffset();
  const x = (at: number) => (at - shift) / unit;
  const runs: [number, number][][] = [];
  let last = Number.NEGATIVE_INFINITY;
  for (const { start, value } of samples) {
    if (value === null) continue;
    if (start - last > 1.5 * span.each) runs.push([]);
    runs[runs.length - 1]!.push([x(start + span.each / 2), value]);
    last = start;
  }
  if (runs.length === 0) return null;
  return new LineChart({
    title: figure.name, summary: summaryOf(figure, samples), yName: figure.name, height: 170,
    rows: 3, ends: [x(span.from), x(span.to)], series: [{ name: figure.name, css: 'c0', runs }],
    x: (at) => clockTime(at * unit + shift).slice(0, 5), y: figure.text,
  }).element;
}

export class HistorySection {
  readonly element = h('section', { 'aria-labelledby': 'history-head' });
  private readonly span = h('select', { id: 'history-span' },
      h('option', { value: 'hour' }, 'the last hour'),
      h('option', { value: 'day' }, 'the last day'));
  private readonly content = h('div', { id: 'history' });
  private readAt = 0;

  constructor(private readonly id: string, private readonly signal: AbortSignal) {
    const wanted = parse(location.hash).query.get('span');
    this.span.value = wanted === 'day' ? 'day' : 'hour';
    this.element.append(h('h2', { id: 'history-head' }, 'History'),
        h('p', {}, h('label', { for: 'history-span' }, 'Time '), this.span), this.content);
    this.span.addEventListener('change', () => {
      remember((query) => put(query, 'span', this.span.value, 'hour'));
      this.readAt = 0;
      this.look().catch(() => undefined);  // The next look of the page says what is wrong.
    });
  }

  // Spans are minutes: there is nothing new each time that the job is looked at.
  async look(): Promise<void> {
    const now = Date.now() / 1000;
    const wanted = this.span.value === 'day' ? 'day' : 'hour';
    if (now - this.readAt < restSeconds[wanted]) return;
    this.readAt = now;
    const from = Math.floor(now - lengths[wanted]);
    try {
      const history = await get<History>(
          `${jobPath(this.id)}/history?resolution=minute&since=${from}`, this.signal);
      if (wanted === this.span.value) {
        this.draw(history.rows, { from, to: now, each: history.span_s });
        // Looks again soon while there are no rows.
        if (history.rows.length === 0) this.readAt -= restSeconds[wanted] - emptyRestSeconds;
      }
    } catch (error) {
      this.readAt = 0;
      // The rest of the page goes on: the store may not answer, or the server be older. Without a
      // right, nothing does.
      if (error instanceof ApiError && error.status === 401) throw error;
    }
  }

  private draw(rows: HistoryRow[], span: Span): void {
    if (rows.length === 0) {
      return replace(this.content,
          h('p', { class: 'soft' }, 'No rank reported an iteration in this time.'));
    }
    const drawn = figures.map((figure) => {
      const samples: Sample[] = rows.map((row) => ({ start: row.start, value: figure.of(row) }));
      return chartOf(figure, samples, span) ??
          h('p', { class: 'soft' }, summaryOf(figure, samples));
    });
    const measured = rows.reduce((sum, row) => sum + row.iterations * row.measured_share, 0);
    const all = rows.reduce((sum, row) => sum + row.iterations, 0);
    replace(this.content, h('div', {}, ...drawn),
    h('p', { class: 'soft' }, `${count(all)} iterations. The energy of ` +
        `${percent(100 * measured / all)} of them was reported; power and savings are of these.`),
    behind('history-table', 'The history as a table', this.listed(rows)));
  }

  private listed(rows: HistoryRow[]): HTMLElement {
    const some = rows.slice(-mostRows);
    const known = (value: number | null, text: (value: number) => string) =>
      (value === null ? unknown : text(value));
    return table(`The last ${some.length} minutes with iterations`, [
      { head: 'Minute', cell: (row) => clockTime(row.start).slice(0, 5) },
      { head: 'Iterations', cell: (row) => count(row.iterations), isNumber: true },
      { head: 'Iteration time', cell: (row) => seconds(row.iteration_time_s), isNumber: true },
      { head: 'Energy reported', cell: (row) => percent(100 * row.measured_share),
        isNumber: true },
      { head: 'Power', cell: (row) => watts(row.power_w), isNumber: true },
      { head: 'Saved (predicted)', cell: (row) => known(predicted(row), percentOf), isNumber: true },
      { head: 'Saved (measured)', cell: (row) => known(measured(row), percentOf), isNumber: true },
    ], some);
  }
}
