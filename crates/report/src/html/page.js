"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const NS = "http://www.w3.org/2000/svg";
const DASH = ["", "7 3", "2 3", "9 3 2 3", "4 4", "12 4", "1 2", "6 2 1 2 1 2"];
const svg = (name, attributes, parent, text) => {
  const e = document.createElementNS(NS, name);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  if (text !== undefined) e.textContent = text;
  if (parent) parent.append(e);
  return e;
};
const html = (name, cls, parent, text) => {
  const e = document.createElement(name);
  if (cls) e.className = cls;
  if (text !== undefined) e.textContent = text;
  if (parent) parent.append(e);
  return e;
};
const digits = v => {
  const a = Math.abs(v);
  return a >= 100 || v === 0 ? v.toFixed(0) : a >= 10 ? v.toFixed(1) : a >= 1 ? v.toFixed(2) : v.toPrecision(2);
};
const show = (v, unit) => {
  if (v === null || v === undefined) return "-";
  if (unit === "us") {
    return v < 1000 ? digits(v) + " µs" : v < 1e6 ? digits(v / 1e3) + " ms" : digits(v / 1e6) + " s";
  }
  const a = Math.abs(v);
  return a >= 1e9 ? digits(v / 1e9) + " G" : a >= 1e6 ? digits(v / 1e6) + " M"
    : a >= 1e3 ? Math.round(v).toLocaleString("en") : digits(v);
};
/* Beside an axis figures are round: no zeros at their end. */
const tick = (v, unit) => show(v, unit).replace(/(\.\d*?)0+(?= |$)/, "$1").replace(/\.(?= |$)/, "");
const clock = (s, fine) => {
  const sign = s < 0 ? "-" : "", a = Math.abs(s);
  const h = Math.floor(a / 3600), m = Math.floor(a % 3600 / 60), r = a % 60;
  const rest = fine ? r.toFixed(fine) : String(Math.round(r));
  if (a < 120) return sign + (fine ? a.toFixed(fine) : Math.round(a)) + " s";
  const two = x => String(x).padStart(2, "0");
  return sign + (h ? h + ":" + two(m) : m) + ":" + (r < 10 ? "0" : "") + rest;
};
const NICE = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
const steps = (span, count, time) => {
  const raw = span / count;
  if (time && raw > 1) return NICE.find(n => n >= raw) || Math.ceil(raw / 86400) * 86400;
  const p = 10 ** Math.floor(Math.log10(raw || 1));
  return [1, 2, 5, 10].map(n => n * p).find(n => n >= raw * 0.999) || p * 10;
};
const ticks = (a, b, step) => {
  const all = [];
  for (let i = Math.ceil(a / step - 1e-9); i * step <= b + step * 1e-9 && all.length < 60; i++) all.push(i * step);
  return all;
};
/* Three ticks or more, whatever the axis. */
const logTicks = (a, b) => {
  const all = [], many = Math.log10(b / a) > 3;
  for (let p = Math.floor(Math.log10(a)); p <= Math.log10(b) + 1; p++) {
    for (const n of many ? [1] : [1, 2, 5]) {
      const v = n * 10 ** p;
      if (v >= a * 0.999 && v <= b * 1.001) all.push(v);
    }
  }
  return all.length < 3 ? ticks(a, b, steps(b - a, 8)) : all;
};
const unpack = s => {
  if (!s.x) {
    s.x = new Float64Array(s.t.length);
    let at = 0;
    for (let i = 0; i < s.t.length; i++) { at += s.t[i]; s.x[i] = at / 100; }
  }
  return s;
};
/* The first index whose x is not below `at`. */
const find = (x, at) => {
  let a = 0, b = x.length;
  while (a < b) { const m = (a + b) >> 1; if (x[m] < at) a = m + 1; else b = m; }
  return a;
};
const whole = data.span;
let view = whole.slice(), cursor = null;
const charts = [];

