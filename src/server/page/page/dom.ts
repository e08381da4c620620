// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Makes and replaces the page's elements.

import { Child, h } from 'charts/dom';

export { Child, h };

// Replaces the content by `children`. The focused element keeps the focus, by its data-key.
export function replace(parent: Element, ...children: Child[]): void {
  const active = document.activeElement;
  const key = active !== null && parent.contains(active) ? active.getAttribute('data-key') : null;
  const open = new Set<string>();
  for (const details of parent.querySelectorAll('details[open][data-key]')) {
    open.add(details.getAttribute('data-key') ?? '');
  }
  parent.replaceChildren(...children.filter((child): child is Node | string => child !== null));
  for (const details of parent.querySelectorAll('details[data-key]')) {
    if (open.has(details.getAttribute('data-key') ?? '')) details.setAttribute('open', '');
  }
  if (key === null) return;
  for (const each of parent.querySelectorAll<HTMLElement>('[data-key]')) {
    if (each.getAttribute('data-key') === key) each.focus({ preventScroll: true });
  }
}

export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export interface Column<T> {
  head: string;
  cell: (row: T) => Child;
  isNumber?: boolean;
}

// A plain table; the first column names the row.
export function table<T>(caption: string, columns: Column<T>[], rows: readonly T[]): HTMLElement {
  const kind = (column: Column<T>) => (column.isNumber === true ? 'number' : null);
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
      h('table', {},
          h('caption', {}, caption),
          h('thead', {}, h('tr', {}, ...columns.map(
              (column) => h('th', { scope: 'col', class: kind(column) }, column.head)))),
          h('tbody', {}, ...rows.map((row) => h('tr', {}, ...columns.map((column, i) =>
              i === 0 ? h('th', { scope: 'row' }, column.cell(row))
                      : h('td', { class: kind(column) }, column.cell(row))))))));
}

// Details behind a chart.
export function behind(key: string, title: string, content: Node): HTMLElement {
  return h('details', { 'data-key': key }, h('summary', { 'data-key': `${key}-summary` }, title),
      content);
}
