"use strict";
// Predicts the speedup of a pair at any γ, acceptance and draft cost, from the costs that the campaign measured: what
// specmoe/analysis/cost_model.py does, in the browser. The words around the numbers are in whatif.html.j2.

// The value at a place of values at knots: linear between them, constant beyond.
function valueAt(at, knots, values) {
  if (knots.length < 2) return values[0] ?? 0;
  const place = Math.min(Math.max(at, knots[0]), knots.at(-1));
  const next = knots.findIndex((knot) => knot > place);
  const right = next < 0 ? knots.length - 1 : Math.max(next, 1);
  const part = (place - knots[right - 1]) / (knots[right] - knots[right - 1]);
  return values[right - 1] * (1 - part) + values[right] * part;
}

const costAt = (pair, costs, kind, place) => valueAt(place, pair.knots[kind], costs[kind]);

// The milliseconds that a round takes. `held` has the chances that its first 1, 2, ... tokens are all accepted.
function roundTime(pair, costs, held, factor) {
  const gamma = held.length;
  const batch = (width) => costAt(pair, costs, "pass", width) + costAt(pair, costs, "catchup", width);
  const drafting = gamma * factor * costAt(pair, costs, "draft", gamma);
  let time = drafting + batch(gamma + 1) + costAt(pair, costs, "overhead", gamma + 1);
  if (pair.replays) {
    held.forEach((all, accepted) => {
      const exactly = (accepted ? held[accepted - 1] : 1) - all;
      time += exactly * (batch(accepted + 2) + costs.replay[0]);
    });
  }
  return time;
}

// The speedup with its interval, which is null where nothing was repeated; the draft costs `factor` times what it did.
function predict(pair, held, factor) {
  const accepted = held.reduce((sum, chance) => sum + chance, 0);
  const tokens = 1 + accepted + (pair.replays ? 1 - held.at(-1) : 0);
  const speedupBy = (costs) => (tokens * costs.token[0]) / roundTime(pair, costs, held, factor);
  const speedup = speedupBy(pair.costs);
  const rate = accepted / held.length;
  if (pair.quantile === null) return { rate, speedup, low: null, high: null };
  const logs = pair.without.map((costs) => Math.log(speedupBy(costs)));
  const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
  const squares = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / logs.length;
  const reach = Math.exp(pair.quantile * Math.sqrt((logs.length - 1) * squares));
  return { rate, speedup, low: speedup / reach, high: speedup * reach };
}

// Tokens that are accepted with the same chance after accepted ones.
const alike = (gamma, chance) => Array.from({ length: gamma }, (_, place) => chance ** (place + 1));

// The chance of each token at which a share of all drafted ones is accepted.
function chanceOf(gamma, rate) {
  let [low, high] = [0, 1];
  for (let halved = 0; halved < 60; halved++) {
    const chance = (low + high) / 2;
    if (alike(gamma, chance).reduce((sum, all) => sum + all, 0) < rate * gamma) low = chance;
    else high = chance;
  }
  return (low + high) / 2;
}

// The same chances as in cost_tables.py: denser towards 1, where the acceptance of long drafts changes fastest.
function byRate(pair, gamma, factor) {
  const chances = Array.from({ length: 401 }, (_, place) => 1 - (1 - place / 400) ** 2);
  return chances.map((chance) => predict(pair, alike(gamma, chance), factor));
}

// The rate from which on a speedup, or an end of its interval, is at least 1; null if it is nowhere.
function breakEven(line, key) {
  const last = line.findLastIndex((point) => point[key] < 1);
  if (last === line.length - 1) return null;
  if (last < 0) return 0;
  const [before, after] = [line[last], line[last + 1]];
  return before.rate + ((1 - before[key]) / (after[key] - before[key])) * (after.rate - before.rate);
}

function drawn(svg, name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  svg.append(element);
  return element;
}

// A line of predictions by `x` with its interval, and the settings and the prediction that are points on its plane.
function draw(svg, ticks, line, settings, here) {
  const [left, right, above, below] = [40, 380, 12, 226];
  const most = 1.08 * Math.max(1, here.speedup, ...[...line, ...settings].map((one) => one.speedup));
  const step = [0.2, 0.5, 1, 2, 5, 10, 20].find((one) => most / one <= 6) ?? most / 5;
  const [first, last] = [line[0].x, line.at(-1).x];
  const place = (x) => left + ((x - first) / (last - first)) * (right - left);
  const height = (value) => below - (Math.min(value, most) / most) * (below - above);
  const dot = (one, key) => `${place(one.x).toFixed(1)} ${height(one[key]).toFixed(1)}`;
  const path = (points, key = "speedup") => `M${points.map((one) => dot(one, key)).join("L")}`;
  svg.replaceChildren();
  if (here.low !== null) {
    drawn(svg, "path", { d: `${path(line, "high")}${path([...line].reverse(), "low").replace("M", "L")}Z`, class: "band" });
  }
  for (let value = 0; value <= most; value += step) {
    drawn(svg, "path", { d: `M${left} ${height(value)}H${right}`, class: "grid" });
    const text = drawn(svg, "text", { x: left - 6, y: height(value) + 5, class: "label end" });
    text.textContent = value.toFixed(step < 1 ? 1 : 0);
  }
  for (const tick of ticks) {
    drawn(svg, "text", { x: place(tick), y: below + 20, class: "label token" }).textContent = tick;
  }
  drawn(svg, "path", { d: `M${left} ${height(1)}H${right}`, class: "even" });
  const wide = line.findIndex((one) => one.extrapolated);
  const within = wide < 0 ? line : line.slice(0, wide);
  if (within.length) drawn(svg, "path", { d: path(within), class: "line" });
  if (wide >= 0) drawn(svg, "path", { d: path(line.slice(Math.max(wide - 1, 0))), class: "line beyond" });
  for (const setting of settings) {
    if (setting.low !== null) drawn(svg, "path", { d: `M${dot(setting, "low")}L${dot(setting, "high")}`, class: "reach" });
    const [cx, cy] = [place(setting.x), height(setting.speedup)];
    drawn(svg, "circle", { cx, cy, r: 4.5, class: setting.own ? "setting" : "setting forced" });
  }
  drawn(svg, "path", { d: `M${dot(here, "speedup")}m0-8l7 8l-7 8l-7-8z`, class: "here" });
}