/* A plot with its axes; `box` has width, height and margins. */
const frame = (chart, height) => {
  const w = Math.max(260, chart.plot.clientWidth || 600);
  const box = { w, h: height, l: 58, r: 8, t: 14, b: 24 };
  const root = svg("svg", { viewBox: `0 0 ${w} ${height}`, "aria-hidden": "true", focusable: "false" });
  return [box, root];
};
const yAxis = (root, box, lo, hi, log, unit) => {
  const y = log
    ? v => box.h - box.b - (Math.log(Math.max(v, lo)) - Math.log(lo)) / (Math.log(hi) - Math.log(lo)) * (box.h - box.b - box.t)
    : v => box.h - box.b - (v - lo) / (hi - lo) * (box.h - box.b - box.t);
  for (const v of log ? logTicks(lo, hi) : ticks(lo, hi, steps(hi - lo, lo === 0 ? 5 : 8))) {
    svg("line", { class: "grid", x1: box.l, x2: box.w - box.r, y1: y(v), y2: y(v) }, root);
    svg("text", { x: box.l - 6, y: y(v) + 4, "text-anchor": "end" }, root, tick(v, unit));
  }
  return y;
};
const range = (lists, log) => {
  let lo = Infinity, hi = -Infinity;
  for (const v of lists) {
    if (v === null || (log && v <= 0)) continue;
    if (v < lo) lo = v;
    if (v > hi) hi = v;
  }
  if (lo > hi) return log ? [1, 10] : [0, 1];
  if (log) return [lo * 0.8, Math.max(hi * 1.25, lo * 2)];
  lo = Math.min(lo, 0);
  hi = Math.max(hi, 0);
  return [lo, hi === lo ? lo + 1 : hi + (hi - lo) * 0.06];
};
const shown = chart => chart.spec.choices[chart.choice].s.filter((_, i) => !chart.off.has(i));

