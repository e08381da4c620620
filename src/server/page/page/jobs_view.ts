// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// All jobs: read page by page, then kept up to date by events and by looking again.

import { parse, put, remember } from './address';
import { ApiError, get, jobPath } from './api';
import { heard, lost } from './connection';
import { h, replace, setText } from './dom';
import { plural } from 'charts/format';
import { columns, JobRow, sorted } from './jobs_table';
import { haveLabels, labelsOf } from './labels';
import { nameOf, states } from './plan_words';
import { EventFeed, ServerEvent } from './stream';
import type { Job, JobSummary } from './types';

const rowsOfPage = 100;
const jobsOfAnswer = 500;
// Looking at everything again costs the server as long as it took; it is idle far longer.
const shortestRest = 5000;
const restPerLook = 20;
const mostSingle = 8;

export class JobsView {
  private readonly jobs = new Map<string, JobSummary>();
  private readonly rows = new Map<string, JobRow>();
  private readonly changed = new Set<string>();
  private readonly stop = new AbortController();
  private readonly feed: EventFeed;
  private timer = 0;
  private redraw = 0;
  private soon = 0;
  private isComplete = false;
  private isLooking = false;
  private search = '';
  private state = '';
  private label = '';
  private sort = 'name';
  private descending = false;
  private page = 0;

  private readonly searchField = h('input', { type: 'search', id: 'search' });
  private readonly stateField = h('select', { id: 'state' },
      h('option', { value: '' }, 'any state'),
      ...states.map((state) => h('option', { value: state }, state)));
  private readonly labelField =
      h('input', { type: 'search', id: 'label', placeholder: 'team:vision' });
  private readonly tally = h('p', { id: 'tally', role: 'status' });
  private readonly heads = h('tr');
  private readonly body = h('tbody');
  private readonly pages = h('nav', { 'aria-label': 'Pages of the table', class: 'pages' });
  private readonly empty = h('div', { class: 'empty', hidden: true });
  private readonly frame: HTMLElement;

