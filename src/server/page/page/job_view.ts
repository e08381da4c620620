// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// One job: figures first, then the frontier, an iteration, the ranks, and further tables.

import { ApiError, get, jobPath } from './api';
import { heard, lost, Source } from './connection';
import { h, replace } from './dom';
import { EventList } from './event_list';
import { dateTime } from 'charts/format';
import { FrontierSection } from './frontier_section';
import { HistorySection } from './history_section';
import { figures } from './job_figures';
import { sections, warnings } from './job_tables';
import { chips, labelsOf } from './labels';
import { nameOf } from './plan_words';
import { RankGrid } from './rank_grid';
import { EventFeed, ServerEvent } from './stream';
import { TimelineSection } from './timeline_section';
import type { Job } from './types';

const restBetweenLooks = 4000;
const restAfterEvent = 250;

export class JobView {
  private readonly stop = new AbortController();
  private readonly head = h('h1', { id: 'job-name' });
  private readonly subtitle = h('p', { class: 'soft' });
  private readonly labels = h('p', { class: 'chips' });
  private readonly banner = h('div', { role: 'alert', class: 'banner', hidden: true });
  private readonly numbers = h('div');
  private readonly frontier: FrontierSection;
  private readonly history: HistorySection;
  private readonly timeline: TimelineSection;
  private readonly grid: RankGrid;
  private readonly events = new EventList();
  private readonly words = sections.map((section) => ({
    section, content: h('div'), element: h('section', { 'aria-labelledby': `${section.key}-head` }),
    drawn: '',
  }));
  private readonly feed: EventFeed;
  private timer = 0;

  constructor(private readonly main: HTMLElement, private readonly id: string,
              private readonly onDenied: (error: unknown) => void) {
    this.frontier = new FrontierSection(this.stop.signal, () => this.lookSoon());
    this.history = new HistorySection(id, this.stop.signal);
    this.timeline = new TimelineSection(this.stop.signal);
    this.grid = new RankGrid(id, this.stop.signal);
    for (const { section, content, element } of this.words) {
      element.append(h('h2', { id: `${section.key}-head` }, section.title), content);
      element.hidden = true;
    }
    document.title = `${id} \u2013 Perseus`;
    main.replaceChildren(this.head, this.subtitle, this.labels, this.banner, this.numbers,
        this.frontier.element, this.history.element, this.timeline.element, this.grid.element,
        ...this.words.map(({ element }) => element), this.events.element);
    this.feed = new EventFeed(`${jobPath(id)}/events`, {
      onEvent: (event) => this.take(event),
      onOpen: () => heard('events'),
      onLost: (error) => this.fail('events', error),
    });
    void this.look();
  }

  close(): void {
    this.stop.abort();
    this.feed.close();
    clearTimeout(this.timer);
  }

  private take(event: ServerEvent): void {
    heard('events');
    // A stream begins with the state as it is, which is no news.
    if (event.name !== 'state' || event.data['revision'] === undefined) this.events.add(event);
    if (event.data['deleted'] === true) return this.showMissing('This job was deleted.');
    this.lookSoon();
  }

  private lookSoon(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.look(), restAfterEvent);
  }

  private fail(source: Source, error: unknown): void {
    if (this.stop.signal.aborted) return;
    if (error instanceof ApiError && error.status === 401) return this.onDenied(error);
    if (error instanceof ApiError && error.status === 404) return this.showMissing(error.message);
    lost(source, error);
  }

  private showMissing(sentence: string): void {
    this.close();
    this.main.replaceChildren(h('h1', {}, 'No such job'), h('p', {}, sentence),
        h('p', {}, h('a', { href: '#/jobs' }, 'All jobs')));
  }

  private async look(): Promise<void> {
    try {
      const job = await get<Job>(jobPath(this.id), this.stop.signal);
      heard('answers');
      this.draw(job);
      await this.history.look();
      await this.grid.look();
    } catch (error) {
      if (this.stop.signal.aborted) return;
      this.fail('answers', error);
    }
    if (this.stop.signal.aborted) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      if (!document.hidden) void this.look();
      else document.addEventListener('visibilitychange', () => this.lookSoon(), { once: true });
    }, restBetweenLooks);
  }

  private draw(job: Job): void {
    document.title = `${nameOf(job)} \u2013 Perseus`;
    replace(this.head, nameOf(job));
    replace(this.subtitle, `${job.id}, created ${dateTime(job.created_at)}: ` +
        `${job.data_parallel} pipelines of ${job.pipeline_parallel} stages, tensor parallelism ` +
        `${job.tensor_parallel}`);
    const labels = chips(labelsOf(job));
    if (this.labels.textContent !== labels.map((chip) => chip.textContent).join('')) {
      this.labels.replaceChildren(...labels);
    }
    const found = warnings(job);
    this.banner.hidden = found.length === 0;
    if (this.banner.textContent !== found.join('')) {
      replace(this.banner, ...found.map((text) => h('p', {}, text)));
    }
    replace(this.numbers, figures(job));
    this.frontier.update(job);
    this.timeline.update(job);
    for (const each of this.words) {
      const content = each.section.content(job);
      each.element.hidden = content === null;
      const state = (content ?? []).map((part) => (part instanceof Element ? part.outerHTML : part))
          .join('');
      if (state === each.drawn) continue;
      each.drawn = state;
      replace(each.content, ...(content ?? []));
    }
  }
}