const draw = chart => {
  chart.dirty = false;
  if (chart.draw) { chart.draw(); return; }
  const [box, root] = frame(chart, chart.tall ? 250 : 180);
  const [a, b] = view;
  const x = t => box.l + (t - a) / (b - a) * (box.w - box.l - box.r);
  const seen = [];
  const series = chart.spec.choices[chart.choice].s;
  /* What is seen of the measured phase sets the scale: a burst of the load must not flatten it. */
  const phase = data.bands.find(band => band[2] === "measure");
  const [c, d] = phase && phase[0] < b && phase[1] > a ? [Math.max(a, phase[0]), Math.min(b, phase[1])] : [a, b];
  for (const one of shown(chart)) {
    unpack(one);
    /* The point before the edge of the view is on its line; one before the phase is none of its own. */
    const first = find(one.x, c), before = c === a && !(phase && phase[0] === c) ? 1 : 0;
    for (let i = Math.max(0, first - before); i < one.v.length && one.x[i] <= d; i++) seen.push(one.v[i]);
  }
  const limits = (data.limits || []).filter(one => one.chart === chart.spec.id &&
    (one.choice === "" || one.choice === chart.spec.choices[chart.choice].n.toLowerCase()));
  let [lo, hi] = range(seen, chart.spec.log);
  /* A little more is shown as it is. */
  const all = [];
  for (const one of shown(chart)) {
    for (let i = find(one.x, a); i < one.v.length && one.x[i] <= b; i++) all.push(one.v[i]);
  }
  const wide = range(seen.concat(all), chart.spec.log);
  if (chart.spec.log || wide[1] <= hi * 1.5 || !seen.some(v => v !== null && v !== 0)) [lo, hi] = wide;
  for (const [from, to, name] of data.bands) {
    if (to < a || from > b) continue;
    const x1 = x(Math.max(from, a)), x2 = x(Math.min(to, b));
    if (name !== "measure") svg("rect", { class: "band", x: x1, y: box.t, width: Math.max(x2 - x1, 1), height: box.h - box.b - box.t }, root);
    if (chart.tall && x2 - x1 > name.length * 8 + 4) svg("text", { x: x1 + 3, y: 11 }, root, name);
  }
  const y = yAxis(root, box, lo, hi, chart.spec.log, chart.spec.unit);
  const step = steps(b - a, Math.max(5, box.w / 90), true), fine = step < 0.1 ? 2 : step < 1 ? 1 : 0;
  for (const t of ticks(a, b, step)) {
    svg("line", { class: "grid", x1: x(t), x2: x(t), y1: box.h - box.b, y2: box.h - box.b + 4 }, root);
    const anchor = x(t) > box.w - 40 ? "end" : x(t) < box.l + 20 ? "start" : "middle";
    svg("text", { x: x(t), y: box.h - 6, "text-anchor": anchor }, root, clock(t, fine));
  }
  for (const one of limits) {
    const at = y(one.at), top = box.t, bottom = box.h - box.b;
    if (!(at > top && at < bottom)) {
      /* Beyond the scale: said, so that no reader looks for the line. */
      const high = chart.spec.log ? one.at >= hi : at <= top;
      svg("text", { class: "limit", x: box.w - box.r - 2, y: high ? top + 11 : bottom - 5, "text-anchor": "end" }, root,
        (high ? "\u2191 " : "\u2193 ") + one.words);
      continue;
    }
    svg("rect", { class: "over", x: box.l, width: box.w - box.l - box.r, y: one.below ? top : at, height: one.below ? at - top : bottom - at }, root);
    svg("line", { class: "limit", x1: box.l, x2: box.w - box.r, y1: at, y2: at }, root);
    svg("text", { class: "limit", x: box.w - box.r - 2, y: at - 3, "text-anchor": "end" }, root, one.words);
  }
  for (const [n, [from, to, name]] of (data.faults || []).entries()) {
    if (to < a || from > b) continue;
    const x1 = x(Math.max(from, a)), x2 = x(Math.min(to, b));
    svg("rect", { class: "fault", x: x1, y: box.t, width: Math.max(x2 - x1, 2), height: box.h - box.b - box.t }, root);
    if (chart.tall) {
      const late = x1 > box.w - 110;
      svg("text", { x: late ? x2 - 2 : x1 + 2, y: box.t + 11 + n % 3 * 13, "text-anchor": late ? "end" : "start", class: "name" }, root, name);
    }
  }
  for (const [t] of data.marks) {
    if (t >= a && t <= b) svg("line", { class: "mark", x1: x(t), x2: x(t), y1: box.t, y2: box.h - box.b }, root);
  }
  let off = null;
  series.forEach((one, index) => {
    if (chart.off.has(index)) return;
    unpack(one);
    const from = Math.max(0, find(one.x, a) - 1), to = Math.min(one.v.length - 1, find(one.x, b));
    const parts = [];
    let pen = false;
    for (let i = from; i <= to; i++) {
      const v = one.v[i];
      if (v === null || (chart.spec.log && v <= 0)) { pen = false; continue; }
      const px = Math.round(x(one.x[i]) * 10) / 10, py = Math.round(y(v) * 10) / 10;
      const alone = !pen && (i === to || one.v[i + 1] === null);
      parts.push((pen ? "L" : "M") + px + " " + py + (alone ? "h2" : ""));
      pen = true;
    }
    const id = "clip" + chart.number;
    if (!root.querySelector("clipPath")) {
      const clip = svg("clipPath", { id }, root);
      svg("rect", { x: box.l, y: box.t - 1, width: box.w - box.l - box.r, height: box.h - box.b - box.t + 3 }, clip);
    }
    for (let i = from; i <= to; i++) {
      if (one.v[i] > hi && one.x[i] >= a && one.x[i] <= b && !(off && off[1] >= one.v[i])) off = [one.x[i], one.v[i]];
    }
    svg("path", { class: "s k" + index % 8, d: parts.join(""), "stroke-dasharray": DASH[index % 8], "clip-path": `url(#${id})` }, root);
  });
  if (off) {
    /* What the scale cuts off is told by its figure. */
    const at = x(off[0]), anchor = at > box.w - 90 ? "end" : at < box.l + 40 ? "start" : "middle";
    svg("text", { class: "off", x: at, y: box.t + 12, "text-anchor": anchor }, root, "\u2191 " + show(off[1], chart.spec.unit));
  }
  chart.dots = svg("g", {}, root);
  chart.y = v => v > hi ? box.t : y(v);
  chart.line = svg("line", { class: "cursor", y1: box.t, y2: box.h - box.b, visibility: "hidden" }, root);
  chart.drag = svg("rect", { class: "drag", y: box.t, height: box.h - box.b - box.t, visibility: "hidden" }, root);
  chart.box = box;
  chart.x = x;
  chart.plot.replaceChildren(root);
  follow(chart);
};
/* The nearest sample: its time and its value. */
const sampleAt = (one, t) => {
  unpack(one);
  let i = find(one.x, t);
  if (i === one.x.length || (i > 0 && t - one.x[i - 1] < one.x[i] - t)) i--;
  return i < 0 ? [t, null] : [one.x[i], one.v[i]];
};
const follow = chart => {
  if (!chart.x || chart.draw) return;
  const inside = cursor !== null && cursor >= view[0] && cursor <= view[1];
  chart.line.setAttribute("visibility", inside ? "visible" : "hidden");
  if (inside) { chart.line.setAttribute("x1", chart.x(cursor)); chart.line.setAttribute("x2", chart.x(cursor)); }
  chart.dots.replaceChildren();
  chart.values.forEach((e, i) => {
    const [at, v] = inside ? sampleAt(chart.spec.choices[chart.choice].s[i], cursor) : [0, null];
    e.textContent = inside ? show(v, chart.spec.unit) : "";
    /* A dot says whose figure stands in the legend. */
    if (v === null || chart.off.has(i) || at < view[0] || at > view[1] || (chart.spec.log && v <= 0)) return;
    svg("circle", { class: "f" + i % 8, cx: chart.x(at), cy: chart.y(v), r: 3 }, chart.dots);
  });
};
const near = chart => {
  const r = chart.plot.getBoundingClientRect();
  return r.bottom > -200 && r.top < innerHeight + 200;
};
let waiting = false;
const redraw = () => {
  for (const chart of charts) chart.dirty = true;
  if (waiting) return;
  waiting = true;
  const now = () => {
    if (!waiting) return;
    waiting = false;
    const begin = performance.now();
    for (const chart of charts) if (near(chart)) draw(chart);
    document.documentElement.dataset.redrawMs = (performance.now() - begin).toFixed(2);
    tell();
  };
  requestAnimationFrame(now);
  /* A page that is not shown gets no frames. */
  setTimeout(now, 50);
};
const status = document.getElementById("view");
const tell = () => {
  if (!status) return;
  const all = view[0] === whole[0] && view[1] === whole[1];
  status.textContent = all ? "whole run" : clock(view[0], 1) + " to " + clock(view[1], 1);
};
const setView = (a, b) => {
  const least = Math.min(0.05, whole[1] - whole[0]);
  a = Math.max(whole[0], a);
  b = Math.min(whole[1], b);
  if (b - a < least) return;
  view = [a, b];
  redraw();
};
const setCursor = t => {
  cursor = t;
  for (const chart of charts) if (!chart.dirty) follow(chart);
  const words = document.getElementById("at");
  /* The time of day, as logs have it. */
  const day = t === null || !data.origin ? "" : ", " + new Date(data.origin + t * 1000).toISOString().slice(11, 19) + " UTC";
  if (words) words.textContent = t === null ? "" : "at " + clock(t, view[1] - view[0] < 120 ? 1 : 0) + day;
};
const zoom = factor => {
  const middle = cursor !== null && cursor >= view[0] && cursor <= view[1] ? cursor : (view[0] + view[1]) / 2;
  setView(middle - (middle - view[0]) * factor, middle + (view[1] - middle) * factor);
};
const keys = event => {
  const span = view[1] - view[0];
  const moved = by => {
    let t = (cursor === null ? view[0] : cursor) + by * span;
    t = Math.min(whole[1], Math.max(whole[0], t));
    if (t < view[0]) setView(t, t + span);
    if (t > view[1]) setView(t - span, t);
    setCursor(t);
  };
  switch (event.key) {
    case "ArrowLeft": moved(event.shiftKey ? -0.1 : -0.01); break;
    case "ArrowRight": moved(event.shiftKey ? 0.1 : 0.01); break;
    case "+": case "=": zoom(0.5); break;
    case "-": zoom(2); break;
    case "0": case "Escape": setView(whole[0], whole[1]); break;
    default: return;
  }
  event.preventDefault();
};
const pointer = chart => {
  const at = event => {
    const r = chart.plot.getBoundingClientRect(), box = chart.box;
    const px = (event.clientX - r.left) / r.width * box.w;
    const share = Math.min(1, Math.max(0, (px - box.l) / (box.w - box.l - box.r)));
    return view[0] + share * (view[1] - view[0]);
  };
  let from = null;
  chart.plot.addEventListener("pointerdown", event => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    from = at(event);
    chart.plot.setPointerCapture(event.pointerId);
  });
  chart.plot.addEventListener("pointermove", event => {
    if (!chart.box) return;
    const t = at(event);
    setCursor(t);
    if (from !== null) {
      const a = chart.x(Math.min(from, t)), b = chart.x(Math.max(from, t));
      chart.drag.setAttribute("x", a);
      chart.drag.setAttribute("width", b - a);
      chart.drag.setAttribute("visibility", "visible");
    }
  });
  chart.plot.addEventListener("pointerup", event => {
    if (from === null) return;
    const to = at(event), begin = from;
    from = null;
    chart.drag.setAttribute("visibility", "hidden");
    if (Math.abs(chart.x(to) - chart.x(begin)) > 5) setView(Math.min(begin, to), Math.max(begin, to));
  });
  chart.plot.addEventListener("pointercancel", () => { from = null; });
  chart.plot.addEventListener("pointerleave", () => { if (from === null) setCursor(null); });
  chart.plot.addEventListener("dblclick", () => setView(whole[0], whole[1]));
  chart.plot.addEventListener("keydown", keys);
};
const legend = (chart, names) => {
  chart.legend.replaceChildren();
  chart.values = names.map((name, i) => {
    const button = html("button", "", chart.legend);
    button.type = "button";
    button.setAttribute("aria-pressed", String(!chart.off.has(i)));
    const key = svg("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" }, button);
    svg("path", { class: "s k" + i % 8, d: "M0 5H26", "stroke-width": 2, "stroke-dasharray": DASH[i % 8] }, key);
    html("span", "", button, name);
    button.addEventListener("click", () => {
      if (chart.off.has(i)) chart.off.delete(i); else chart.off.add(i);
      button.setAttribute("aria-pressed", String(!chart.off.has(i)));
      draw(chart);
    });
    return html("output", "", button);
  });
};
const start = (figure, spec, number) => {
  /* What a threshold is about is shown first. */
  const limits = (data.limits || []).filter(one => one.choice !== ""), own = limits.filter(one => one.chart === spec.id);
  /* A chart of times without a threshold of its own shows the operation that the other one shows. */
  const others = spec.unit === "us" ? limits.filter(one => one.chart !== "throughput") : [];
  const asked = (own.length ? own : others).map(one => one.choice);
  const choice = Math.max(0, (spec.choices || []).findIndex(one => asked.includes(one.n.toLowerCase())));
  const chart = { figure, spec, number, choice, off: new Set(), tall: number < 2, dirty: true, values: [] };
  chart.plot = figure.querySelector(".plot");
  chart.legend = figure.querySelector(".legend");
  chart.plot.tabIndex = 0;
  return chart;
};
document.querySelectorAll("figure[data-chart]").forEach(figure => {
  const number = Number(figure.dataset.chart), spec = data.charts[number];
  const chart = start(figure, spec, number);
  chart.plot.setAttribute("role", "application");
  chart.plot.setAttribute("aria-label",
    spec.title + ": arrow keys move the cursor, plus and minus zoom, 0 shows the whole run; figures stand in the legend");
  const names = () => spec.choices[chart.choice].s.map(one => one.n);
  if (spec.choices.length === 1 && spec.choices[0].n) html("small", "", figure.querySelector("figcaption"), spec.choices[0].n);
  if (spec.choices.length > 1) {
    const select = html("select", "", figure.querySelector("figcaption"));
    select.setAttribute("aria-label", spec.title + ": what is shown");
    spec.choices.forEach((one, i) => { html("option", "", select, one.n).value = i; });
    select.value = String(chart.choice);
    select.addEventListener("change", () => {
      chart.choice = Number(select.value);
      chart.off.clear();
      legend(chart, names());
      draw(chart);
    });
  }
  legend(chart, names());
  pointer(chart);
  charts.push(chart);
});

