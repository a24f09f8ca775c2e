// The dashboard asks the API once a second and shows the answer. Everything from the API is set as text, never
// as HTML.
"use strict";

const EVERY_MS = 1000;
const TOKEN = "sketchbandit-token";

let names = [];

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

function row(cells) {
  const made = element("tr", null);
  made.append(...cells.map((cell) => element("td", cell)));
  return made;
}

function clock(at) {
  return new Date(at * 1000).toLocaleTimeString();
}

const total = (list) => list.reduce((a, b) => a + b, 0);
const whenKnown = (value) => (value === null ? "–" : compact.format(value));

function showStats(stats) {
  if (stats.range !== byId("range").value) return; // another range was chosen in the meantime
  setText("name", stats.name);
  setText("about", `${stats.policy}, ${stats.explore}, ${stats.reward_model} rewards, ${whole.format(stats.dim)} features` +
    (stats.stored_arms ? `, ${whole.format(stats.stored_arms)} stored arms` : "") +
    (stats.actions === null ? "" : ` of a context, ${whole.format(stats.actions)} actions`));
  setText("health", stats.health);
  setText("scaling", `Scaling of the features: ${stats.scaling}.` +
    (stats.baseline === null ? "" : ` Rewards are learned less their mean, ${compact.format(stats.baseline)}.`) +
    (stats.forget === null ? "" :
      ` Of ${whole.format(stats.rounds)} rewards learned from, ${compact.format(stats.effective_rounds)} still count.`));
  byId("health").dataset.healthy = String(stats.is_healthy);
  byId("alarm").hidden = stats.is_healthy;
  setText("alarm", stats.is_healthy ? "" : stats.health);
  showRange(stats);
  showComparison(stats);
  showShares(stats.shares);
  showCandidates(stats.candidates);
  setText("open", whole.format(stats.open));
  setText("most-open", `of ${whole.format(stats.max_open)} at most`);
  showSketch(stats.sketch, stats.policy_bytes);
  byId("recent").replaceChildren(...stats.recent.map((recent) => row([
    clock(recent.at), recent.decision, recent.position ? `${recent.arm} (place ${recent.position + 1})` : recent.arm,
    whole.format(recent.arms), compact.format(recent.score), whenKnown(recent.width), whenKnown(recent.propensity),
    recent.kind === null ? "open" : recent.reward === null ? "none" :
      compact.format(recent.reward) + (recent.kind === "default" ? " (default)" : ""),
  ])));
}

// Curves and counts over the chosen time range.
function showRange(stats) {
  const history = stats.history, seconds = stats.now - history.start;
  const groups = gathered(history, 40);
  const finished = groups.length > 1 ? groups.slice(0, -1) : groups; // the last interval is not over yet
  const rewards = total(history.rewards), decisions = total(history.decisions);
  const rates = finished.map((group) => group.mean);
  const known = draw(byId("rate-chart"), rates, seconds, stats.comparison);
  setText("rate", rewards ? compact.format(total(history.reward_sum) / rewards) : "no rewards yet");
  setText("rate-count", rewards ? `of ${whole.format(rewards)} rewards` : "");
  setText("rate-summary", known.length < 2 ? "Too few rewards for a curve." :
    `From ${compact.format(known[0])} at the beginning to ${compact.format(known[known.length - 1])} at the end.` +
    (stats.comparison ? " The dashed line is the uniform choice, with its 95 % interval." : ""));
  const widths = draw(byId("width-chart"),
    finished.map((group) => (group.decisions ? group.width / group.decisions : null)), seconds);
  setText("width-summary", widths.length < 2 ? "Too few decisions for a curve." :
    `Mean width of the confidence interval, divided by its radius: from ${compact.format(widths[0])} to ` +
    `${compact.format(widths[widths.length - 1])}.`);
  const speeds = draw(byId("speed-chart"), finished.map((group) => group.decisions / group.seconds), seconds);
  setText("speed-summary", `${compact.format(stats.decisions_per_second)} now; between ` +
    `${compact.format(Math.min(...speeds))} and ${compact.format(Math.max(...speeds))}.`);
  setText("decisions", whole.format(decisions));
  setText("decisions-all", decisions === stats.decisions ? "" : `of ${whole.format(stats.decisions)} ever`);
  setText("rewards", whole.format(rewards));
  setText("defaults", stats.defaults ? `${whole.format(stats.defaults)} ever without a reward in time` : "");
  byId("curve").replaceChildren(...gathered(history, 12).map((group) => row([
    clock(group.until), whole.format(group.decisions), whole.format(group.rewards),
    whenKnown(group.mean),
  ])));
}

