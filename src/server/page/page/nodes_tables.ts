// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The table of nodes, and that of the GPUs of one node.

import { jobLink } from './address';
import { Child, h, table } from './dom';
import { age, count, unknown } from 'charts/format';
import type { NodeGpu, NodeSummary } from './types';

export const nodeName = (node: NodeSummary): string =>
  (node.node === '' ? 'a node without a name' : node.node);

const ago = (at: number | null): string =>
  (at === null ? unknown : `${age(Date.now() / 1000 - at)} ago`);

const ifBad = (text: string, isBad: boolean): Child => h('span', { class: isBad ? 'bad' : null },
    text);

// All different values of the GPUs that report.
function versions(node: NodeSummary, of: (gpu: NodeGpu) => string | null): string {
  const told = node.gpus.filter((gpu) => gpu.heard_at !== null).map(of);
  if (told.length === 0) return unknown;
  const words = told.map((one) => (one === null ? 'none' : one === '' ? 'not told' : one));
  return [...new Set(words)].sort().join(', ');
}

function jobsOf(node: NodeSummary): Child {
  const names = new Map(node.gpus.map((gpu) => [gpu.job, gpu.job_name]));
  const links = [...names].map(([id, name]) => h('a', { href: jobLink(id) }, name || id));
  return h('span', {}, ...links.flatMap((link, i) => (i === 0 ? [link] : [', ', link])));
}

export function nodeTable(nodes: NodeSummary[], chosen: string | null,
    choose: (node: NodeSummary) => void): HTMLElement {
  return table('A press on a node shows its GPUs', [
    { head: 'Node', cell: (node) => h('button', {
      'type': 'button', 'data-key': `node-${node.node}`,
      'aria-expanded': String(chosen === node.node), 'click': () => choose(node),
    }, nodeName(node)) },
    { head: 'GPUs', isNumber: true, cell: (node) => count(node.gpu_count) },
    { head: 'Leased', isNumber: true, cell: (node) => count(node.leased) },
    { head: 'Jobs', cell: jobsOf },
    { head: 'Agent', cell: (node) => versions(node, (gpu) => gpu.agent_version) },
    { head: 'Relay', cell: (node) => versions(node, (gpu) => gpu.relay_version) },
    { head: 'Refused', isNumber: true,
      cell: (node) => ifBad(count(node.refused), node.refused > 0) },
    { head: 'Clock conflicts', isNumber: true, cell: (node) => ifBad(count(node.clock_conflicts), node.clock_conflicts > 0) },
    { head: 'Troubles', isNumber: true,
      cell: (node) => ifBad(count(node.complaining), node.complaining > 0) },
    { head: 'Last heard', cell: (node) => ago(node.heard_at) },
  ], nodes);
}

function detail(gpu: NodeGpu): Child {
  const lines = gpu.error === null ? gpu.clock_conflicts : [gpu.error, ...gpu.clock_conflicts];
  return lines.length === 0 ? '' : h('ul', { class: 'wrongs' },
      ...lines.map((line) => h('li', {}, line)));
}

export function gpuTable(node: NodeSummary): HTMLElement {
  const left = node.gpu_count - node.gpus.length;
  return table(left <= 0 ? 'As each rank reported it last' : 'As each rank reported it last; ' +
      `${count(left)} more are not shown`, [
    { head: 'GPU', cell: (gpu) => h('span', {}, gpu.uuid ?? unknown,
        h('span', { class: 'detail' }, gpu.name ?? '')) },
    { head: 'Job', cell: (gpu) => h('a', { href: jobLink(gpu.job) }, gpu.job_name || gpu.job) },
    { head: 'Rank', isNumber: true, cell: (gpu) => String(gpu.rank) },
    { head: 'State', cell: (gpu) => gpu.state ?? unknown },
    { head: 'What is wrong', cell: detail },
    { head: 'Refused', isNumber: true, cell: (gpu) => ifBad(count(gpu.refused), gpu.refused > 0) },
    { head: 'Process', cell: (gpu) => gpu.process ?? unknown },
    { head: 'Client', cell: (gpu) => gpu.client_version ?? unknown },
    { head: 'Last heard', cell: (gpu) => ago(gpu.heard_at) },
  ], node.gpus);
}
