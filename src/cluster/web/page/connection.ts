// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The line that says whether what is shown is of now, and how old it is.

import { ApiError, staleSentence } from './api';
import { setText } from './dom';
import { age } from './format';

let lostAt = 0;
let heardAt = 0;
let reason = '';

export function heard(): void {
  lostAt = 0;
  heardAt = Date.now();
  show();
}

export function lost(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) return;
  if (lostAt === 0) lostAt = Date.now();
  reason = error instanceof Error ? error.message : '';
  show();
}

function show(): void {
  const line = document.getElementById('connection');
  if (line === null) return;
  const stale = staleSentence();
  line.classList.toggle('lost', lostAt !== 0 || stale !== '');
  if (lostAt === 0) return setText(line, heardAt === 0 ? '' : stale === '' ? 'Live' : stale);
  const old = heardAt === 0 ? '' : ` What you see is ${age((Date.now() - heardAt) / 1000)} old.`;
  setText(line, `No connection for ${age((Date.now() - lostAt) / 1000)}. ${reason}${old}`);
}

// Screen readers hear of a loss once, not each second.
export function startConnectionLine(): void {
  window.setInterval(() => {
    if (lostAt !== 0) show();
  }, 1000);
}
