// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Server-sent events over fetch, because EventSource cannot send a token. Connects again by itself,
// after the last event that it saw. While the tab is hidden it lets go of its connection: browsers
// have few for one server.

import { ApiError, send } from './api';

export interface ServerEvent {
  name: string;
  data: Record<string, unknown>;
}

export interface Listener {
  onEvent(event: ServerEvent): void;
  onOpen(): void;
  onLost(error: unknown): void;
}

const firstWait = 1000;
const longestWait = 15000;
// The server sends a comment every 15 seconds.
const longestSilence = 40000;

export class EventFeed {
  private lastId = '';
  private wait = firstWait;
  private timer = 0;
  private silence = 0;
  private connection: AbortController | null = null;
  private closed = false;
  private readonly onVisibility = () => this.follow();

  constructor(private readonly path: string, private readonly listener: Listener) {
    document.addEventListener('visibilitychange', this.onVisibility);
    this.follow();
  }

  close(): void {
    this.closed = true;
    document.removeEventListener('visibilitychange', this.onVisibility);
    this.drop();
  }

  private drop(): void {
    clearTimeout(this.timer);
    clearTimeout(this.silence);
    this.connection?.abort();
    this.connection = null;
  }

  private follow(): void {
    this.drop();
    if (!this.closed && !document.hidden) void this.connect();
  }

  private async connect(): Promise<void> {
    const connection = new AbortController();
    this.connection = connection;
    try {
      const headers: Record<string, string> = { Accept: 'text/event-stream' };
      if (this.lastId !== '') headers['Last-Event-ID'] = this.lastId;
      const response = await send('GET', this.path, { headers, signal: connection.signal });
      this.wait = firstWait;
      this.listener.onOpen();
      await this.read(response, connection);
      throw new ApiError(0, 'The server ended the stream.');
    } catch (error) {
      if (connection !== this.connection) return;
      this.drop();
      this.listener.onLost(error);
      if (error instanceof ApiError && (error.status === 401 || error.status === 404)) return;
      this.timer = window.setTimeout(() => this.follow(), this.wait);
      this.wait = Math.min(2 * this.wait, longestWait);
    }
  }

  private async read(response: Response, connection: AbortController): Promise<void> {
    const reader = response.body?.getReader();
    if (reader === undefined) return;
    const decoder = new TextDecoder();
    let text = '';
    for (;;) {
      clearTimeout(this.silence);
      this.silence = window.setTimeout(() => {
        if (connection === this.connection) void reader.cancel();
      }, longestSilence);
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        if (connection !== this.connection) return;
        this.take(block);
      }
    }
  }

  private take(block: string): void {
    let name = 'message';
    let data = '';
    for (const line of block.split('\n')) {
      const colon = line.indexOf(':');
      const field = line.slice(0, colon);
      const value = line.slice(colon + 1).replace(/^ /, '');
      if (field === 'event') name = value;
      else if (field === 'data') data += value;
      else if (field === 'id' && value !== '') this.lastId = value;
    }
    if (data === '') return;
    try {
      this.listener.onEvent({ name, data: JSON.parse(data) as Record<string, unknown> });
    } catch {
      // An event that is not JSON is not the server's.
    }
  }
}
