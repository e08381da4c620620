// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How a job's plan and state are said, in the table and on the job's own page.

import type { Job, JobSummary, State } from './types';

type AnyJob = JobSummary | Job;

export const states: State[] =
    ['registering', 'profiling', 'characterizing', 'running', 'failed', 'finished'];

export function planStage(job: AnyJob): string {
  if (job.plan === null || job.plan.iteration_time_s === undefined) return 'none';
  if (job.refined) return 'refined';
  return job.progress > 0 ? `refining, ${Math.round(100 * job.progress)} %` : 'first';
}

// Of the whole job, stragglers included.
export function predictedTime(job: AnyJob): number | null {
  return job.plan?.whole_job?.iteration_time_s ?? job.plan?.iteration_time_s ?? null;
}

// null also where the notes on its profile say that no figure can be believed.
export function predictedSaving(job: AnyJob): number | null {
  if (!job.believable) return null;
  return job.plan?.whole_job?.saving_percent ?? job.plan?.saving_percent ?? null;
}

export function hasEnded(job: AnyJob): boolean {
  return job.ended === true || job.state === 'finished';
}

export function reasonOf(job: AnyJob): string {
  if (job.ended === true && job.state === 'running') return 'its trainers have ended';
  if (job.reason !== '') return job.reason;
  if (job.state === 'registering') {
    return `${job.ranks_registered} of ${job.world_size} ranks joined`;
  }
  if (job.state === 'profiling') {
    return `${job.ranks_measured} of ${job.ranks_registered} ranks have measured`;
  }
  if (job.state === 'running' && job.following === 0) return 'no rank follows the plan';
  return job.believable ? '' : 'its profile is implausible';
}

export function nameOf(job: { name: string; id: string }): string {
  return job.name === '' ? job.id : job.name;
}
