// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The few functions of D3 that charts use; the distribution's package has no types.

declare module 'd3-scale' {
  export interface ColourScale {
    (value: number): string;
    domain(ends: number[]): ColourScale;
    range(colours: string[]): ColourScale;
    clamp(clamp: boolean): ColourScale;
  }
  export interface LinearScale {
    (value: number): number;
    domain(ends: [number, number]): LinearScale;
    range(ends: [number, number]): LinearScale;
    nice(count?: number): LinearScale;
    ticks(count?: number): number[];
    tickFormat(count?: number): (value: number) => string;
    invert(place: number): number;
  }
  export function scaleLinear(): LinearScale;
  export function scaleLinear<Range extends string>(): ColourScale;
}

declare module 'd3-axis' {
  import type { LinearScale } from 'd3-scale';
  import type { Selection } from 'd3-selection';
  export interface Axis {
    (selection: Selection): void;
    ticks(count: number): Axis;
    tickFormat(format: (value: number) => string): Axis;
    tickSizeOuter(size: number): Axis;
    tickSizeInner(size: number): Axis;
    tickPadding(size: number): Axis;
  }
  export function axisBottom(scale: LinearScale): Axis;
  export function axisLeft(scale: LinearScale): Axis;
  export function axisRight(scale: LinearScale): Axis;
  export function axisTop(scale: LinearScale): Axis;
}

declare module 'd3-selection' {
  export interface Selection {
    call(draw: (selection: Selection) => void): Selection;
  }
  export function select(element: Element): Selection;
}

declare module 'd3-color' {
  export function rgb(text: string): { r: number; g: number; b: number };
}

declare module 'd3-shape' {
  export interface Line<T> {
    (points: readonly T[]): string | null;
    x(place: (point: T) => number): Line<T>;
    y(place: (point: T) => number): Line<T>;
  }
  export function line<T>(): Line<T>;
}
