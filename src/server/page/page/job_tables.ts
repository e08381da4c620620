// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The sections of a job's page that are words and tables. Each gives null where it has nothing.

import { Child, h, table } from './dom';
import { age, between, count, dateTime, joules, percent, plural, seconds, signedPercent, times,
  unknown } from 'charts/format';
import type { ClockLatency, Condition, Estimate, Job, Straggler, Transfer } from './types';

export interface Section {
  key: string;
  title: string;
  content: (job: Job) => Child[] | null;
}

// Sentences that an operator must read first.
export function warnings(job: Job): string[] {
  const found = job.notes.map((note) => `${note.severity}: ${note.text}.`);
  if (job.state === 'failed') found.unshift(`The job failed: ${job.reason}.`);
  if (job.state === 'running' && job.following === 0) {
    found.push('No rank follows the plan, so it saves nothing.');
  }
  // Each kind of trouble once; the table of clients names the ranks.
  const kinds = [...new Set(job.clients.troubled.map((each) => each.error))];
  if (kinds.length > 0) {
    const others = kinds.length - 1;
    const more = others > 0 ? ` (and ${plural(others, 'other trouble')}; see Clients)` : '';
    found.push(`${plural(job.clients.complaining, 'rank')} in trouble: ${kinds[0] ?? ''}${more}.`);
  }
  if (job.detection.iteration_cause !== '') found.push(`${job.detection.iteration_cause}.`);
  if (job.savings.shadow_ranks > 0) {
    found.push(`${plural(job.savings.shadow_ranks, 'rank')} in shadow mode: no clock is set.`);
  }
  return found;
}

function target(straggler: Straggler): string {
  if (straggler.rank !== undefined) return `rank ${straggler.rank}`;
  if (straggler.pipeline !== undefined) return `pipeline ${straggler.pipeline}`;
  return `node ${straggler.node ?? unknown}`;
}

function stragglers(job: Job): Child[] {
  const parts: Child[] = [];
  if (job.stragglers.length > 0) {
    parts.push(table('In effect, or announced', [
      { head: 'Which', cell: target },
      { head: 'Slow by', cell: (each) => (each.factor === undefined
        ? `${seconds(each.delay_s)} an iteration` : times(each.factor)) },
      { head: 'Until', cell: (each) => (each.expires_at === null ? 'somebody clears it'
        : `in ${age(each.expires_at - Date.now() / 1000)}`) },
    ], job.stragglers.slice(0, 100)));
  } else {
    parts.push(h('p', {}, 'None now.'));
  }
  const findings = [...job.detection.findings].reverse();
  if (findings.length > 0) {
    parts.push(table('What the server found, the newest first (measured)', [
      { head: 'Iteration', cell: (each) => count(each.iteration) },
      { head: 'What', cell: (each) => each.sentence },
    ], findings));
  }
  return parts;
}

function estimate(value: Estimate | null): string {
  return value === null ? unknown
    : `${percent(value.mean)} (${between(value.least, value.most)})`;
}

function savings(job: Job): Child[] {
  const { predicted, comparison, measured } = job.savings;
  const parts: Child[] = [];
  if (predicted !== null) {
    parts.push(h('p', {}, `Predicted: ${percent(predicted.saving_percent)} of the energy, ` +
        `${signedPercent(predicted.time_percent)} time, against maximum clocks.`,
    predicted.default_clocks === undefined ? null
      : ` Against default clocks: ${percent(predicted.default_clocks.saving_percent)} and ` +
        `${signedPercent(predicted.default_clocks.slowdown_percent)} time.`));
  }
  parts.push(h('p', {}, comparison === null
    ? 'No iterations run at default clocks, so nothing is measured. To begin: '
    : `Of every ${comparison.every} iterations ${comparison.iterations} run at default clocks.`,
  comparison === null ? h('code', {}, `perseus job compare ${job.id}`) : null));
  if (measured.length > 0) {
    parts.push(table('Measured against default clocks, with 95 % intervals', [
      { head: 'Plan', cell: (each) => String(each.plan_version) },
      { head: 'Saved', isNumber: true, cell: (each) => estimate(each.saving_percent) },
      { head: 'Time', isNumber: true, cell: (each) => estimate(each.time_percent) },
      { head: 'Pairs', isNumber: true, cell: (each) => count(each.pairs) },
      { head: 'J a GPU with', isNumber: true, cell: (each) => joules(each.with_plan_j_per_gpu) },
      { head: 'J a GPU without', isNumber: true,
        cell: (each) => joules(each.without_plan_j_per_gpu) },
      { head: 'As predicted', cell: (each) => (each.agrees === null ? 'not known yet'
        : each.agrees ? 'yes, within its interval' : 'no') },
    ], [...measured].reverse()));
  }
  return parts;
}

const conditionNames: Record<string, string> = {
  noise: 'Noise of a computation', rank_noise: 'Noise of a rank',
  noise_correlation: 'Correlation of noise', switch_latency: 'Time that a clock call takes',
  switch_latency_spread: 'Spread of that time',
  switch_stall: 'Pause of a rank when its clock changes',
  rare_noise: 'Rare computations take longer by', rare_noise_share: 'Share of these',
};

function conditionText(name: string, value: number | null): string {
  if (value === null) return unknown;
  if (name.startsWith('switch')) return seconds(value);
  return name === 'noise_correlation' ? value.toFixed(2) : percent(100 * value);
}

