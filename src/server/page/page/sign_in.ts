// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The form that asks for a token, where the server wants one.

import { setToken } from './api';
import { h } from './dom';

export function signIn(main: HTMLElement, sentence: string, then: () => void): void {
  const field = h('input', {
    type: 'password', id: 'token', autocomplete: 'off', spellcheck: 'false', required: true,
    'aria-describedby': 'token-help',
  });
  const keep = h('input', { type: 'checkbox', id: 'keep' });
  const form = h('form', {
    class: 'sign-in',
    submit: (event) => {
      event.preventDefault();
      setToken(field.value.trim(), keep.checked);
      then();
    },
  },
  h('h1', {}, 'Sign in'),
  h('p', { role: 'alert' }, sentence),
  h('label', { for: 'token' }, 'Token'), field,
  h('p', { id: 'token-help', class: 'soft' },
      'A line of the server\u2019s token file has it. read shows jobs; operate also moves points.'),
  h('p', {}, keep, ' ', h('label', { for: 'keep' }, 'Keep it until this tab is closed')),
  h('button', { type: 'submit' }, 'Sign in'));
  main.replaceChildren(form);
  field.focus();
}
