// Scores and price tags as the report of a comparison shows them.

import { element, metricTitle, words } from "./element.js";
import { percent, scaled, show } from "./units.js";

/** Costs in the order of the report, by the names it gives them. */
export const COSTS = {
  train_seconds: "train time",
  train_cpu_seconds: "train processor time",
  total_seconds: "total time",
  trained_parameters: "trained parameters",
  stored_parameters: "stored parameters",
  stored_bytes: "stored size",
  train_flops: "train FLOP",
  padding_flops: "train FLOP on padding",
  predict_flops: "FLOP per prediction",
  peak_memory_bytes: "peak memory",
  peak_accelerator_bytes: "peak GPU memory",
  energy_joules: "energy",
  co2e_grams: "CO2e",
  money: "money",
  predict_latency_seconds: "latency",
  predict_per_second: "predictions per second",
};
/** Those that are in a list of tasks or methods. */
export const LISTED = [
  "train_seconds", "predict_latency_seconds", "stored_bytes", "trained_parameters", "peak_memory_bytes",
];

const GRADES = {
  meter: ["A", "read off an instrument"],
  counter: ["B", "counted while it ran"],
  model: ["C", "computed from other readings"],
  guess: ["D", "a guess, which may be wrong by a factor of two"],
};

/** The title of a cost; one that this page has never heard of keeps its own name. */
export function costName(name) {
  return COSTS[name] ?? words(name);
}

/** The names of all costs that any of these price tags has, in the report's order. */
export function costNames(tags) {
  const found = new Set(tags.flatMap((tag) => Object.keys(tag ?? {})));
  return [...Object.keys(COSTS).filter((name) => found.has(name)), ...[...found].filter((name) => !(name in COSTS))];
}

/** One price with the letter of its grade, as nodes. */
export function price(cost) {
  if (!cost || cost.value === null || cost.value === undefined) return ["–"];
  const [letter, meaning] = GRADES[cost.grade] ?? ["?", "unknown"];
  const rate = cost.unit === "per second"; // its title says so
  const text = rate ? scaled(cost.value, "") : show(cost.value, cost.unit);
  return [text, element("sup", {}, element("abbr", { title: `${cost.grade}: ${meaning}` }, letter))];
}

/** What the letters mean, as far as these price tags have them. */
export function gradesLegend(tags) {
  const found = new Set(tags.flatMap((tag) => Object.values(tag ?? {}).map((cost) => cost.grade)));
  const lines = Object.entries(GRADES).filter(([grade]) => found.has(grade))
    .map(([grade, [letter, meaning]]) => `${letter} ${grade}: ${meaning}`);
  return lines.length > 0 ? `${lines.join("; ")}. – is unknown or does not apply.` : "";
}

/** `accuracy 94.0`: the headline of one run's scores. */
export function headline(scores, positive) {
  const [first] = Object.entries(scores ?? {});
  if (!first) return ["–"];
  return [element("span", { class: "quiet" }, metricTitle(first[0], positive)), `\u00a0${percent(first[1])}`];
}
