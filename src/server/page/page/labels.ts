// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Labels of a job as chips, each a link to the jobs that have it, too.

import { format } from './address';
import { h } from './dom';
import type { Job, JobSummary } from './types';

// As the address and the API's filter have it: no name and no value holds a colon or a comma.
export function labelsOf(job: JobSummary | Job): string[] {
  return Object.entries(job.labels ?? {}).map(([name, value]) => `${name}:${value}`);
}

export function chips(labels: string[]): HTMLElement[] {
  return labels.map((label) => h('a', {
    class: 'chip', href: format({ view: 'jobs', id: '', query: new URLSearchParams({ label }) }),
    title: `Jobs with the label ${label}`,
  }, label.replace(':', '=')));
}

// Whether these labels have all that are wanted: "team:vision,project:x". Without a value, the
// beginning of a name will do.
export function haveLabels(labels: string[], wanted: string): boolean {
  return wanted.split(',').every((label) => (label.includes(':') ? labels.includes(label)
    : labels.some((each) => each.startsWith(label)) || label === ''));
}