let quarantined = "[]"; // the ones that are shown now

function showQuarantined(found) {
  const shown = byId("quarantined");
  shown.hidden = !found.length;
  const texts = found.map((one) => `${one.name} is out of service: ${one.reason}`);
  const told = JSON.stringify(texts);
  if (told === quarantined) return; // a screen reader says it only once
  quarantined = told;
  shown.replaceChildren(...texts.map((text) => element("p", text, { class: "health", "data-healthy": "false" })));
}

function showComparison(stats) {
  const found = stats.comparison;
  setText("uniform", found ? compact.format(found.uniform) : "not known yet");
  setText("interval", found ? `${compact.format(found.low)} to ${compact.format(found.high)} (95 %)` : "");
  const gain = found ? found.mean_reward - found.uniform : 0;
  const sure = found && (found.mean_reward > found.high || found.mean_reward < found.low);
  setText("gain", found ? `${gain < 0 ? "−" : "+"}${compact.format(Math.abs(gain))}` : "not known yet");
  setText("gain-text", !found ? "" : sure ? "outside the interval" : "within the interval: not sure");
  setText("comparison-note", found ? `The arms shown first earned ${compact.format(found.mean_reward)}. ` +
    `Estimated from ${whole.format(found.count)} rewards by the propensities of their arms. ` +
    (stats.comparison_note ?? "") : stats.comparison_note);
}

function interval(found) {
  return compact.format(found.value) +
    (found.low === null ? "" : ` (${compact.format(found.low)} to ${compact.format(found.high)})`);
}

function showCandidates(candidates) {
  byId("candidates-section").hidden = !candidates.length;
  byId("candidates").replaceChildren(...candidates.map((one) => row([
    one.name, one.explore ? `${one.policy}, ${one.explore.rule}` : one.policy, whole.format(one.rounds),
    one.value ? interval(one.value) : "unknown", one.value ? interval(one.value.live) : "unknown",
    one.value ? `${whole.format(one.value.count)}, effective ${compact.format(one.value.effective)}` : "–",
    [one.value?.verdict, one.value_note].filter(Boolean).join(" "),
  ])));
}

function showShares(shares) {
  const all = total(shares.map((share) => share.shown));
  byId("shares").replaceChildren(...shares.map((share) => {
    const made = row([share.arm === "" ? "all others" : share.arm, "", whole.format(share.shown)]);
    const part = share.shown / all;
    const bar = element("meter", null, { min: 0, max: 1, value: part, "aria-label": "share" });
    made.children[1].append(bar, ` ${compact.format(100 * part)} %`);
    return made;
  }));
}

function showSketch(sketch, memory) {
  setText("sketch", `${sketch.kind} of size ${whole.format(sketch.size)}, ${whole.format(sketch.rows)} rows` +
    (sketch.is_exact ? ", exact" : "") + `; the policy takes ${bytes(memory)}`);
  const meter = byId("budget");
  const has = sketch.certificate !== null && sketch.budget !== null && sketch.budget > 0;
  meter.hidden = !has;
  byId("budget-label").hidden = !has;
  if (has) {
    meter.max = sketch.budget;
    meter.value = sketch.certificate;
  }
  setText("budget-text", sketch.certificate === null ? "This sketch has no bound on its error." :
    has ? `The spectral error is at most ${compact.format(sketch.certificate)}. Its budget now is ` +
      `${compact.format(sketch.budget)}` + (sketch.limit > sketch.budget ?
        `, and it never exceeds ${compact.format(sketch.limit)}. The sketch uses its budget to keep few rows.` : ".") :
      `The spectral error is at most ${compact.format(sketch.certificate)}.`);
}

byId("origin").textContent = location.origin;

function connection(state, text) {
  byId("connection").dataset.state = state;
  setText("connection", text);
}

async function refresh() {
  try {
    const listed = await ask("/v1/bandits");
    showNames(listed.bandits);
    showQuarantined(listed.quarantined);
    const range = byId("range").value;
    if (names.length) showStats(await ask(`/v1/bandits/${encodeURIComponent(selected())}/stats?range=${range}`));
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
  event.preventDefault(); // the address keeps the name of the bandit
  byId("content").focus();
});
byId("range").addEventListener("change", refresh);
addEventListener("hashchange", () => { refresh(); byId("content").focus({ preventScroll: true }); });
run();
