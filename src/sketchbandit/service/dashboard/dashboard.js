// The dashboard: asks the API once a second and shows what it says. Everything that comes from the API is set
// as text, never as HTML.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const EVERY_MS = 1000;
const TOKEN = "sketchbandit-token";
const byId = (id) => document.getElementById(id);

let names = [];

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
  if (found.textContent !== text) found.textContent = text; // a screen reader hears changes only
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

class Refused extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

async function ask(path) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers, cache: "no-store" });
  if (!answer.ok) {
    const body = await answer.json().catch(() => ({}));
    throw new Refused(answer.status, body.error ? body.error.message : `status ${answer.status}`);
  }
  return answer.json();
}

function selected() {
  let wanted = "";
  try { wanted = decodeURIComponent(location.hash.slice(1)); } catch { /* not a name */ }
  return names.includes(wanted) ? wanted : names[0];
}

function showNames(bandits) {
  const found = bandits.map((bandit) => bandit.name);
  if (JSON.stringify(found) !== JSON.stringify(names)) {
    names = found;
    byId("bandits").replaceChildren(...names.map((name) => {
      const item = element("li", null);
      item.append(element("a", name, { href: `#${encodeURIComponent(name)}` }));
      return item;
    }));
  }
  const current = selected();
  for (const link of byId("bandits").querySelectorAll("a")) {
    link.setAttribute("aria-current", String(link.textContent === current));
  }
  byId("empty").hidden = names.length > 0;
  byId("bandit").hidden = names.length === 0;
}

// A line over time: gaps where there is nothing. Gives what was drawn, for the words below it.
function draw(svg, values, seconds) {
  const box = svg.viewBox.baseVal;
  const left = 66, right = box.width - 8, top = 10, bottom = box.height - 30;
  const known = values.filter((value) => value !== null);
  const least = Math.min(0, ...known), most = Math.max(...known, least + 1e-9, known.length ? 0 : 1);
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

// Stretches taken together, so that each has some rewards and the curve shows more than noise.
function gathered(history, most) {
  const answered = history.rewards.reduce((a, b) => a + b, 0);
  const wanted = Math.max(1, Math.min(most, Math.floor(answered / 10)));
  const size = Math.max(1, Math.ceil(history.decisions.length / wanted));
  const groups = [];
  for (let at = 0; at < history.decisions.length; at += size) {
    const sum = (list) => list.slice(at, at + size).reduce((a, b) => a + b, 0);
    const stretches = Math.min(size, history.decisions.length - at);
    groups.push({
      until: history.start + (at + stretches) * history.width, seconds: stretches * history.width,
      decisions: sum(history.decisions), rewards: sum(history.rewards), total: sum(history.reward_sum),
    });
  }
  return groups;
}

function row(cells) {
  const made = element("tr", null);
  made.append(...cells.map((cell) => element("td", cell)));
  return made;
}

function clock(at) {
  return new Date(at * 1000).toLocaleTimeString();
}

function showStats(stats) {
  setText("name", stats.name);
  setText("about", `${stats.policy}, ${whole.format(stats.dim)} features` +
    (stats.stored_arms ? `, ${whole.format(stats.stored_arms)} stored arms` : ""));
  setText("health", stats.health);
  byId("health").dataset.healthy = String(stats.is_healthy);
  const groups = gathered(stats.history, 40);
  const age = stats.now - stats.history.start;
  const finished = groups.length > 1 ? groups.slice(0, -1) : groups; // the last stretch is not over yet
  const rates = finished.map((group) => (group.rewards ? group.total / group.rewards : null));
  const known = draw(byId("rate-chart"), rates, age);
  const now = known.length ? compact.format(known[known.length - 1]) : "no rewards yet";
  setText("rate", now);
  setText("rate-summary", known.length < 2 ? "Too few rewards for a curve." :
    `From ${compact.format(known[0])} at first to ${now} now; ${compact.format(stats.mean_reward)} over all.`);
  const speeds = draw(byId("speed-chart"), finished.map((group) => group.decisions / group.seconds), age);
  setText("speed-summary",
    `Between ${compact.format(Math.min(...speeds))} and ${compact.format(Math.max(...speeds))}.`);
  setText("speed", compact.format(stats.decisions_per_second));
  setText("open", whole.format(stats.open));
  setText("most-open", `of ${whole.format(stats.max_open)} at most`);
  setText("decisions", whole.format(stats.decisions));
  setText("rewards", whole.format(stats.rounds));
  setText("defaults", stats.defaults ? `${whole.format(stats.defaults)} unanswered` : "");
  setText("memory", bytes(stats.policy_bytes));
  showSketch(stats.sketch);
  byId("recent").replaceChildren(...stats.recent.map((recent) => row([
    clock(recent.at), recent.decision, recent.arm, whole.format(recent.arms), compact.format(recent.score),
    recent.kind === null ? "open" : recent.reward === null ? "none came" :
      compact.format(recent.reward) + (recent.kind === "default" ? " (default)" : ""),
  ])));
  const curve = gathered(stats.history, 12);
  byId("curve").replaceChildren(...curve.map((group) => row([
    clock(group.until), whole.format(group.decisions), whole.format(group.rewards),
    group.rewards ? compact.format(group.total / group.rewards) : "–",
  ])));
}

function showSketch(sketch) {
  setText("sketch", `${sketch.kind} of size ${whole.format(sketch.size)}, ${whole.format(sketch.rows)} rows` +
    (sketch.is_exact ? ", exact" : ""));
  const meter = byId("budget");
  const has = sketch.certificate !== null && sketch.budget !== null && sketch.budget > 0;
  meter.hidden = !has;
  byId("budget-label").hidden = !has;
  if (has) {
    meter.max = sketch.budget;
    meter.value = sketch.certificate;
  }
  setText("budget-text", sketch.certificate === null ? "It certifies nothing." :
    has ? `The spectral error is at most ${compact.format(sketch.certificate)}. What it may be by now: ` +
      `${compact.format(sketch.budget)}` + (sketch.limit > sketch.budget ?
        `; ever: ${compact.format(sketch.limit)}. It uses what it may, to keep few rows.` : ".") :
      `The spectral error is at most ${compact.format(sketch.certificate)}.`);
}

byId("origin").textContent = location.origin;

function connection(state, text) {
  byId("connection").dataset.state = state;
  setText("connection", text);
}

async function refresh() {
  try {
    showNames((await ask("/v1/bandits")).bandits);
    if (names.length) showStats(await ask(`/v1/bandits/${encodeURIComponent(selected())}/stats`));
    byId("token-form").hidden = true;
    connection("live", "live");
  } catch (error) {
    if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
      byId("token-form").hidden = false;
      connection("lost", sessionStorage.getItem(TOKEN) ? error.message : "a token is needed");
    } else {
      connection("lost", "connection lost; trying again");
    }
  }
}

async function run() {
  for (;;) {
    if (!document.hidden) await refresh();
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, byId("token").value.trim());
  byId("token").value = "";
  refresh();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address keeps the bandit's name
  byId("content").focus();
});
addEventListener("hashchange", () => { refresh(); byId("content").focus({ preventScroll: true }); });
run();
