// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The figures at the head of a job's page; each says where it comes from.

import { Child, h } from './dom';
import { age, between, clockTime, count, percent, plural, seconds, signedPercent, unknown, watts }
  from 'charts/format';
import { hasEnded, planStage, predictedSaving, predictedTime, reasonOf } from './plan_words';
import type { Job } from './types';

type Source = 'measured' | 'predicted' | 'as told';

interface Figure {
  name: string;
  value: string;
  source: Source;
  details: string[];
}

function timeFigures(job: Job): Figure[] {
  const measured = job.measured;
  const ended = hasEnded(job);
  const predicted = predictedTime(job);
  const baseline = job.frontier?.baseline_s;
  const straggling = job.plan?.whole_job?.straggling === true;
  return [
    { name: 'Iteration time now', value: ended ? unknown : seconds(measured?.iteration_time_s),
      source: 'measured', details: measured === null || measured === undefined
        ? ['no rank reported an iteration to this server yet']
        : ended ? [`the job has ended; at last ${seconds(measured.iteration_time_s)}`]
        : [`median of the last ${measured.iterations}, the slowest rank of each`,
          `the last one ${age(Date.now() / 1000 - measured.at)} ago`] },
    { name: 'Iteration time planned', value: seconds(predicted), source: 'predicted',
      details: baseline === undefined || predicted === null ? []
        : [`${signedPercent(100 * (predicted / baseline - 1))} against ${seconds(baseline)} at ` +
           `maximum clocks${straggling ? ', no straggler' : ''}`] },
    { name: 'Power now', value: ended ? unknown : watts(measured?.power_w), source: 'measured',
      details: measured?.power_w === null ? ['not all ranks report their energy']
        : [ended ? `the job has ended; at last ${watts(measured?.power_w)}`
          : 'all GPUs together'] },
  ];
}

function savingFigures(job: Job): Figure[] {
  const interval = job.plan?.saving_interval;
  const default_clocks = job.plan?.whole_job?.straggling === true ? undefined : job.plan?.default_clocks;
  const measured = job.measured_saving;
  return [
    { name: 'Saved', value: percent(measured?.mean), source: 'measured',
      details: measured === null || measured === undefined
        ? ['n/a until some iterations run at default clocks: perseus job compare']
        : [`95 % interval ${between(measured.least, measured.most)}`,
          ...(measured.plan_version === job.plan?.version ? []
            : [`of plan ${measured.plan_version}, an older one`])] },
    { name: 'Saving planned', value: percent(predictedSaving(job)), source: 'predicted',
      details: job.believable
        ? [interval === undefined ? 'against maximum clocks'
          : `${between(interval.least_percent, interval.most_percent)}, as sure as its profile`,
        ...(default_clocks === undefined ? []
          : [`against default clocks: ${percent(default_clocks.saving_percent)}, ` +
             `${signedPercent(default_clocks.slowdown_percent)} time`])]
        : ['n/a: the notes on its profile say why'] },
  ];
}

function lifeFigures(job: Job): Figure[] {
  const reason = reasonOf(job);
  const plan = job.plan;
  return [
    { name: 'State', value: job.state, source: 'as told', details: reason === '' ? [] : [reason] },
    { name: 'Ranks following',
      value: job.following === undefined ? unknown : count(job.following), source: 'as told',
      details: [`${count(job.ranks_registered)} of ${count(job.world_size)} joined`] },
    { name: 'Plan', value: planStage(job), source: 'as told', details: plan === null ? []
      : [`version ${plan.version} since ${clockTime(plan.at)}, target ${job.at}`,
        plan.reason === 'straggler' ? 'it allows for a straggler' : ''] },
    { name: 'Stragglers', value: count(job.slow_pipelines), source: 'as told',
      details: [
        job.stragglers.length === job.slow_pipelines ? ''
          : `slow pipelines, reported ${count(job.stragglers.length)} times`,
        job.detection.mode === 'off' ? 'the server does not look for them'
          : job.detection.together !== '' ? job.detection.together
            : `${plural(job.detection.watched_ranks, 'rank')} watched`] },
  ];
}

export function figures(job: Job): Child {
  const all = [...lifeFigures(job), ...timeFigures(job), ...savingFigures(job)];
  return h('dl', { class: 'figures' }, ...all.map((figure) => h('div', {
    'data-figure': figure.name,
  },
  h('dt', {}, figure.name),
  h('dd', {}, h('span', { class: 'value' }, figure.value), ' ',
      figure.source === 'as told' || figure.value === unknown ? null
        : h('span', { class: 'source' }, figure.source),
      ...figure.details.filter((text) => text !== '').map(
          (text) => h('span', { class: 'detail' }, text))))));
}
