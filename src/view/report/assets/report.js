// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0
// @ts-check

// Draws the timelines, the clock legend and the reading under the pointer from
// the JSON that the page carries. Checked by tsc --strict; see CONTRIBUTING.md.

/**
 * @typedef {object} PlanData  All lists are rank by rank in execution order.
 * @property {string} name
 * @property {number} time  Iteration time, ns.
 * @property {number[]} start  ns.
 * @property {number[]} duration  ns.
 * @property {number[]} option  Index into ReportData.options.
 * @property {number[]} critical  The computations on a longest path.
 * @property {number[]} path  One longest path.
 * @property {number} power  Mean of the iteration, W.
 * @property {number[]=} rankPower  Blocking power, W, where it is not that of ReportData.
 *
 * @typedef {object} PlotData  Scales are [low, high, pixel of low, pixel of high].
 * @property {number[]} x
 * @property {number[]} y
 * @property {number} timeFactor
 * @property {string} timeUnit
 * @property {number} timeDecimals
 * @property {number} energyFactor
 * @property {string} energyUnit
 * @property {number} energyDecimals
 * @property {number} baselineTime
 * @property {number} baselineEnergy
 * @property {number[][]} curve  [s, J]
 *
 * @typedef {object} ReportData
 * @property {boolean} knobsAreNumbers
 * @property {string} knobUnit
 * @property {{label: string, value: number}[]} knobs
 * @property {(string | number)[][]} kinds  [letter, stage] or [letter, stage, fused letter, its stage]
 * @property {number[][]} rankStages
 * @property {number[]} rankPower  Blocking power, W.
 * @property {number[]} rankFirst  Where each rank begins in the lists; one more at the end.
 * @property {number[]} kind
 * @property {number[]} microbatch
 * @property {number[]} fusedMicrobatch  -1: not fused.
 * @property {number[][]} options  [knob, J, W]
 * @property {PlanData[]} plans
 * @property {PlotData} plot
 *
 * @typedef {object} Panel  One timeline on the page.
 * @property {PlanData} plan
 * @property {HTMLCanvasElement} canvas
 * @property {CanvasRenderingContext2D} context
 * @property {Uint8Array} critical
 *
 * @typedef {{panel: Panel, rank: number, computation: number}} Hit  computation -1: waiting.
 */