function conditions(job: Job): Child[] | null {
  const { source, from, figures, transfers, changing, iterations, calls } = job.conditions;
  const latencies = job.conditions.latency_at;
  if (figures.length === 0) return null;
  const words = {
    assumed: 'assumed: the ranks have not told enough yet',
    measured: 'measured by the ranks, but for what is still assumed',
    given: 'given by the job\u2019s settings',
    none: 'none: clocks come at once, and there is no noise',
    library: from === null ? 'measured by an earlier job'
      : `measured by job ${from.job} on ${dateTime(from.at)}, with the same profile`,
  };
  const planned = (each: Condition) =>
    `${conditionText(each.name, each.planned)}${each.assumed ? ' (assumed)'
      : each.library ? ' (by that job)' : ''}`;
  const measured = (each: Condition) => (each.measured === null ? unknown
    : `${conditionText(each.name, each.measured)} \u00b1 ` +
      conditionText(each.name, each.measured_std));
  return [
    h('p', {}, `The plans are made for these: ${words[source]}.` +
        `${changing ? ' Plans for the measured values are being made.' : ''} ` +
        `Measured in ${plural(iterations, 'iteration')} and ${plural(calls, 'clock call')}.`),
    table('What plans allow for, and what ranks measured', [
      { head: 'Condition', cell: (each) => conditionNames[each.name] ?? each.name },
      { head: 'Planned for', isNumber: true, cell: planned },
      { head: 'Measured', isNumber: true, cell: measured },
      { head: 'Ranks', isNumber: true, cell: (each) => count(each.ranks) },
    ], figures),
    ...(latencies.length === 0 ? [] : [table('Clocks whose calls take another time', [
      { head: 'Clock', isNumber: true, cell: (each: ClockLatency) => `${each.clock_mhz} MHz` },
      { head: 'Planned for', isNumber: true, cell: (each) => seconds(each.planned_s) },
      { head: 'Measured', isNumber: true, cell: (each) => (each.measured_s === null ? unknown
        : `${seconds(each.measured_s)} \u00b1 ${seconds(each.measured_s_std)}`) },
      { head: 'Ranks', isNumber: true, cell: (each) => count(each.ranks) },
    ], latencies)]),
    ...(transfers.length === 0 ? [] : [table('Transfers between stages, one way', [
      { head: 'Between', cell: (each: Transfer) => `${each.boundary} and ${each.boundary + 1}` },
      { head: 'Planned for', isNumber: true, cell: (each) => seconds(each.planned_s) },
      { head: 'Measured', isNumber: true, cell: (each) => (each.measured_s === null ? unknown
        : `${seconds(each.measured_s)} \u00b1 ${seconds(each.measured_s_std)}`) },
      { head: 'Iterations', isNumber: true, cell: (each) => count(each.iterations) },
    ], transfers)]),
  ];
}

function profile(job: Job): Child[] {
  const { sweep, throttled, notes, again } = job.profiling;
  const parts: Child[] = [h('p', {}, `Source: ${job.profile_source ?? 'none yet'}.` +
      `${again ? ' The ranks measure anew, under the plans of the old profile.' : ''}`)];
  if (job.state === 'profiling' || again) {
    parts.push(h('p', {}, h('label', { for: 'measured' },
        `${count(job.ranks_measured)} of ${count(job.ranks_registered)} ranks have measured `),
    h('progress', { id: 'measured', max: Math.max(1, job.ranks_registered),
      value: job.ranks_measured })));
  }
  if (job.missing_ranks !== undefined) {
    parts.push(h('p', {}, `Not joined yet: rank ${job.missing_ranks.join(', ')}` +
        `${job.world_size - job.ranks_registered > job.missing_ranks.length ? ', \u2026' : ''}.`));
  }
  if (sweep !== null) {
    parts.push(h('p', {}, `The sweep took ${plural(sweep.iterations, 'iteration')}, ` +
        `${seconds(sweep.seconds)} and ${joules(sweep.joules)} (measured).`));
  }
  if (throttled.length > 0) {
    parts.push(h('p', {}, `${plural(throttled.length, 'row')} measured while GPUs slowed ` +
        'themselves down.'));
  }
  const lines = [...notes.map((each) => `${each.note} (${plural(each.ranks, 'rank')})`),
    ...job.drift.map((each) => each.sentence)];
  if (lines.length > 0) parts.push(h('ul', {}, ...lines.map((line) => h('li', {}, line))));
  return parts;
}

function clients(job: Job): Child[] | null {
  const { states, counts, troubled, complaining } = job.clients;
  if (Object.keys(states).length === 0) return null;
  const words = Object.entries(states).map(([state, ranks]) => `${state} ${count(ranks)}`);
  const known: [string, string][] = [['calls', 'clock calls'], ['early', 'early'],
    ['on_time', 'on time'], ['late', 'late'], ['missed', 'missed'], ['refused', 'refused'],
    ['order_mismatches', 'out of order'], ['lost_events', 'events lost']];
  const parts: Child[] = [
    h('p', {}, `Ranks by state, as they report: ${words.join(', ')}.`),
    h('p', {}, 'Clocks, sums since the clients began (measured): ' + known.map(
        ([name, text]) => `${count(counts[name] ?? 0)} ${text}`).join(', ') + '.')];
  if (troubled.length > 0) {
    parts.push(table(`${plural(complaining, 'rank')} in trouble`, [
      { head: 'Rank', cell: (each) => String(each.rank) },
      { head: 'Trouble', cell: (each) => each.error },
    ], troubled));
  }
  return parts;
}

export const sections: Section[] = [
  { key: 'stragglers', title: 'Stragglers', content: stragglers },
  { key: 'savings', title: 'Saved, measured', content: savings },
  { key: 'conditions', title: 'Conditions', content: conditions },
  { key: 'profile', title: 'Profile', content: profile },
  { key: 'clients', title: 'Clients', content: clients },
];
