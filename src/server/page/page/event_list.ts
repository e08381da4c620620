// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Events of the job since the page was opened, the newest first.

import { h, setText } from './dom';
import type { ServerEvent } from './stream';

const most = 200;

function sentenceOf(event: ServerEvent): string {
  const { sentence, state, reason, version, rank, gone, straggler_id } = event.data;
  if (typeof sentence === 'string') return typeof rank === 'number' && event.name === 'trouble'
    ? `rank ${rank}: ${sentence}` : sentence;
  if (event.name === 'plan') return `plan ${String(version)} (${String(reason)})`;
  if (event.name === 'state') {
    return `${String(state)}${reason === '' ? '' : `: ${String(reason)}`}`;
  }
  if (event.name !== 'straggler') return '';
  if (typeof gone !== 'number') return `straggler ${String(straggler_id)} was reported`;
  return gone === 1 ? `straggler ${String(straggler_id)} is over`
    : `${gone} reports of stragglers are over`;
}

export class EventList {
  readonly element = h('section', { 'aria-labelledby': 'events-head' });
  private readonly list = h('ol', { class: 'events' });
  private readonly note = h('p', { class: 'soft' }, 'Nothing since this page was opened.');

  constructor() {
    this.element.append(h('h2', { id: 'events-head' }, 'Events'), this.note, this.list);
  }

  add(event: ServerEvent): void {
    const sentence = sentenceOf(event);
    if (sentence === '') return;
    setText(this.note, 'Since this page was opened; times are when they came here.');
    this.list.prepend(h('li', {},
        h('time', {}, new Date().toLocaleTimeString([], { hour12: false })), ' ',
        h('span', { class: 'kind' }, event.name), ' ', sentence));
    while (this.list.children.length > most) this.list.lastElementChild?.remove();
  }
}
