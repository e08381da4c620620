// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Nodes, page by page, as far as their ranks tell of them; and the GPUs of one of them.

import { parse, put, remember } from './address';
import { ApiError, get } from './api';
import { heard, lost } from './connection';
import { h, replace, setText } from './dom';
import { plural } from 'charts/format';
import { gpuTable, nodeName, nodeTable } from './nodes_tables';
import type { NodeSummary } from './types';

const rowsOfPage = 50;
const rest = 5000;

interface NodeList {
  nodes: NodeSummary[];
  next: string | null;
}

export class NodesView {
  private readonly stop = new AbortController();
  private timer = 0;
  private looks = 0;
  private list: NodeList = { nodes: [], next: null };
  private search = '';
  private isTroubled = false;
  private chosen: string | null = null;
  // The start of each page up to this one.
  private readonly places: string[] = [];

  private readonly searchField = h('input', { type: 'search', id: 'search' });
  private readonly troubledField = h('input', { type: 'checkbox', id: 'troubled' });
  private readonly tally = h('p', { id: 'tally', role: 'status' });
  private readonly frame = h('div', { class: 'nodes' });
  private readonly pages = h('nav', { 'aria-label': 'Pages of the table', class: 'pages' });
  private readonly panel = h('div', { id: 'node-panel' });

  constructor(main: HTMLElement, private readonly onError: (error: unknown) => void) {
    document.title = 'Nodes \u2013 Perseus';
    const query = parse(location.hash).query;
    this.search = query.get('q') ?? '';
    this.isTroubled = query.get('troubled') === '1';
    this.chosen = query.get('node');
    this.searchField.value = this.search;
    this.troubledField.checked = this.isTroubled;
    const filter = () => {
      this.search = this.searchField.value;
      this.isTroubled = this.troubledField.checked;
      this.places.length = 0;
      this.write();
      void this.look();
    };
    this.searchField.addEventListener('input', filter);
    this.troubledField.addEventListener('change', filter);
    main.replaceChildren(
        h('h1', {}, 'Nodes'),
        h('p', { class: 'soft' }, 'Nodes of jobs that have not finished. Agents and relays are ' +
            'known from what their ranks report to this server.'),
        h('div', { class: 'filters' },
            h('label', { for: 'search' }, 'Name'), this.searchField,
            h('span', { class: 'together' }, this.troubledField, ' ',
                h('label', { for: 'troubled' }, 'Only in trouble')), this.tally),
        this.frame, this.pages, this.panel);
    void this.look();
  }

  close(): void {
    this.stop.abort();
    clearTimeout(this.timer);
  }

  private write(): void {
    remember((query) => {
      put(query, 'q', this.search, '');
      put(query, 'troubled', this.isTroubled ? '1' : '', '');
      if (this.chosen === null) query.delete('node');
      else query.set('node', this.chosen);
    });
  }

  // The newest look alone is shown: a filter may have changed since an older one began.
  private async look(): Promise<void> {
    clearTimeout(this.timer);
    const number = ++this.looks;
    const query = new URLSearchParams({ limit: String(rowsOfPage) });
    put(query, 'search', this.search, '');
    if (this.isTroubled) query.set('troubled', '1');
    const after = this.places[this.places.length - 1];
    if (after !== undefined) query.set('after', after);
    try {
      const list = await get<NodeList>(`api/v1/nodes?${query.toString()}`, this.stop.signal);
      if (number !== this.looks) return;
      this.list = list;
      heard('answers');
      this.draw();
    } catch (error) {
      if (this.stop.signal.aborted || number !== this.looks) return;
      lost('answers', error);
      if (error instanceof ApiError && error.status === 401) return this.onError(error);
    }
    this.timer = window.setTimeout(() => {
      if (!document.hidden) void this.look();
      else document.addEventListener('visibilitychange', () => void this.look(), { once: true });
    }, rest);
  }

  private draw(): void {
    const { nodes, next } = this.list;
    setText(this.tally, next !== null || this.places.length > 0
      ? `${plural(nodes.length, 'node')} on this page` : plural(nodes.length, 'node'));
    replace(this.frame, nodes.length > 0
      ? nodeTable(nodes, this.chosen, (node) => this.choose(node))
      : this.search !== '' || this.isTroubled || this.places.length > 0
        ? h('p', {}, 'No such node.')
      : h('div', { class: 'empty' },
          h('p', {}, 'No rank of a job that this server has at hand has joined yet. A node is ' +
              'here as soon as one of its ranks joins a job. To see what the node can do, on ' +
              'the node:'),
          h('pre', {}, h('code', {}, 'perseus doctor'))));
    this.drawPages();
    const shown = nodes.find((node) => node.node === this.chosen);
    replace(this.panel, shown === undefined ? null : h('section', {},
        h('h2', {}, `GPUs of ${nodeName(shown)}`), gpuTable(shown)));
  }

  private choose(node: NodeSummary): void {
    this.chosen = this.chosen === node.node ? null : node.node;
    this.write();
    this.draw();
  }

  private drawPages(): void {
    const { next } = this.list;
    if (next === null && this.places.length === 0) return replace(this.pages);
    const step = (text: string, key: string, disabled: boolean, go: () => void) => h('button', {
      type: 'button', 'data-key': key, disabled,
      click: () => {
        go();
        void this.look();
      },
    }, text);
    replace(this.pages,
        step('Before', 'page-before', this.places.length === 0, () => this.places.pop()),
        h('span', {}, `Page ${this.places.length + 1}`),
        step('Next', 'page-next', next === null, () => this.places.push(next ?? '')));
  }
}