/* Latency by percentile: the axis is log2(1 / (1 - p)). */
document.querySelectorAll("figure[data-percentiles]").forEach((percentiles, nth) => {
  const [first, end] = percentiles.dataset.percentiles.split("-").map(Number);
  const lines = data.distributions.slice(first, end);
  const chart = start(percentiles, { unit: "us", title: "" }, 1000 + nth);
  chart.plot.setAttribute("role", "application");
  chart.plot.setAttribute("aria-label", "Latency by percentile: arrow keys move the cursor; figures stand in the legend");
  let at = null;
  const word = x => {
    const p = (1 - 2 ** -x) * 100;
    return x === 0 ? "0 %" : p.toFixed(Math.max(0, Math.min(7, Math.ceil(x / Math.log2(10)) - (x < 4 ? 1 : 2)))) + " %";
  };
  const last = Math.max(1, ...lines.map(d => d.x[d.x.length - 1]));
  chart.draw = () => {
    const [box, root] = frame(chart, 300);
    const x = v => box.l + v / last * (box.w - box.l - box.r);
    const [lo, hi] = range(lines.filter((_, i) => !chart.off.has(i)).flatMap(d => d.y), true);
    const y = yAxis(root, box, lo, hi, true, "us");
    let before = -100;
    for (const p of [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999, 0.9999999]) {
      const v = -Math.log2(1 - p);
      if (v > last || x(v) - before < 62) continue;
      before = x(v);
      svg("line", { class: "grid", x1: x(v), x2: x(v), y1: box.t, y2: box.h - box.b }, root);
      const anchor = x(v) > box.w - 45 ? "end" : v === 0 ? "start" : "middle";
      svg("text", { x: x(v), y: box.h - 6, "text-anchor": anchor }, root, Number((p * 100).toFixed(6)) + " %");
    }
    lines.forEach((d, i) => {
      if (chart.off.has(i)) return;
      const path = d.x.map((v, j) => (j ? "L" : "M") + x(v).toFixed(1) + " " + y(d.y[j]).toFixed(1)).join("");
      svg("path", { class: "s k" + i % 8, d: path, "stroke-dasharray": DASH[i % 8] }, root);
    });
    if (at !== null) svg("line", { class: "cursor", x1: x(at), x2: x(at), y1: box.t, y2: box.h - box.b }, root);
    chart.box = box;
    chart.plot.replaceChildren(root);
    chart.values.forEach((e, i) => {
      const d = lines[i];
      e.textContent = at === null ? "" : at > d.x[d.x.length - 1] ? "-" : show(d.y[Math.min(find(d.x, at), d.y.length - 1)], "us");
    });
    percentiles.querySelector("small").textContent = at === null ? "of successful operations, logarithmic" : "at " + word(at);
  };
  const move = v => { at = v === null ? null : Math.min(last, Math.max(0, v)); draw(chart); };
  chart.plot.addEventListener("pointermove", event => {
    const r = chart.plot.getBoundingClientRect(), box = chart.box;
    move(((event.clientX - r.left) / r.width * box.w - box.l) / (box.w - box.l - box.r) * last);
  });
  chart.plot.addEventListener("pointerleave", () => move(null));
  chart.plot.addEventListener("keydown", event => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    move((at === null ? 0 : at) + by * last / (event.shiftKey ? 10 : 100));
  });
  legend(chart, lines.map(d => d.n));
  charts.push(chart);
});

