// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Numbers for people: three or four digits, a unit, and n/a for what is not known.

export const unknown = 'n/a';

function digits(value: number, most = 4): string {
  if (value === 0) return '0';
  const size = Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.max(0, Math.min(6, most - 1 - size)));
}

function scaled(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return unknown;
  const size = Math.abs(value);
  if (size >= 1e6) return `${digits(value / 1e6, 3)} M${unit}`;
  if (size >= 1e3) return `${digits(value / 1e3, 3)} k${unit}`;
  return `${digits(value, 3)} ${unit}`;
}

export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return unknown;
  const size = Math.abs(value);
  if (size >= 0.1 || size === 0) return `${digits(value)} s`;
  if (size >= 1e-4) return `${digits(value * 1e3, 3)} ms`;
  return `${digits(value * 1e6, 3)} \u00b5s`;
}

export const watts = (value: number | null | undefined): string => scaled(value, 'W');
export const joules = (value: number | null | undefined): string => scaled(value, 'J');

export function percent(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return unknown;
  return `${value.toFixed(1)} %`;
}

export function signedPercent(value: number): string {
  return `${value < 0 ? '\u2212' : '+'}${Math.abs(value).toFixed(1)} %`;
}

export function between(least: number, most: number): string {
  return `${least.toFixed(1)} to ${most.toFixed(1)} %`;
}

export function times(factor: number): string {
  return `${factor.toFixed(2)}\u00d7`;
}

export function count(value: number): string {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ',');
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

export function age(secondsAgo: number): string {
  const whole = Math.max(0, Math.round(secondsAgo));
  if (whole < 120) return `${whole} s`;
  if (whole < 7200) return `${Math.floor(whole / 60)} min`;
  if (whole < 172800) return `${Math.floor(whole / 3600)} h`;
  return `${Math.floor(whole / 86400)} d`;
}

export function clockTime(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toLocaleTimeString([], { hour12: false });
}

export function dateTime(unixSeconds: number): string {
  const date = new Date(unixSeconds * 1000);
  const two = (value: number) => value.toString().padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
      `${two(date.getHours())}:${two(date.getMinutes())}`;
}
