// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Ranks as a grid of pipeline and stage, coloured by lateness; a press shows the ranks of a place.

import { parse, remember } from './address';
import { get, jobPath } from './api';
import { h, replace, table } from './dom';
import { count, plural, times, unknown } from 'charts/format';
import type { Grid, GridCell, Rank } from './types';

// Lateness from which a cell has the next shade, and its word in the legend.
const shades = [
  { from: 0, name: 'up to 1.02\u00d7' }, { from: 1.02, name: 'up to 1.08\u00d7' },
  { from: 1.08, name: 'up to 1.20\u00d7' }, { from: 1.2, name: 'more' },
];

export function shadeOf(lateness: number | null): string {
  if (lateness === null) return 'late-unknown';
  let shade = 0;
  shades.forEach(({ from }, i) => {
    if (lateness > from) shade = i;
  });
  return `late-${shade}`;
}

export class RankGrid {
  readonly element = h('section', { 'aria-labelledby': 'ranks-head', hidden: true });
  private readonly content = h('div');
  private readonly panel = h('div', { id: 'rank-panel', 'aria-live': 'polite' });
  private buttons: HTMLButtonElement[][] = [];
  private drawn = '';
  private place: [number, number] | null = null;
  private newest = 0;  // The newest request; older answers may come later.
  private active: [number, number] = [0, 0];

  constructor(private readonly id: string, private readonly signal: AbortSignal) {
    const place = parse(location.hash).query.get('place')?.split('.').map(Number);
    if (place?.length === 2 && place.every(Number.isInteger)) this.place = [place[0]!, place[1]!];
    this.element.append(h('h2', { id: 'ranks-head' }, 'Ranks'),
        h('p', { class: 'soft' }, 'How many times as long as usual the latest rank of each place ',
            'computed lately (measured; against its own usual pace). Press one to see its ranks.'),
        h('p', { class: 'legend' }, ...shades.map((shade, i) => h('span', { class: 'key' },
            h('span', { class: `swatch late-${i}` }), shade.name)),
        h('span', { class: 'key' }, h('span', { class: 'swatch late-unknown' }),
            'usual pace not known')),
        this.content, this.panel);
  }

  async look(): Promise<void> {
    const grid = await get<Grid>(`${jobPath(this.id)}/grid`, this.signal);
    const state = JSON.stringify(grid);
    this.element.hidden = grid.rows.length === 0;
    if (state !== this.drawn) {
      this.drawn = state;
      this.draw(grid);
    }
    if (this.place !== null) await this.showPlace(grid, this.place);
  }

  private draw(grid: Grid): void {
    const span = (each: number, i: number) => (each === 1 ? String(i)
      : `${i * each}\u2013${(i + 1) * each - 1}`);
    this.buttons = grid.rows.map((row, r) =>
      row.cells.map((cell, c) => this.button(grid, cell, r, c)));
    this.active = [Math.min(this.active[0], this.buttons.length - 1),
      Math.min(this.active[1], (this.buttons[0]?.length ?? 1) - 1)];
    this.buttons[this.active[0]]?.[this.active[1]]?.setAttribute('tabindex', '0');
    replace(this.content, h('div', { class: 'scroll' },
        h('table', { class: 'grid' },
            h('caption', {}, 'Rows are pipelines, columns are stages; arrow keys move'),
            h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Pipeline'),
                ...(grid.rows[0]?.cells ?? []).map((_, c) =>
                  h('th', { scope: 'col' }, span(grid.stages_each, c))))),
            h('tbody', { keydown: (event) => this.move(event as KeyboardEvent) },
                ...this.buttons.map((row, r) => h('tr', {},
                    h('th', { scope: 'row' }, span(grid.pipelines_each, r)),
                    ...row.map((button) => h('td', {}, button))))))));
  }

  private button(grid: Grid, cell: GridCell, row: number, column: number): HTMLButtonElement {
    const text = cell.lateness === null ? '\u00b7' : times(cell.lateness);
    const troubles = (cell.complaining > 0 ? ` ${plural(cell.complaining, 'rank')} in trouble.`
      : '') + (cell.refused > 0 ? ` ${plural(cell.refused, 'clock call')} refused.` : '');
    const lateness = cell.lateness === null ? 'usual pace not known'
      : `${times(cell.lateness)} as long as usual (rank ${cell.latest ?? unknown})`;
    const place = `Pipeline ${row * grid.pipelines_each}, stage ${column * grid.stages_each}`;
    const button = h('button', {
      type: 'button', class: `cell ${shadeOf(cell.lateness)}`, tabindex: -1,
      'data-key': `cell-${row}-${column}`,
      'aria-label': `${place}: ${lateness}.${troubles}`,
      title: `${place}: ${lateness}.${troubles}`,
      click: () => {
        this.activate(row, column);
        this.place = [row * grid.pipelines_each, column * grid.stages_each];
        remember((query) => query.set('place', this.place!.join('.')));
        // If it fails, so does the next look, which says so.
        this.showPlace(grid, this.place).catch(() => undefined);
      },
    }, text, troubles === '' ? '' : '!');
    return button;
  }

  private activate(row: number, column: number): void {
    this.buttons[this.active[0]]?.[this.active[1]]?.setAttribute('tabindex', '-1');
    this.active = [row, column];
    this.buttons[row]?.[column]?.setAttribute('tabindex', '0');
  }

  private move(event: KeyboardEvent): void {
    const steps: Record<string, [number, number]> = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    };
    const step = steps[event.key];
    if (step === undefined) return;
    const [row, column] = [this.active[0] + step[0], this.active[1] + step[1]];
    const button = this.buttons[row]?.[column];
    if (button === undefined) return;
    event.preventDefault();
    this.activate(row, column);
    button.focus();
  }

  private async showPlace(grid: Grid, [pipeline, stage]: [number, number]): Promise<void> {
    this.newest += 1;
    const asked = this.newest;
    const { ranks } = await get<{ ranks: Rank[] }>(
        `${jobPath(this.id)}/ranks?pipeline=${pipeline}&stage=${stage}`, this.signal);
    if (asked !== this.newest) return;
    const of = (rank: Rank, name: string) => (rank.counts === undefined ? unknown
      : count(rank.counts[name] ?? 0));
    const each = grid.pipelines_each > 1 || grid.stages_each > 1
      ? ' (the first of those that the cell stands for)' : '';
    replace(this.panel, table(`Pipeline ${pipeline}, stage ${stage}${each}`, [
      { head: 'Rank', cell: (rank) => String(rank.rank) },
      { head: 'Lateness', isNumber: true,
        cell: (rank) => (rank.lateness === null ? unknown : times(rank.lateness)) },
      { head: 'State', cell: (rank) => rank.state ?? unknown },
      { head: 'Plan', isNumber: true, cell: (rank) => String(rank.plan_version ?? unknown) },
      { head: 'Calls', isNumber: true, cell: (rank) => of(rank, 'calls') },
      { head: 'Late', isNumber: true, cell: (rank) => of(rank, 'late') },
      { head: 'Refused', isNumber: true, cell: (rank) => of(rank, 'refused') },
      { head: 'Node', cell: (rank) => (rank.node === '' ? unknown : rank.node) },
      { head: 'GPU', cell: (rank) => (rank.gpu.name === '' ? unknown : rank.gpu.name) },
      { head: 'Trouble', cell: (rank) => rank.error ?? '' },
    ], ranks));
  }
}
