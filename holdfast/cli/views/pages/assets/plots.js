"use strict";
/* Plots of all pages, drawn by uPlot: series over time, curves with marks, shares as bars, stretches as strips. */
const Plots = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const drawn = new Set();

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const faded = (name, alpha) => {
    const [r, g, b] = colour(name).replace("#", "").match(/../g).map((pair) => parseInt(pair, 16));
    return `rgba(${r},${g},${b},${alpha})`;
  };
  const font = "11px system-ui, sans-serif";

  function axis(more) {
    return {
      stroke: () => colour("dim"), font, labelFont: font, labelGap: 0, size: 46,
      grid: { stroke: () => colour("line"), width: 1 }, ticks: { show: false }, ...more,
    };
  }

  /* Keep a plot as wide as its place, and in the colours of day, night and paper. */
  function mount(place, options, data) {
    const plot = new uPlot({ width: Math.max(place.clientWidth, 120), ...options }, data, place);
    const size = new ResizeObserver(() => {
      if (!place.isConnected) { size.disconnect(); drawn.delete(plot); return; }
      const width = Math.max(place.clientWidth, 120);
      if (width !== plot.width) plot.setSize({ width, height: options.height });
    });
    size.observe(place);
    drawn.add(plot);
    return plot;
  }

  function redraw() { for (const plot of drawn) plot.redraw(false, true); }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  for (const [name, on] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(name, () => { document.documentElement.classList.toggle("paper", on); redraw(); });
  }

  const SHORT = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
  function short(value) {
    const found = SHORT.find(([power]) => Math.abs(value) >= power);
    return found ? `${+(value / found[0]).toPrecision(4)}${found[1]}` : `${+value.toPrecision(4)}`;
  }

  /* One quantity of a job over time. bands: [from, to, colour, alpha], marks: times. */
  function overTime(place, { height, sync, name, stroke, stepped, min, max, format, read }) {
    const state = { bands: [], marks: [] };
    const draw = (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
      for (const [from, to, fill, alpha] of state.bands) {
        const left = plot.valToPos(from, "x", true), right = plot.valToPos(to, "x", true);
        ctx.fillStyle = faded(fill, alpha);
        ctx.fillRect(left, bbox.top, Math.max(right - left, 1.5 * devicePixelRatio), bbox.height);
      }
      ctx.fillStyle = colour("bad");
      for (const time of state.marks) {
        const x = plot.valToPos(time, "x", true), half = 4 * devicePixelRatio;
        ctx.beginPath();
        ctx.moveTo(x - half, bbox.top); ctx.lineTo(x + half, bbox.top); ctx.lineTo(x, bbox.top + 1.6 * half);
        ctx.fill();
      }
      ctx.restore();
    };
    const plot = mount(place, {
      height, ms: 1, legend: { show: false }, padding: [6, 24, 0, 0],
      tzDate: (time) => uPlot.tzDate(new Date(time), "Etc/UTC"),
      cursor: { sync: { key: sync }, y: false, points: { size: 6 }, drag: { x: true, y: false } },
      scales: { x: { time: true }, y: { range: (_, low, high) => bounds(low, high, min, max) } },
      axes: [
        axis({ size: 24, space: 70, values: clock }),
        axis({ space: 30, values: (_, values) => values.map(format) }),
      ],
      series: [{}, {
        label: name, stroke: () => colour(stroke), width: 1.5, spanGaps: !stepped, points: { show: false },
        fill: () => faded(stroke, 0.1), ...(stepped ? { paths: uPlot.paths.stepped({ align: -1 }) } : {}),
      }],
      hooks: {
        drawClear: [draw],
        setCursor: [(self) => read(self.cursor.idx == null ? null : [self.data[0][self.cursor.idx], self.data[1][self.cursor.idx]])],
      },
    }, [[], []]);
    return { show(times, values, bands, marks) { state.bands = bands; state.marks = marks; plot.setData([times, values]); } };
  }

  function bounds(low, high, min, max) {
    const least = min ?? low ?? 0, most = max ?? high ?? 1;
    const margin = (most - least || Math.abs(most) || 1) * 0.06;
    return [min === undefined ? least - margin : least, max === undefined ? most + margin : most + margin / 3];
  }

  /* uPlot's own labels turn the day and year into second lines; here the day stands at midnight alone. */
  function clock(_plot, values, _axis, _space, step) {
    return values.map((time) => {
      const text = new Date(time).toISOString();
      if (step >= 86400e3 || (text.slice(11, 19) === "00:00:00")) return text.slice(5, 10);
      return step < 60e3 ? text.slice(11, 19) : text.slice(11, 16);
    });
  }

  /* Curves in the order of their points, with marks of this cluster and of what was asked for. */
  function curves(place, spec) {
    const ends = ([low, high]) => (_self, _low, _high) => [low, high];
    const line = (ctx, dash, width) => {
      ctx.lineWidth = width * devicePixelRatio;
      ctx.setLineDash((dash ?? []).map((part) => part * devicePixelRatio));
    };
    const draw = (plot) => {
      const { ctx, bbox } = plot;
      const x = (value) => plot.valToPos(value, "x", true), y = (value) => plot.valToPos(value, "y", true);
      ctx.save();
      ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
      for (const rule of spec.rules) {
        line(ctx, rule.dotted ? [2, 3] : null, 1);
        ctx.strokeStyle = colour(rule.colour);
        ctx.beginPath();
        if (rule.x !== null) { ctx.moveTo(x(rule.x), bbox.top); ctx.lineTo(x(rule.x), bbox.top + bbox.height); }
        else { ctx.moveTo(bbox.left, y(rule.y)); ctx.lineTo(bbox.left + bbox.width, y(rule.y)); }
        ctx.stroke();
        if (rule.text) {
          const right = x(rule.x) > bbox.left + 0.6 * bbox.width;
          ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
          ctx.fillStyle = colour(rule.colour);
          ctx.textAlign = right ? "right" : "left";
          ctx.fillText(rule.text, x(rule.x) + (right ? -4 : 4) * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
        }
      }
      for (const one of spec.lines) {
        line(ctx, one.dashed ? [5, 3] : null, 1.7);
        ctx.strokeStyle = ctx.fillStyle = colour(one.colour);
        ctx.beginPath();
        one.points.forEach(([px, py], at) => (at ? ctx.lineTo(x(px), y(py)) : ctx.moveTo(x(px), y(py))));
        ctx.stroke();
        if (one.dots) for (const [px, py] of one.points) dot(ctx, x(px), y(py), 2 * devicePixelRatio);
      }
      for (const mark of spec.marks) {
        ctx.fillStyle = colour(mark.colour);
        if (mark.star) star(ctx, x(mark.x), y(mark.y), 6 * devicePixelRatio);
        else dot(ctx, x(mark.x), y(mark.y), mark.size * devicePixelRatio);
      }
      ctx.restore();
    };
    const one = (of, more) => axis({
      label: of.label, labelSize: 16, splits: () => of.ticks.map(([value]) => value),
      values: () => of.ticks.map(([, text]) => text), filter: (_self, splits) => splits, ...more,
    });
    mount(place, {
      height: 240, legend: { show: false }, cursor: { show: false }, padding: [8, 12, 0, 0],
      scales: {
        x: { time: false, distr: spec.x.log ? 3 : 1, range: ends(spec.x.range) },
        y: { distr: spec.y.log ? 3 : 1, range: ends(spec.y.range) },
      },
      axes: [one(spec.x, { size: 22 }), one(spec.y, { size: 42 })],
      series: [{}, { show: true, points: { show: false } }],
      hooks: { draw: [draw] },
    }, [spec.x.range, [null, null]]);
  }

  function dot(ctx, x, y, size) { ctx.beginPath(); ctx.arc(x, y, size, 0, 7); ctx.fill(); }
  function star(ctx, x, y, size) {
    ctx.beginPath();
    for (let at = 0; at < 10; at += 1) {
      const angle = (at * Math.PI) / 5 - Math.PI / 2, reach = at % 2 ? size * 0.45 : size;
      ctx.lineTo(x + reach * Math.cos(angle), y + reach * Math.sin(angle));
    }
    ctx.fill();
  }

  function shape(parent, name, values) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(values)) made.setAttribute(key, value);
    parent.append(made);
    return made;
  }

  /* Rows of parts from 0 to 1: {title, amount, parts: [[from, to, colour]]}. */
  function strips(place, spec) {
    for (const row of spec.rows) {
      if (row.title) {
        const head = document.createElement("div"), title = document.createElement("span"), amount = document.createElement("span");
        head.className = "strip-head"; title.textContent = row.title; amount.textContent = row.amount;
        head.append(title, amount); place.append(head);
      }
      const svg = shape(place, "svg", { class: "strip", viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" });
      for (const [from, to, name] of row.parts) {
        shape(svg, "rect", { x: 1000 * from, width: Math.max(2, 1000 * (to - from)), height: 10, class: `f-${name}` });
      }
    }
  }

  /* Draw what a page declares: elements with data-plot, and JSON with the id "plots". */
  function declared() {
    const source = document.getElementById("plots");
    if (!source) return;
    const kinds = { curves, strips };
    const specs = JSON.parse(source.textContent);
    for (const place of document.querySelectorAll("[data-plot]")) kinds[specs[place.dataset.plot].kind](place, specs[place.dataset.plot]);
  }
  document.addEventListener("DOMContentLoaded", declared);

  return { overTime, short, colour };
})();