(function () {
  'use strict';

  /** @param {string} id */
  const element = (id) => {
    const found = document.getElementById(id);
    if (!found) throw new Error('missing #' + id);
    return found;
  };

  /** @type {ReportData} */
  const data = JSON.parse(element('report-data').textContent || '');
  const ranks = data.rankStages.length;
  const nbsp = '\u00a0';
  const svgSpace = 'http://www.w3.org/2000/svg';

  // ---- Numbers -------------------------------------------------------------

  /** @param {number} value @param {number} digits */
  const significant = (value, digits) => {
    if (value === 0) return '0';
    const whole = Math.floor(Math.log10(Math.abs(value))) + 1;
    return value.toFixed(Math.max(0, digits - whole));
  };

  /** @param {number} value @param {[number, string][]} units largest first */
  const withUnit = (value, units) => {
    const unit = units.find(([factor]) => Math.abs(value) >= factor) || units[units.length - 1];
    return significant(value / unit[0], 4) + nbsp + unit[1];
  };
  /** @param {number} ns */
  const formatTime = (ns) => ns === 0 ? '0' : withUnit(ns, [[1e9, 's'], [1e6, 'ms'], [1e3, '\u00b5s'], [1, 'ns']]);
  /** @param {number} joules */
  const formatEnergy = (joules) =>
    withUnit(joules, [[1e6, 'MJ'], [1e3, 'kJ'], [1, 'J'], [1e-3, 'mJ'], [1e-6, '\u00b5J']]);
  /** @param {number} watts */
  const formatPower = (watts) => withUnit(watts, [[1e6, 'MW'], [1e3, 'kW'], [1, 'W'], [1e-3, 'mW']]);

  /** @param {number} low @param {number} high @param {number} count */
  const roundTicks = (low, high, count) => {
    const rough = (high - low) / count;
    if (!(rough > 0)) return [];
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = power * ([1, 2, 2.5, 5].find((f) => f * power >= rough) || 10);
    const ticks = [];
    for (let k = Math.ceil(low / step); k * step <= high; ++k) ticks.push(k * step);
    return ticks;
  };

  // ---- Colour --------------------------------------------------------------

  // A sequential map with even steps of lightness in OKLCH, from indigo (slow)
  // through teal to gold (fast): ordered also in grey and for colour-blind eyes.
  /** @param {number} t 0..1 */
  const mapColour = (t) => {
    const lightness = 0.36 + 0.5 * t;
    const chroma = 0.135 - 0.08 * t * (1 - t);
    const hue = ((285 - 193 * t) * Math.PI) / 180;
    const a = chroma * Math.cos(hue);
    const b = chroma * Math.sin(hue);
    const l = Math.pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
    const m = Math.pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
    const s = Math.pow(lightness - 0.0894841775 * a - 1.291485548 * b, 3);
    const linear = [
      4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ];
    const rgb = linear.map((v) => {
      const c = Math.min(1, Math.max(0, v));
      return Math.round(255 * (c <= 0.0031308 ? 12.92 * c : 1.055 * Math.pow(c, 1 / 2.4) - 0.055));
    });
    return { fill: 'rgb(' + rgb.join(',') + ')', text: lightness > 0.62 ? '#111' : '#fff' };
  };

  /** @type {number[]} */
  const usedKnobs = [];
  data.options.forEach(([knob]) => {
    if (!usedKnobs.includes(knob)) usedKnobs.push(knob);
  });
  usedKnobs.sort((a, b) => (data.knobsAreNumbers ? data.knobs[a].value - data.knobs[b].value : b - a));
  const lowKnob = data.knobs[usedKnobs[0]].value;
  const highKnob = data.knobs[usedKnobs[usedKnobs.length - 1]].value;

  /** @param {number} knob */
  const knobPosition = (knob) => {
    if (usedKnobs.length < 2) return 1;
    if (!data.knobsAreNumbers) return usedKnobs.indexOf(knob) / (usedKnobs.length - 1);
    return (data.knobs[knob].value - lowKnob) / (highKnob - lowKnob);
  };
  const knobColours = data.knobs.map((_, knob) => mapColour(usedKnobs.includes(knob) ? knobPosition(knob) : 1));

  /** @param {number} knob */
  const knobName = (knob) => data.knobs[knob].label + (data.knobUnit ? nbsp + data.knobUnit : '');

  // ---- Computations --------------------------------------------------------

  const typeNames = new Map([['F', 'forward'], ['B', 'backward'], ['I', 'backward input'], ['W', 'backward weight'],
    ['R', 'recompute']]);

  /** @param {number} i */
  const shortName = (i) => {
    const kind = data.kinds[data.kind[i]];
    const name = String(kind[0]) + data.microbatch[i];
    return kind.length > 2 ? name + '+' + kind[2] + data.fusedMicrobatch[i] : name;
  };
  /** @param {number} i */
  const longName = (i) => {
    const kind = data.kinds[data.kind[i]];
    const one = (/** @type {number} */ at, /** @type {number} */ microbatch) =>
      typeNames.get(String(kind[at])) + ', stage ' + kind[at + 1] + ', microbatch ' + microbatch;
    return one(0, data.microbatch[i]) + (kind.length > 2 ? ' + ' + one(2, data.fusedMicrobatch[i]) : '');
  };

  // ---- Panels and the view they share --------------------------------------

  /** @param {string} id @param {PlanData} plan @returns {Panel} */
  const makePanel = (id, plan) => {
    const canvas = /** @type {HTMLCanvasElement} */ (element(id));
    const context = canvas.getContext('2d');
    if (!context) throw new Error('no 2d canvas');
    const critical = new Uint8Array(plan.start.length);
    plan.critical.forEach((i) => { critical[i] = 1; });
    return { plan, canvas, context, critical };
  };
  const panels = [makePanel('before', data.plans[0]), makePanel('after', data.plans[1])];
  const wholeTime = Math.max(...panels.map((panel) => panel.plan.time)) || 1;
  const view = { start: 0, end: wholeTime };
  /** @type {Hit | null} */
  let selected = null;

  const laneLabels = data.rankStages.map((stages, rank) => {
    const same = data.rankStages.every((s, r) => s.length === 1 && s[0] === r);
    return same ? 'rank ' + rank : 'rank ' + rank + ' \u00b7 s' + stages.join(',');
  });
  const gutter = Math.min(160, 24 + 6.6 * Math.max(14, ...laneLabels.map((label) => label.length)));
  const rightMargin = 12;
  const lanePitch = Math.max(9, Math.min(40, Math.floor(330 / ranks)));
  const strip = lanePitch >= 18 ? 5 : 2;  // Under each lane, for the critical path.
  const laneHeight = lanePitch - strip - (lanePitch >= 18 ? 2 : 1);
  const lanesHeight = lanePitch * ranks;
  const powerTop = lanesHeight + 12;
  const powerHeight = 58;
  const axisTop = powerTop + powerHeight;
  const canvasHeight = axisTop + 24;

  /** @param {Panel} panel */
  const plotWidth = (panel) => Math.max(50, panel.canvas.clientWidth - gutter - rightMargin);
  /** @param {Panel} panel @param {number} ns */
  const xOf = (panel, ns) => gutter + ((ns - view.start) / (view.end - view.start)) * plotWidth(panel);
  /** @param {Panel} panel @param {number} x */
  const timeOf = (panel, x) => view.start + ((x - gutter) / plotWidth(panel)) * (view.end - view.start);

  /** The first computation of `rank` that ends after `ns`.
   * @param {PlanData} plan @param {number} rank @param {number} ns */
  const firstEndingAfter = (plan, rank, ns) => {
    let low = data.rankFirst[rank];
    let high = data.rankFirst[rank + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (plan.start[middle] + plan.duration[middle] > ns) high = middle;
      else low = middle + 1;
    }
    return low;
  };

  /** @param {string} name */
  const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /** What a rank draws while it waits, W.
   * @param {PlanData} plan @param {number} rank */
  const waitingPower = (plan, rank) => (plan.rankPower || data.rankPower)[rank];

  /** Mean power of the pipeline in each pixel column of the view.
   * @param {Panel} panel @param {number} columns */
  const powerColumns = (panel, columns) => {
    const plan = panel.plan;
    const width = (view.end - view.start) / columns;
    const power = new Float64Array(columns);
    const add = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ watts) => {
      const a = Math.max(0, (from - view.start) / width);
      const b = Math.min(columns, (to - view.start) / width);
      for (let c = Math.floor(a); c < b; ++c) {
        power[c] += watts * (Math.min(b, c + 1) - Math.max(a, c));
      }
    };
    for (let rank = 0; rank < ranks; ++rank) {
      const waiting = waitingPower(plan, rank);
      add(0, plan.time, waiting);
      for (let i = firstEndingAfter(plan, rank, view.start); i < data.rankFirst[rank + 1]; ++i) {
        if (plan.start[i] >= view.end) break;
        add(plan.start[i], plan.start[i] + plan.duration[i],
          data.options[plan.option[i]][2] - waiting);
      }
    }
    return power;
  };

  // The scale of the power lanes: the highest sum of a whole view, fixed so
  // that zooming does not change it.
  let powerScale = 1;

  /** @param {Panel} panel */
  const draw = (panel) => {
    const { plan, canvas, context } = panel;
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(canvasHeight * ratio);
    canvas.style.height = canvasHeight + 'px';
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const snap = (/** @type {number} */ x) => Math.round(x * ratio) / ratio;
    const font = getComputedStyle(document.body).fontFamily;
    const right = gutter + plotWidth(panel);
    const ink = token('--ink');
    const soft = token('--soft');
    const accent = token('--accent');
    const panelColour = token('--panel');
    const endX = xOf(panel, plan.time);

    context.textBaseline = 'middle';
    context.font = (lanePitch < 13 ? 9.5 : 12.5) + 'px ' + font;
    context.fillStyle = soft;
    context.textAlign = 'right';
    const labelEvery = lanePitch < 11 ? 2 : 1;
    laneLabels.forEach((label, rank) => {
      if (rank % labelEvery === 0) context.fillText(label, gutter - 10, rank * lanePitch + laneHeight / 2);
    });

    context.save();
    context.beginPath();
    context.rect(gutter, 0, right - gutter, axisTop);
    context.clip();

    // Waiting: hatched, wherever no computation covers it.
    const tile = document.createElement('canvas');
    tile.width = tile.height = Math.round(6 * ratio);
    const tileContext = /** @type {CanvasRenderingContext2D} */ (tile.getContext('2d'));
    tileContext.scale(ratio, ratio);
    tileContext.fillStyle = token('--wait');
    tileContext.fillRect(0, 0, 6, 6);
    tileContext.strokeStyle = token('--wait-line');
    tileContext.beginPath();
    [-6, 0, 6].forEach((dx) => { tileContext.moveTo(dx - 1, 7); tileContext.lineTo(dx + 7, -1); });
    tileContext.stroke();
    const hatch = context.createPattern(tile, 'repeat');
    if (hatch) hatch.setTransform(new DOMMatrix([1 / ratio, 0, 0, 1 / ratio, 0, 0]));
    context.fillStyle = hatch || token('--wait');
    for (let rank = 0; rank < ranks; ++rank) {
      context.fillRect(xOf(panel, 0), rank * lanePitch, endX - xOf(panel, 0), laneHeight);
    }

    context.textAlign = 'center';
    context.font = (laneHeight >= 20 ? 12 : 10) + 'px ' + font;
    const low = Math.round(laneHeight * 0.34);
    for (let rank = 0; rank < ranks; ++rank) {
      const top = rank * lanePitch;
      for (let i = firstEndingAfter(plan, rank, view.start); i < data.rankFirst[rank + 1]; ++i) {
        if (plan.start[i] >= view.end) break;
        const x0 = snap(xOf(panel, plan.start[i]));
        const x1 = snap(xOf(panel, plan.start[i] + plan.duration[i]));
        const gap = x1 - x0 >= 12 ? 1 : x1 - x0 >= 3.5 ? 1 / ratio : 0;
        const kind = data.kinds[data.kind[i]];
        const colour = knobColours[data.options[plan.option[i]][0]];
        const isForward = (kind[0] === 'F' || kind[0] === 'R') && kind.length === 2;
        const y = isForward ? top + low : top;
        const height = isForward || kind[0] === 'W' ? laneHeight - low : laneHeight;
        const drawn = Math.max(x1 - x0 - gap, 1 / ratio);
        if (height < laneHeight) {
          // The rest of the lane is not waiting: a pale tint of the same clock.
          context.fillStyle = panelColour;
          context.fillRect(x0, top, x1 - x0, laneHeight);
          context.globalAlpha = 0.3;
          context.fillStyle = colour.fill;
          context.fillRect(x0, top, drawn, laneHeight);
          context.globalAlpha = 1;
        }
        context.fillStyle = colour.fill;
        context.fillRect(x0, y, drawn, height);
        const isFused = kind.length > 2;
        if (isFused && x1 - x0 >= 3.5) {
          context.fillStyle = panelColour;
          context.fillRect(x0, top + laneHeight / 2 - 0.5, drawn, 1);
        }
        if (x1 - x0 > 15 && height >= 10) {
          // A fused pair has a half of the lane each: backward above, forward below.
          const names = isFused
            ? [String(kind[2]) + data.fusedMicrobatch[i], String(kind[0]) + data.microbatch[i]] : [shortName(i)];
          const visible0 = Math.max(x0, gutter);
          const visible1 = Math.min(x1, right);
          const widest = Math.max(...names.map((name) => context.measureText(name).width));
          if (widest + 5 < visible1 - visible0 && height / names.length >= 10) {
            context.fillStyle = colour.text;
            names.forEach((name, at) => {
              context.fillText(name, (visible0 + visible1) / 2 - gap / 2, y + height * (at + 0.5) / names.length + 0.5);
            });
          }
        }
        if (panel.critical[i]) {
          context.fillStyle = accent;
          context.fillRect(x0, top + laneHeight + 1, Math.max(x1 - x0, 1 / ratio), Math.max(1.5, strip - 2));
        }
      }
    }

    // Where the critical path goes from one rank to another.
    context.strokeStyle = accent;
    context.lineWidth = 1.5;
    context.beginPath();
    let rank = 0;
    let previousRank = -1;
    let previousEnd = 0;
    plan.path.forEach((i) => {
      rank = 0;
      while (data.rankFirst[rank + 1] <= i) ++rank;
      if (previousRank >= 0 && rank !== previousRank) {
        const y0 = previousRank * lanePitch + laneHeight + strip / 2;
        const y1 = rank * lanePitch + laneHeight + strip / 2;
        context.moveTo(xOf(panel, previousEnd), y0);
        context.lineTo(xOf(panel, plan.start[i]), y1);
      }
      previousRank = rank;
      previousEnd = plan.start[i] + plan.duration[i];
    });
    context.stroke();

    // Power of the whole pipeline.
    const columns = Math.max(1, Math.round((right - gutter) * ratio));
    const power = powerColumns(panel, columns);
    const yOf = (/** @type {number} */ watts) => axisTop - (watts / powerScale) * (powerHeight - 4);
    context.fillStyle = token('--power');
    context.beginPath();
    context.moveTo(gutter, axisTop);
    for (let c = 0; c < columns; ++c) {
      context.lineTo(gutter + c / ratio, yOf(power[c]));
      context.lineTo(gutter + (c + 1) / ratio, yOf(power[c]));
    }
    context.lineTo(right, axisTop);
    context.fill();
    const meanY = Math.round(yOf(plan.power)) + 0.5;
    context.strokeStyle = ink;
    context.lineWidth = 1;
    context.setLineDash([4, 3]);
    context.beginPath();
    context.moveTo(xOf(panel, 0), meanY);
    context.lineTo(endX, meanY);
    context.stroke();
    context.setLineDash([]);

    // The iteration's end.
    context.strokeStyle = ink;
    context.beginPath();
    context.moveTo(Math.min(endX, wholeTime === view.end ? right - 0.5 : endX), 0);
    context.lineTo(Math.min(endX, wholeTime === view.end ? right - 0.5 : endX), axisTop);
    context.stroke();

    if (selected) drawSelection(panel, selected);
    context.restore();

    // Labels of the power lane, and the time axis.
    context.font = '12px ' + font;
    context.fillStyle = soft;
    context.textAlign = 'right';
    context.fillText('power', gutter - 10, powerTop + 8);
    context.fillText('mean ' + formatPower(plan.power), gutter - 10, Math.max(powerTop + 24, Math.min(meanY, axisTop - 8)));
    context.strokeStyle = token('--rule');
    context.beginPath();
    context.moveTo(gutter, axisTop + 0.5);
    context.lineTo(right, axisTop + 0.5);
    const span = view.end - view.start;
    const unit = wholeTime >= 1e9 && span >= 2e7 ? { factor: 1e9, name: 's' }
      : wholeTime >= 1e6 && span >= 2e4 ? { factor: 1e6, name: 'ms' } : { factor: 1e3, name: '\u00b5s' };
    const ticks = roundTicks(view.start / unit.factor, view.end / unit.factor, (right - gutter) / 110);
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : 1;
    let decimals = 0;
    while (decimals < 6 && Math.abs(step * Math.pow(10, decimals) - Math.round(step * Math.pow(10, decimals))) > 1e-6) ++decimals;
    context.fillStyle = soft;
    ticks.forEach((tick, at) => {
      const x = xOf(panel, tick * unit.factor);
      context.moveTo(x, axisTop);
      context.lineTo(x, axisTop + 5);
      const isLast = at === ticks.length - 1;
      const label = tick.toFixed(decimals) + (isLast ? nbsp + unit.name : '');
      const half = context.measureText(label).width / 2;
      context.textAlign = 'center';
      context.fillText(label, Math.min(x, right + rightMargin - half), axisTop + 15);
    });
    context.stroke();
  };

  /** Outlines the selected computation, in the other plan too.
   * @param {Panel} panel @param {Hit} hit */
  const drawSelection = (panel, hit) => {
    const i = hit.computation;
    if (i < 0) return;
    const x0 = xOf(panel, panel.plan.start[i]);
    const x1 = xOf(panel, panel.plan.start[i] + panel.plan.duration[i]);
    panel.context.strokeStyle = token('--ink');
    panel.context.lineWidth = 2;
    panel.context.strokeRect(x0, hit.rank * lanePitch + 1, Math.max(2, x1 - x0), laneHeight - 2);
  };

  let drawRequested = false;
  const redraw = () => {
    if (drawRequested) return;
    drawRequested = true;
    requestAnimationFrame(() => {
      drawRequested = false;
      drawAll();
    });
  };
  const drawAll = () => {
    panels.forEach(draw);
    element('range').textContent = formatTime(view.start) + ' to ' + formatTime(view.end);
  };

  const fixPowerScale = () => {
    const saved = [view.start, view.end];
    [view.start, view.end] = [0, wholeTime];
    powerScale = Math.max(1e-9, ...panels.map((panel) => Math.max(...powerColumns(panel, 400)))) * 1.04;
    [view.start, view.end] = saved;
  };

  /** @param {number} start @param {number} end */
  const setView = (start, end) => {
    const span = Math.min(wholeTime, Math.max(wholeTime / 2e4, end - start));
    view.start = Math.min(Math.max(0, start), wholeTime - span);
    view.end = view.start + span;
    redraw();
  };
  /** @param {number} factor @param {number} centre ns */
  const zoom = (factor, centre) =>
    setView(centre - (centre - view.start) * factor, centre + (view.end - centre) * factor);
  const middle = () => (view.start + view.end) / 2;
  /** @param {number} share of the view */
  const pan = (share) => {
    const by = share * (view.end - view.start);
    setView(view.start + by, view.end + by);
  };

  // ---- Tooltip -------------------------------------------------------------

  const tooltip = element('tooltip');

  /** @param {Panel} panel @param {number} x @param {number} y @returns {Hit | null} */
  const hitTest = (panel, x, y) => {
    const rank = Math.floor(y / lanePitch);
    const ns = timeOf(panel, x);
    if (x < gutter || rank < 0 || rank >= ranks || ns < 0 || ns > panel.plan.time) return null;
    const i = firstEndingAfter(panel.plan, rank, ns);
    const inside = i < data.rankFirst[rank + 1] && panel.plan.start[i] <= ns;
    return { panel, rank, computation: inside ? i : -1 };
  };

  /** @param {Hit} hit @returns {[string, string][]} */
  const describe = (hit) => {
    const plan = hit.panel.plan;
    if (hit.computation < 0) return [['power', formatPower(waitingPower(plan, hit.rank))]];
    const [knob, joules, watts] = data.options[plan.option[hit.computation]];
    return [
      [data.knobsAreNumbers ? 'clock' : 'knob', knobName(knob)],
      ['start', formatTime(plan.start[hit.computation])],
      ['duration', formatTime(plan.duration[hit.computation])],
      ['energy', formatEnergy(joules)],
      ['power', formatPower(watts)],
    ];
  };

  /** @param {Hit} hit */
  const title = (hit) => (hit.computation < 0 ? 'rank ' + hit.rank + ' waits'
    : shortName(hit.computation) + ' \u2013 ' + longName(hit.computation));

  /** @param {Hit} hit @param {number} clientX @param {number} clientY */
  const showTooltip = (hit, clientX, clientY) => {
    tooltip.textContent = '';
    const strong = document.createElement('strong');
    strong.textContent = title(hit);
    const list = document.createElement('dl');
    describe(hit).forEach(([name, value]) => {
      const dt = document.createElement('dt');
      const dd = document.createElement('dd');
      dt.textContent = name;
      dd.textContent = value;
      list.append(dt, dd);
    });
    tooltip.append(strong, list);
    if (hit.computation >= 0 && hit.panel.critical[hit.computation]) {
      const note = document.createElement('div');
      note.className = 'critical';
      note.textContent = 'on the critical path';
      tooltip.append(note);
    }
    const box = tooltip.getBoundingClientRect();
    const x = clientX + 16 + box.width > window.innerWidth ? clientX - 16 - box.width : clientX + 16;
    const y = clientY + 18 + box.height > window.innerHeight ? clientY - 18 - box.height : clientY + 18;
    tooltip.style.transform = 'translate(' + Math.max(4, x) + 'px,' + Math.max(4, y) + 'px)';
    tooltip.style.visibility = 'visible';
  };
  const hideTooltip = () => {
    tooltip.style.visibility = 'hidden';
  };

  /** @param {Hit | null} hit */
  const select = (hit) => {
    const same = (selected && selected.computation) === (hit && hit.computation);
    selected = hit;
    if (!same) redraw();
  };

  /** By keyboard: makes the computation visible, shows and says it.
   * @param {Panel} panel @param {number} rank @param {number} i */
  const visit = (panel, rank, i) => {
    const hit = { panel, rank, computation: i };
    const start = panel.plan.start[i];
    const end = start + panel.plan.duration[i];
    if (start < view.start || end > view.end) {
      const half = (view.end - view.start) / 2;
      setView((start + end) / 2 - half, (start + end) / 2 + half);
    }
    select(hit);
    const box = panel.canvas.getBoundingClientRect();
    showTooltip(hit, box.left + xOf(panel, (start + end) / 2), box.top + rank * lanePitch + laneHeight);
    element('announce').textContent =
      title(hit) + ', ' + describe(hit).map((pair) => pair.join(' ')).join(', ');
  };

  /** @param {Panel} panel @param {string} key @returns {boolean} whether it meant something */
  const onKey = (panel, key) => {
    const at = selected && selected.computation >= 0 ? selected : null;
    switch (key) {
      case '+': case '=': zoom(0.7, middle()); return true;
      case '-': zoom(1 / 0.7, middle()); return true;
      case '0': setView(0, wholeTime); return true;
      case 'ArrowLeft': pan(-0.15); return true;
      case 'ArrowRight': pan(0.15); return true;
      case 'n': case 'p': {
        const rank = at ? at.rank : 0;
        const first = data.rankFirst[rank];
        const last = data.rankFirst[rank + 1] - 1;
        if (last < first) return true;
        const next = at ? at.computation + (key === 'n' ? 1 : -1) : firstEndingAfter(panel.plan, 0, view.start);
        visit(panel, rank, Math.min(last, Math.max(first, next)));
        return true;
      }
      case 'ArrowUp': case 'ArrowDown': {
        if (!at) return false;
        const rank = Math.min(ranks - 1, Math.max(0, at.rank + (key === 'ArrowUp' ? -1 : 1)));
        const i = firstEndingAfter(panel.plan, rank, panel.plan.start[at.computation]);
        const last = data.rankFirst[rank + 1] - 1;
        if (last >= data.rankFirst[rank]) visit(panel, rank, Math.min(i, last));
        return true;
      }
      case 'Escape': hideTooltip(); select(null); return true;
      default: return false;
    }
  };

  panels.forEach((panel) => {
    const canvas = panel.canvas;
    /** @type {{x: number, start: number, end: number} | null} */
    let drag = null;
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      drag = { x: event.offsetX, start: view.start, end: view.end };
    });
    canvas.addEventListener('pointermove', (event) => {
      if (drag) {
        const by = ((drag.x - event.offsetX) / plotWidth(panel)) * (drag.end - drag.start);
        if (Math.abs(drag.x - event.offsetX) > 3) hideTooltip();
        setView(drag.start + by, drag.end + by);
        return;
      }
      const hit = hitTest(panel, event.offsetX, event.offsetY);
      select(hit);
      if (hit) showTooltip(hit, event.clientX, event.clientY);
      else hideTooltip();
    });
    const endDrag = () => {
      drag = null;
    };
    canvas.addEventListener('pointerup', endDrag);
    canvas.addEventListener('pointercancel', endDrag);
    canvas.addEventListener('pointerleave', () => {
      hideTooltip();
      select(null);
    });
    canvas.addEventListener('dblclick', (event) => zoom(0.5, timeOf(panel, event.offsetX)));
    canvas.addEventListener('wheel', (event) => {
      // A wheel over a timeline that nobody has clicked still scrolls the page.
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / plotWidth(panel));
      else zoom(Math.exp(Math.max(-0.7, Math.min(0.7, event.deltaY * 0.0025))), timeOf(panel, event.offsetX));
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (onKey(panel, event.key)) event.preventDefault();
    });
    canvas.addEventListener('blur', hideTooltip);
  });
  element('zoom-in').addEventListener('click', () => zoom(0.5, middle()));
  element('zoom-out').addEventListener('click', () => zoom(2, middle()));
  element('zoom-all').addEventListener('click', () => setView(0, wholeTime));

  // ---- Legend: the clocks, and how long the plan runs at each ---------------

  /** @param {string} name @param {Record<string, string | number>} attributes @param {string} [text] */
  const svg = (name, attributes, text) => {
    const node = document.createElementNS(svgSpace, name);
    Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, String(value)));
    if (text !== undefined) node.textContent = text;
    return node;
  };

  const timeAtKnob = new Float64Array(data.knobs.length);
  data.plans[1].option.forEach((option, i) => {
    timeAtKnob[data.options[option][0]] += data.plans[1].duration[i];
  });
  const busyTime = timeAtKnob.reduce((sum, time) => sum + time, 0) || 1;
  /** @param {number} knob */
  const share = (knob) => (100 * timeAtKnob[knob] / busyTime).toFixed(1) + nbsp + '%';

  const drawNumberLegend = () => {
    const width = 620;
    const left = 14;
    const right = width - 14;
    const base = 74;
    const root = svg('svg', { viewBox: '0 0 ' + width + ' 116', role: 'img' });
    root.append(svg('title', {}, 'Share of busy time that the plan spends at each clock: ' +
      usedKnobs.filter((knob) => timeAtKnob[knob] > 0).map((knob) => knobName(knob) + ' ' + share(knob)).join(', ')));
    root.append(svg('text', { x: left, y: 12 }, 'busy time at each clock, this plan'));
    const at = (/** @type {number} */ knob) => left + knobPosition(knob) * (right - left);
    const bins = Math.max(8, Math.min(18, (right - left) / usedKnobs.length * 0.8));
    const most = Math.max(...timeAtKnob);
    usedKnobs.forEach((knob) => {
      const height = timeAtKnob[knob] / most * (base - 22);
      if (height > 0) {
        const bar = svg('rect', { x: at(knob) - bins / 2 + (usedKnobs.length < 2 ? -20 : 0), y: base - height,
          width: bins, height, fill: knobColours[knob].fill });
        bar.append(svg('title', {}, knobName(knob) + ': ' + share(knob)));
        root.append(bar);
      }
    });
    for (let k = 0; k < 124; ++k) {
      root.append(svg('rect', { x: left + k * (right - left) / 124, y: base + 3, width: (right - left) / 124 + 0.6,
        height: 12, fill: mapColour(k / 123).fill }));
    }
    const ticks = usedKnobs.length < 2 ? [highKnob] : roundTicks(lowKnob, highKnob, 7);
    ticks.forEach((tick) => {
      const t = highKnob > lowKnob ? (tick - lowKnob) / (highKnob - lowKnob) : 1;
      const x = left + t * (right - left);
      root.append(svg('text', { x: Math.min(x, right - 6), y: base + 31, 'text-anchor': 'middle' }, String(Math.round(tick * 1e6) / 1e6)));
    });
    const axisName = (data.knobUnit ? 'clock (' + data.knobUnit + ')' : 'clock') + ', ' + data.knobs[usedKnobs[0]].label +
      ' to ' + data.knobs[usedKnobs[usedKnobs.length - 1]].label;
    root.append(svg('text', { x: right, y: 12, 'text-anchor': 'end' }, axisName));
    element('clocks').append(root);
  };

  const drawLabelLegend = () => {
    const list = document.createElement('div');
    list.className = 'swatches';
    usedKnobs.slice().reverse().forEach((knob) => {
      const item = document.createElement('span');
      const swatch = document.createElement('span');
      swatch.className = 'swatch';
      swatch.style.background = knobColours[knob].fill;
      item.append(swatch, knobName(knob) + ' (' + share(knob) + ' of busy time)');
      list.append(item);
    });
    element('clocks').append(list);
  };

  // ---- Frontier: the reading under the pointer ------------------------------

  const listenToFrontier = () => {
    const plot = data.plot;
    const root = /** @type {SVGSVGElement} */ (/** @type {unknown} */ (element('frontier')));
    const layer = element('frontier-hover');
    const toPixel = (/** @type {number[]} */ s, /** @type {number} */ v) => s[2] + (v - s[0]) / (s[1] - s[0]) * (s[3] - s[2]);
    root.addEventListener('pointermove', (event) => {
      layer.textContent = '';
      const matrix = root.getScreenCTM();
      if (!matrix) return;
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
      const time = plot.x[0] + (point.x - plot.x[2]) / (plot.x[3] - plot.x[2]) * (plot.x[1] - plot.x[0]);
      const after = plot.curve.findIndex(([t]) => t >= time);
      if (after < 1 || point.y < plot.y[3] || point.y > plot.y[2]) return;
      const [t0, e0] = plot.curve[after - 1];
      const [t1, e1] = plot.curve[after];
      const joules = t1 > t0 ? e0 + (e1 - e0) * (time - t0) / (t1 - t0) : e1;
      const x = point.x;
      const y = toPixel(plot.y, joules);
      const lines = [
        (time / plot.timeFactor).toFixed(plot.timeDecimals) + nbsp + plot.timeUnit + '  (' + (time / plot.baselineTime).toFixed(3) + '\u00d7)',
        'at least ' + (joules / plot.energyFactor).toFixed(plot.energyDecimals) + nbsp + plot.energyUnit,
        'saves at most ' + (100 * (1 - joules / plot.baselineEnergy)).toFixed(2) + nbsp + '%',
      ];
      const boxX = x + 192 > plot.x[3] ? x - 192 : x + 12;
      const boxY = Math.max(plot.y[3] + 4, Math.min(point.y - 80, plot.y[2] - 74));
      layer.append(
        svg('line', { class: 'reading-line', x1: x, x2: x, y1: plot.y[3], y2: plot.y[2] }),
        svg('circle', { class: 'reading-dot', cx: x, cy: y, r: 4 }),
        svg('rect', { class: 'reading-box', x: boxX, y: boxY, width: 180, height: 64, rx: 6 }),
        ...lines.map((line, k) => svg('text', { class: k === 1 ? 'reading-strong' : '', x: boxX + 12, y: boxY + 20 + 18 * k }, line)));
    });
    root.addEventListener('pointerleave', () => { layer.textContent = ''; });
  };

  // ---- Start ---------------------------------------------------------------

  if (data.knobsAreNumbers) drawNumberLegend();
  else drawLabelLegend();
  listenToFrontier();
  fixPowerScale();
  drawAll();
  new ResizeObserver(redraw).observe(panels[0].canvas);
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  window.addEventListener('beforeprint', () => {
    hideTooltip();
    drawAll();
  });
  window.addEventListener('afterprint', redraw);
  document.body.dataset.rendered = 'true';
})();