function askWhatIf(section) {
  const pairs = JSON.parse(section.dataset.pairs);
  const ask = Object.fromEntries([...section.querySelectorAll("[data-ask]")].map((one) => [one.dataset.ask, one]));
  const each = (kind, name, act) => section.querySelectorAll(`[data-${kind}="${name}"]`).forEach(act);
  const say = (name, text) => each("say", name, (one) => (one.textContent = text));
  const show = (name, holds) => each("if", name, (one) => (one.hidden = !holds));
  const percent = (share) => (share === null ? "–" : (100 * share).toFixed(0));
  const interval = ({ low, high }) => (low === null ? "" : ` [${low.toFixed(2)}, ${high.toFixed(2)}]`);
  const chosen = () => pairs[ask.pair.value];

  const answer = () => {
    const pair = chosen();
    const [gamma, factor] = [Number(ask.gamma.value), Number(ask.cost.value) / 100];
    const chance = chanceOf(gamma, Number(ask.rate.value) / 100);
    const at = (length) => predict(pair, alike(length, chance), factor);
    const wider = (length) => length + 1 > pair.widest;
    const now = at(gamma);
    const rates = byRate(pair, gamma, factor).map((one) => ({ ...one, extrapolated: wider(gamma) }));
    const lengths = Array.from({ length: Number(ask.gamma.max) }, (_, place) => place + 1);
    const line = lengths.map((length) => ({ ...at(length), x: length, extrapolated: wider(length) }));
    const [even, least, most] = ["speedup", "high", "low"].map((key) => breakEven(rates, key));
    const tooWide = now.low !== null && now.high > 4 * now.low;
    const same = pair.settings.filter((setting) => setting.gamma === gamma);
    const words = (one) => `${one.speedup.toFixed(2)}${interval(one)} (${percent(one.rate)} %${one.own ? "" : ", †"})`;

    say("gamma", gamma);
    say("rate", percent(now.rate));
    say("factor", ask.cost.value);
    say("cost", (factor * costAt(pair, pair.costs, "draft", gamma)).toFixed(1));
    say("speedup", now.speedup.toFixed(2));
    say("interval", tooWide ? "" : interval(now));
    say("even", percent(even));
    say("between", now.low === null ? "" : ` [${percent(least)}, ${percent(most)}]`);
    say("perhaps", percent(least));
    say("widest", pair.widest);
    say("width", gamma + 1);
    say("measured", same.map(words).join("; "));
    show("wide", tooWide);
    show("pays", even !== null);
    show("never", even === null);
    show("possible", now.low !== null && !tooWide && least !== null);
    show("extrapolated", wider(gamma));
    show("measured", same.length);
    const [ofRate, ofGamma] = section.querySelectorAll("svg");
    const atRate = (one) => ({ ...one, x: 100 * one.rate });
    draw(ofRate, [0, 20, 40, 60, 80, 100], rates.map(atRate), same.map(atRate), atRate(now));
    const own = pair.settings.filter((setting) => setting.own).map((setting) => ({ ...setting, x: setting.gamma }));
    draw(ofGamma, [1, 2, 4, 8, 16, 32].filter((tick) => tick <= lengths.length), line, own, { ...now, x: gamma });
  };

  // A pair begins with the best that was measured of it.
  const begin = () => {
    const { settings, knots } = chosen();
    // Nothing is known of wider passes than were timed.
    ask.gamma.max = Math.min(...[knots.pass, knots.catchup].filter((at) => at.length).map((at) => at.at(-1))) - 1;
    const best = [...settings].sort((one, other) => other.own - one.own || other.speedup - one.speedup)[0];
    ask.gamma.value = best?.gamma ?? knots.draft.at(-1);
    ask.rate.value = best ? 100 * best.rate : 50;
    ask.cost.value = 100;
    answer();
  };

  ask.pair.addEventListener("change", begin);
  for (const one of [ask.gamma, ask.rate, ask.cost]) one.addEventListener("input", answer);
  section.hidden = false;
  document.getElementById("whatif-bare").hidden = true;
  begin();
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".whatif").forEach(askWhatIf));