const buttons = { zoomin: () => zoom(0.5), zoomout: () => zoom(2), reset: () => setView(whole[0], whole[1]) };
for (const id in buttons) {
  const button = document.getElementById(id);
  if (button) button.addEventListener("click", buttons[id]);
}
const phases = document.getElementById("phases");
if (phases && data.bands.length > 1) {
  for (const [from, to, name] of data.bands) {
    const button = html("button", "", phases, name);
    button.type = "button";
    button.addEventListener("click", () => setView(from, to));
  }
}
/* A page that follows a run is told what has come. */
document.addEventListener("dyno:more", event => {
  const all = view[0] === whole[0] && view[1] === whole[1];
  [whole[0], whole[1]] = event.detail.span;
  data.bands = event.detail.bands;
  event.detail.charts.forEach((series, i) => {
    const choice = charts[i].spec.choices[0], names = series.map(one => one.n);
    const same = choice.s.map(one => one.n).join() === names.join();
    choice.s = series;
    if (!same) legend(charts[i], names);
  });
  if (all || view[1] <= whole[0]) view = whole.slice();
  redraw();
});
const missing = () => { for (const chart of charts) if (chart.dirty) draw(chart); };
addEventListener("scroll", () => { for (const chart of charts) if (chart.dirty && near(chart)) draw(chart); }, { passive: true });
addEventListener("beforeprint", missing);
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; redraw(); } });
if (status) tell();
for (const chart of charts) if (near(chart)) draw(chart);
setTimeout(missing, 0);
})();
