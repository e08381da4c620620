// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Requests to the server that sent the page, with the reader's token.

const storageKey = 'perseus-token';

export class ApiError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

let token = sessionStorage.getItem(storageKey) ?? '';

export const hasToken = (): boolean => token !== '';

// `keep`: until this tab is closed; else until it is loaded again.
export function setToken(text: string, keep: boolean): void {
  token = text;
  if (keep && text !== '') sessionStorage.setItem(storageKey, text);
  else sessionStorage.removeItem(storageKey);
}

export async function send(method: string, path: string, options: {
  body?: unknown; headers?: Record<string, string>; signal?: AbortSignal;
} = {}): Promise<Response> {
  const headers: Record<string, string> = { ...options.headers };
  if (token !== '') headers['Authorization'] = `Bearer ${token}`;
  let body: string | undefined;
  if (options.body !== undefined) {
    headers['Content-Type'] = 'application/json';
    body = JSON.stringify(options.body);
  }
  let response: Response;
  try {
    response = await fetch(path, {
      method, headers, body, signal: options.signal, cache: 'no-store', credentials: 'omit',
      redirect: 'error',
    });
  } catch (error) {
    if (options.signal?.aborted === true) throw error;
    throw new ApiError(0, 'The server does not answer.');
  }
  if (!response.ok) throw new ApiError(response.status, await sentenceOf(response));
  return response;
}

async function sentenceOf(response: Response): Promise<string> {
  try {
    const body = await response.json() as { error?: { message?: string } };
    if (typeof body.error?.message === 'string') return body.error.message;
  } catch {
    // Not from the server itself; a proxy, perhaps.
  }
  return `The server answered ${response.status}.`;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return await (await send('GET', path, { signal })).json() as T;
}

export const jobPath = (id: string): string => `api/v1/jobs/${encodeURIComponent(id)}`;