  constructor(main: HTMLElement, private readonly onError: (error: unknown) => void) {
    document.title = 'Jobs \u2013 Perseus';
    this.frame = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Jobs' },
        h('table', { class: 'jobs' },
            h('caption', { class: 'hidden' }, 'Jobs, one a row; the heads sort'),
            h('thead', {}, this.heads), this.body));
    this.read();
    const filter = () => {
      this.search = this.searchField.value;
      this.state = this.stateField.value;
      this.label = this.labelField.value;
      this.page = 0;
      this.write();
      this.draw();
    };
    this.searchField.addEventListener('input', filter);
    this.stateField.addEventListener('change', filter);
    this.labelField.addEventListener('input', filter);
    main.replaceChildren(
        h('h1', {}, 'Jobs'),
        h('div', { class: 'filters' },
            h('label', { for: 'search' }, 'Name or id'), this.searchField,
            h('label', { for: 'state' }, 'State'), this.stateField,
            h('label', { for: 'label' }, 'Label'), this.labelField, this.tally),
        this.frame, this.pages, this.empty);
    this.feed = new EventFeed('api/v1/events', {
      onEvent: (event) => this.take(event),
      onOpen: () => heard('events'),
      onLost: (error) => {
        lost('events', error);
        if (error instanceof ApiError && error.status === 401) this.onError(error);
      },
    });
    void this.look();
  }

  close(): void {
    this.stop.abort();
    this.feed.close();
    clearTimeout(this.timer);
    clearTimeout(this.soon);
    cancelAnimationFrame(this.redraw);
  }

  private read(): void {
    const query = parse(location.hash).query;
    this.search = query.get('q') ?? '';
    this.state = query.get('state') ?? '';
    this.label = query.get('label') ?? '';
    const sort = query.get('sort') ?? '-created';
    this.descending = sort.startsWith('-');
    this.sort = sort.replace(/^-/, '');
    this.page = Math.max(0, Number.parseInt(query.get('page') ?? '1', 10) - 1 || 0);
    this.searchField.value = this.search;
    this.stateField.value = this.state;
    this.labelField.value = this.label;
  }

  private write(): void {
    remember((query) => {
      put(query, 'q', this.search, '');
      put(query, 'state', this.state, '');
      put(query, 'label', this.label, '');
      put(query, 'sort', (this.descending ? '-' : '') + this.sort, '-created');
      put(query, 'page', String(this.page + 1), '1');
    });
  }

  // One look at a time, or each of two would begin others for ever.
  private async look(): Promise<void> {
    if (this.isLooking) return;
    this.isLooking = true;
    clearTimeout(this.timer);
    const begin = performance.now();
    try {
      const known = [...this.jobs.keys()];
      const seen = new Set<string>();
      let next: string | null = '';
      while (next !== null) {
        const after: string = next === '' ? '' : `&after=${encodeURIComponent(next)}`;
        const list: { jobs: JobSummary[]; next: string | null } =
            await get(`api/v1/jobs?limit=${jobsOfAnswer}${after}`, this.stop.signal);
        for (const job of list.jobs) {
          seen.add(job.id);
          this.keep(job);
        }
        next = list.next;
        this.drawSoon();
      }
      // Keeps jobs that came by an event since: they may be younger than the answer.
      for (const id of known) if (!seen.has(id)) this.jobs.delete(id);
      this.isComplete = true;
      heard('answers');
      this.drawSoon();
    } catch (error) {
      if (this.stop.signal.aborted) return;
      lost('answers', error);
      if (error instanceof ApiError && error.status === 401) return this.onError(error);
    }
    this.isLooking = false;
    const rest = Math.max(shortestRest, restPerLook * (performance.now() - begin));
    this.timer = window.setTimeout(() => {
      if (!document.hidden) void this.look();
      else document.addEventListener('visibilitychange', () => void this.look(), { once: true });
    }, rest);
  }

  // An older state never follows a newer one.
  private keep(job: JobSummary): void {
    const known = this.jobs.get(job.id);
    if (known === undefined || known.revision <= job.revision) this.jobs.set(job.id, job);
  }

  private take(event: ServerEvent): void {
    heard('events');
    const data = event.data;
    if (event.name === 'state' && typeof data['revision'] === 'number') {
      this.keep(data as unknown as JobSummary);
      return this.drawSoon();
    }
    const id = data['job'];
    if (typeof id !== 'string') return;
    if (event.name === 'job' && data['deleted'] === true) {
      this.jobs.delete(id);
      return this.drawSoon();
    }
    this.changed.add(id);
    if (this.soon === 0) this.soon = window.setTimeout(() => void this.lookAtChanged(), 300);
  }

  private async lookAtChanged(): Promise<void> {
    this.soon = 0;
    const ids = [...this.changed];
    this.changed.clear();
    // During a look, one by one: its answers may be older.
    if (ids.length > mostSingle && !this.isLooking) return await this.look();
    for (const id of ids) {
      try {
        const job = await get<Job>(jobPath(id), this.stop.signal);
        this.keep({ ...job, stragglers: job.stragglers.length });
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) this.jobs.delete(id);
      }
    }
    if (!this.stop.signal.aborted) this.drawSoon();
  }

  private drawSoon(): void {
    if (this.redraw !== 0) return;
    this.redraw = requestAnimationFrame(() => {
      this.redraw = 0;
      this.draw();
    });
  }

  private fits(job: JobSummary): boolean {
    if (this.state !== '' && job.state !== this.state) return false;
    // As people write it elsewhere, too.
    const label = this.label.replace(/\s/g, '').replace(/=/g, ':');
    if (!haveLabels(labelsOf(job), label)) return false;
    const text = this.search.trim().toLowerCase();
    return text === '' || `${nameOf(job)} ${job.id}`.toLowerCase().includes(text);
  }

  private draw(): void {
    const fitting = [...this.jobs.values()].filter((job) => this.fits(job));
    const order = this.sort === 'created'
      ? fitting.sort((a, b) => b.created_at - a.created_at || (a.id < b.id ? -1 : 1))
      : sorted(fitting, this.sort, this.descending);
    const pages = Math.max(1, Math.ceil(order.length / rowsOfPage));
    // Before all jobs are read, the page of the address may not be there yet.
    const page = Math.min(this.page, pages - 1);
    if (this.isComplete) this.page = page;
    const shown = order.slice(page * rowsOfPage, (page + 1) * rowsOfPage);
    this.drawHeads();
    const elements = shown.map((job) => this.rowOf(job));
    const isSame = elements.length === this.body.children.length &&
        elements.every((element, i) => this.body.children[i] === element);
    if (!isSame) {
      const active = document.activeElement;
      this.body.replaceChildren(...elements);
      if (active instanceof HTMLElement && this.body.contains(active)) active.focus();
    }
    for (const id of this.rows.keys()) if (!this.jobs.has(id)) this.rows.delete(id);
    this.drawPages(page, pages);
    const total = plural(this.jobs.size, 'job');
    const shownOf = order.length === this.jobs.size ? total : `${order.length} of ${total}`;
    setText(this.tally, this.isComplete ? shownOf : `${shownOf}, reading\u2026`);
    this.drawEmpty();
  }

  private rowOf(job: JobSummary): HTMLTableRowElement {
    let row = this.rows.get(job.id);
    if (row === undefined) {
      row = new JobRow(job);
      this.rows.set(job.id, row);
    } else {
      row.update(job);
    }
    return row.element;
  }

  private drawHeads(): void {
    replace(this.heads, ...columns.map((column) => {
      const isSorted = this.sort === column.key;
      const direction = this.descending ? 'descending' : 'ascending';
      return h('th', {
        scope: 'col', class: column.isNumber === true ? 'number' : null,
        'aria-sort': isSorted ? direction : null,
      }, h('button', {
        type: 'button', title: column.about, 'data-key': `sort-${column.key}`,
        click: () => {
          this.descending = isSorted ? !this.descending : column.isNumber === true;
          this.sort = column.key;
          this.write();
          this.draw();
        },
      }, column.head, isSorted ? (this.descending ? ' \u2193' : ' \u2191') : ''));
    }));
  }

  private drawPages(page: number, pages: number): void {
    if (pages === 1) return replace(this.pages);
    const step = (by: number, text: string, key: string) => h('button', {
      type: 'button', 'data-key': key,
      disabled: page + by < 0 || page + by >= pages,
      click: () => {
        this.page = page + by;
        this.write();
        this.draw();
      },
    }, text);
    replace(this.pages, step(-1, 'Before', 'page-before'),
        h('span', {}, `Page ${page + 1} of ${pages}`), step(1, 'Next', 'page-next'));
  }

  private drawEmpty(): void {
    const isEmpty = this.isComplete && this.jobs.size === 0;
    this.frame.hidden = isEmpty;
    this.empty.hidden = !isEmpty;
    if (!isEmpty || this.empty.hasChildNodes()) return;
    replace(this.empty, h('p', {}, 'There is no job yet. A trainer that joins makes one; so does'),
        h('pre', {}, h('code', {}, `perseus job create job.toml --server ${location.origin}`)),
        h('p', {}, 'To see one at work on this machine, without a GPU:'),
        h('pre', {}, h('code', {}, 'perseus demo --page')));
  }
}
