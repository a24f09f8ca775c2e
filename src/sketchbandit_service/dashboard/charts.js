// Helpers of the dashboard: elements, numbers as text, lines over time.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== null) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function shape(tag, attributes, text = null) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== null) made.textContent = text;
  return made;
}

function setText(id, text) {
  const found = byId(id);
  if (found.textContent !== text) found.textContent = text; // a screen reader announces changes only
}

const compact = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

function bytes(count) {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  let at = 0;
  while (count >= 1024 && at < units.length - 1) { count /= 1024; at += 1; }
  return `${compact.format(count)} ${units[at]}`;
}

function duration(seconds) {
  if (seconds < 100) return `${whole.format(seconds)} s`;
  if (seconds < 6000) return `${whole.format(seconds / 60)} min`;
  if (seconds < 172800) return `${compact.format(seconds / 3600)} h`;
  return `${compact.format(seconds / 86400)} days`;
}

// A line over time, with gaps where there are no values; and a level with its interval, if one is given.
// Returns the drawn values, for the text below.
function draw(svg, values, seconds, level = null) {
  const box = svg.viewBox.baseVal;
  const left = 66, right = box.width - 8, top = 10, bottom = box.height - 30;
  const known = values.filter((value) => value !== null);
  const seen = level ? [...known, level.low, level.high] : known;
  const least = Math.min(0, ...seen), most = Math.max(...seen, least + 1e-9, seen.length ? 0 : 1);
  const ceiling = most <= 1 && most > 0.25 && least >= 0 ? 1 : most * 1.08 || 1;
  const x = (at) => left + ((right - left) * at) / Math.max(values.length - 1, 1);
  const y = (value) => bottom - ((bottom - top) * (value - least)) / (ceiling - least);
  const parts = [
    shape("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }),
    shape("line", { class: "axis", x1: left, x2: left, y1: top, y2: bottom }),
    shape("text", { x: left - 6, y: top + 8, "text-anchor": "end" }, compact.format(ceiling)),
    shape("text", { x: left - 6, y: bottom, "text-anchor": "end" }, compact.format(least)),
    shape("text", { x: left, y: box.height - 8 }, `${duration(seconds)} ago`),
    shape("text", { x: right, y: box.height - 8, "text-anchor": "end" }, "now"),
  ];
  if (level) {
    parts.push(shape("rect", { class: "band", x: left, width: right - left, y: y(level.high),
      height: y(level.low) - y(level.high) }));
    parts.push(shape("line", { class: "uniform", x1: left, x2: right, y1: y(level.uniform), y2: y(level.uniform) }));
  }
  let path = "", pen = false;
  values.forEach((value, at) => {
    if (value === null) { pen = false; return; }
    path += `${pen ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = true;
  });
  if (path) parts.push(shape("path", { class: "curve", d: path }));
  const last = values.findLastIndex((value) => value !== null);
  if (last >= 0) parts.push(shape("circle", { class: "dot", r: 4, cx: x(last), cy: y(values[last]) }));
  svg.replaceChildren(...parts);
  return known;
}

// Merges intervals, so that each has some rewards and the curve shows more than noise. When nobody asks any more,
// only defaults arrive, of decisions of before: they say nothing about these intervals and have no mean.
function gathered(history, most) {
  const isTold = history.rewards.map((rewards, at) => history.decisions[at] > 0 || rewards > history.defaults[at]);
  const answered = history.rewards.reduce((a, b) => a + b, 0);
  const wanted = Math.max(1, Math.min(most, Math.floor(answered / 10)));
  const size = Math.max(1, Math.ceil(history.decisions.length / wanted));
  const groups = [];
  for (let at = 0; at < history.decisions.length; at += size) {
    const sum = (list) => list.slice(at, at + size).reduce((a, b) => a + b, 0);
    const told = (list) => sum(list.map((value, place) => (isTold[place] ? value : 0)));
    const counted = told(history.rewards);
    const stretches = Math.min(size, history.decisions.length - at);
    groups.push({
      until: history.start + (at + stretches) * history.width, seconds: stretches * history.width,
      decisions: sum(history.decisions), rewards: sum(history.rewards), width: sum(history.width_sum),
      mean: counted ? told(history.reward_sum) / counted : null,
    });
  }
  return groups;
}
