// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Elements from text alone: nothing that is read can become markup.

type Listener = (event: Event) => void;
export type Attributes = Record<string, string | number | boolean | null | undefined | Listener>;
export type Child = Node | string | null;

const svgSpace = 'http://www.w3.org/2000/svg';

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') {
      element.addEventListener(name, value);
    } else if (value === true) {
      element.setAttribute(name, '');
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  for (const child of children) if (child !== null) element.append(child);
}

export function h<K extends keyof HTMLElementTagNameMap>(
    tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

export function svg<K extends keyof SVGElementTagNameMap>(
    tag: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS(svgSpace, tag) as SVGElementTagNameMap[K];
  fill(element, attributes, children);
  return element;
}

// A colour with what it means.
export function key(css: string, name: string): HTMLElement {
  return h('span', { class: 'key' }, svg('svg', { 'viewBox': '0 0 12 12', 'aria-hidden': 'true' },
      svg('rect', { class: css, width: 12, height: 12 })), name);
}
