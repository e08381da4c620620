// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The line that says whether the page is up to date, and how old it is.

import { ApiError } from './api';
import { setText } from './dom';
import { age } from 'charts/format';

// Either may be lost alone: a proxy may let answers pass, and no streams.
export type Source = 'answers' | 'events';

const lostAt = new Map<Source, number>();
let heardAt = 0;
let reason = '';

export function heard(source: Source): void {
  lostAt.delete(source);
  heardAt = Date.now();
  show();
}

export function lost(source: Source, error: unknown): void {
  if (error instanceof ApiError && error.status === 401) return;
  if (!lostAt.has(source)) lostAt.set(source, Date.now());
  reason = error instanceof Error ? error.message : '';
  show();
}

// Another view has other connections.
export function forget(): void {
  lostAt.clear();
}

function show(): void {
  const line = document.getElementById('connection');
  if (line === null) return;
  line.classList.toggle('lost', lostAt.size > 0);
  if (lostAt.size === 0) return setText(line, heardAt === 0 ? '' : 'Live');
  const old = heardAt === 0 ? '' : ` What you see is ${age((Date.now() - heardAt) / 1000)} old.`;
  const since = age((Date.now() - Math.min(...lostAt.values())) / 1000);
  const what = lostAt.has('answers') ? 'connection' : 'events';
  setText(line, `No ${what} for ${since}. ${reason}${old}`);
}

// Screen readers hear of a loss once, not each second.
export function startConnectionLine(): void {
  window.setInterval(() => {
    if (lostAt.size > 0) show();
  }, 1000);
}
