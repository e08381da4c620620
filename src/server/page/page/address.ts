// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Keeps the view in the part of the address after #, so that a link carries it.

export interface Address {
  view: 'jobs' | 'job' | 'nodes';
  id: string;
  query: URLSearchParams;
}

export function parse(hash: string): Address {
  const [path, query] = hash.replace(/^#\/?/, '').split('?', 2);
  const parts = (path ?? '').split('/');
  const parameters = new URLSearchParams(query ?? '');
  if (parts[0] === 'nodes') return { view: 'nodes', id: '', query: parameters };
  if (parts[0] !== 'job' || parts[1] === undefined || parts[1] === '') {
    return { view: 'jobs', id: '', query: parameters };
  }
  let id = parts[1];
  try {
    id = decodeURIComponent(id);
  } catch {
    // Not an address that the page wrote; the server will know no such job.
  }
  return { view: 'job', id, query: parameters };
}

export function format(address: Address): string {
  const query = address.query.toString();
  const path = address.view === 'job' ? `#/job/${encodeURIComponent(address.id)}`
    : `#/${address.view}`;
  return query === '' ? path : `${path}?${query}`;
}

export function jobLink(id: string): string {
  return format({ view: 'job', id, query: new URLSearchParams() });
}

// Changes the address without a step in the history, and without showing it anew.
export function remember(change: (query: URLSearchParams) => void): void {
  const address = parse(location.hash);
  change(address.query);
  history.replaceState(null, '', format(address));
}

export function put(query: URLSearchParams, name: string, value: string, usual: string): void {
  if (value === usual) query.delete(name);
  else query.set(name, value);
}
