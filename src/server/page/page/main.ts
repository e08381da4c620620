// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Shows the view of the address, and asks for a token where the server wants one.

import 'charts/d3_license';

import { format, parse } from './address';
import { ApiError, hasToken, setToken } from './api';
import { forget, startConnectionLine } from './connection';
import { JobView } from './job_view';
import { JobsView } from './jobs_view';
import { NodesView } from './nodes_view';
import { signIn } from './sign_in';

interface View {
  close(): void;
}

const main = document.getElementById('main') as HTMLElement;
const signOut = document.getElementById('sign-out') as HTMLButtonElement;
let view: View | null = null;
let shown = '';

function showForm(error: unknown): void {
  view?.close();
  view = null;
  const sentence = hasToken() && error instanceof ApiError ? error.message
    : 'This server shows its jobs to those who have a token.';
  signOut.hidden = true;
  signIn(main, sentence, show);
}

function show(): void {
  view?.close();
  forget();
  const address = parse(location.hash);
  shown = `${address.view} ${address.id}`;
  signOut.hidden = !hasToken();
  view = address.view === 'job' ? new JobView(main, address.id, showForm)
    : address.view === 'nodes' ? new NodesView(main, showForm)
    : new JobsView(main, showForm);
}

document.getElementById('skip')?.addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
signOut.addEventListener('click', () => {
  setToken('', false);
  show();
});
window.addEventListener('hashchange', () => {
  const address = parse(location.hash);
  const isOther = shown !== `${address.view} ${address.id}`;
  show();
  if (isOther) {
    window.scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
});

if (location.hash === '') {
  history.replaceState(null, '', format({ view: 'jobs', id: '', query: new URLSearchParams() }));
}
startConnectionLine();
show();
