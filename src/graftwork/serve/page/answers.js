// Answers of every kind: bars of probabilities, marked spans and tags, numbers, rankings, texts.

import { element } from "./element.js";
import { chance, count } from "./units.js";
import { taskLink } from "./links.js";

const SHOWN = 5; // bars before the rest is folded away
const NOTHING = "(nothing was written)";
/** What is said of a text that was cut. */
export const CUT = "The text is longer than the backbone reads: only its beginning was read.";

/** A row's answers as nodes: one at full length, or many side by side; `more(name, answer)` is under each. */
export function answersView({ answers, cut }, inputs, tasks, more = () => null) {
  const names = Object.keys(answers);
  const note = cut && element("p", { class: "note" }, CUT);
  const blocks = names.map((name) => element("article", { class: "answer-of" },
    (tasks.length > 1 || names.length > 1) && element("h3", {}, element("a", { href: taskLink(name) }, name)),
    answerView(answers[name], inputs), more(name, answers[name])));
  return [note, element("div", { class: names.length > 1 ? "many" : "one" }, blocks)].filter(Boolean);
}

/** One sentence for the status line, which a screen reader says. */
export function summary({ answers }) {
  const names = Object.keys(answers);
  if (names.length === 0) return "No task answered.";
  if (names.length > 1) return `${count(names.length)} tasks have answered.`;
  return `${names[0]}: ${inWords(answers[names[0]])}`;
}

function inWords(answer) {
  if ("best_guess" in answer) return `not sure, perhaps ${[answer.best_guess].flat().join(", ")}`;
  if ("ranking" in answer) return `first is ${answer.ranking[0]?.choice ?? "nothing"}`;
  if ("spans" in answer) return answer.spans.map(({ text, label }) => `${text} ${label}`).join(", ") || "no spans";
  if ("tags" in answer) return answer.tags.map((tag, at) => `${answer.words[at]} ${tag}`).join(", ");
  if ("answer" in answer) return `${answer.answer || "no answer"}, ${chance(answer.probability)}`;
  if ("choice" in answer) return `${answer.choice}, ${chance(answer.probabilities[answer.index])}`;
  if ("value" in answer) return number(answer.value);
  if ("text" in answer) return answer.text || NOTHING;
  if (Array.isArray(answer.label)) return answer.label.join(", ") || "no label";
  return `${answer.label}, ${chance(answer.probabilities[answer.label])}`;
}

/** What a kind's answer looks like; its keys say which kind it is. */
function answerView(answer, inputs) {
  if ("best_guess" in answer) {
    const { best_guess: guess, ...rest } = answer;
    const [place] = Object.keys(rest); // of the prediction, which was withheld
    return [element("p", { class: "verdict" }, "not sure"), element("p", { class: "caption" }, "The best guess:"),
      answerView({ ...rest, [place]: guess }, inputs)];
  }
  if ("ranking" in answer) return ranking(answer.ranking);
  if ("spans" in answer) return spans(answer.spans, textOf(inputs));
  if ("tags" in answer) return tags(answer);
  if ("answer" in answer) return passageAnswer(answer, inputs.context);
  if ("choice" in answer) return choice(answer, inputs.choices);
  if ("value" in answer) return element("p", { class: "verdict" }, number(answer.value));
  if ("text" in answer) return written(answer);
  return labels(answer);
}

/** A text that is being written. */
export function growing(text) {
  return element("p", { class: "verdict written", dir: "auto" }, text);
}

function written({ text, log_probability: logarithm, cut, alternatives = [] }) {
  const note = `Log-probability ${number(logarithm)}.${cut ? " It was cut at the longest length." : ""}`;
  return [
    element("p", { class: "verdict written", dir: "auto" }, text || NOTHING),
    element("p", { class: "caption" }, note),
    alternatives.length > 0 && element("details", {},
      element("summary", {}, `${count(alternatives.length)} more`),
      element("ul", {}, alternatives.map((other) => element("li", {},
        element("span", { class: "written", dir: "auto" }, other.text || NOTHING), " ",
        element("span", { class: "quiet" }, number(other.log_probability)))))),
  ];
}

function textOf(inputs) {
  return inputs.text ?? inputs.words.join(" ");
}

function number(value) {
  return String(Number(value.toPrecision(4)));
}

function labels({ label, probabilities, expected_cost: cost }) {
  const given = Array.isArray(label) ? label : [label];
  const items = Object.entries(probabilities).sort((a, b) => b[1] - a[1])
    .map(([name, probability]) => ({ name, probability, chosen: given.includes(name) }));
  const none = given.length === 0 && element("p", { class: "verdict" }, "no label");
  const cheapest = cost !== undefined
    && element("p", { class: "caption" }, `Expected cost ${number(cost)}, the least of all answers.`);
  return [none, bars(items), cheapest];
}

function choice({ index, probabilities }, choices) {
  const items = probabilities.map((probability, at) => ({ name: choices[at], probability, chosen: at === index }));
  return bars(items, Infinity);
}

/** A bar for each item; those after the first few are folded away, but never one that is chosen. */
export function bars(items, shown = SHOWN) {
  const first = items.filter((item, at) => at < shown || item.chosen);
  const rest = items.filter((item) => !first.includes(item));
  return [
    element("ul", { class: "bars" }, first.map(bar)),
    rest.length > 0 && element("details", {},
      element("summary", {}, `${count(rest.length)} more`), element("ul", { class: "bars" }, rest.map(bar))),
  ];
}

function bar({ name, probability, chosen }) {
  const filled = element("span", { class: "filled" });
  filled.style.inlineSize = `${Math.min(Math.max(100 * probability, 0), 100)}%`;
  return element("li", { class: chosen ? "chosen" : null },
    element("span", { class: "name", dir: "auto" }, name,
      chosen && element("span", { class: "unseen" }, " (the answer)")),
    " ", element("span", { class: "n" }, chance(probability)),
    element("span", { class: "track", "aria-hidden": "true" }, filled));
}

function ranking(listed) {
  return element("ol", { class: "ranking" }, listed.map(({ choice: name, score }) =>
    element("li", {}, element("span", { dir: "auto" }, name), " ",
      element("span", { class: "quiet" }, score.toFixed(2)))));
}

function spans(found, text) {
  const hues = new Map();
  const hueOf = (label) => hues.get(label) ?? (hues.set(label, hues.size % 6), hues.get(label));
  const ordered = [...found].sort((a, b) => a.start - b.start);
  const marks = ordered.map(({ start, end, label, probability }) =>
    ({ start, end, label, hue: hueOf(label), title: `${label}, ${chance(probability)}` }));
  const items = ordered.map(({ text: named, label, probability }) => ({ name: `${named} · ${label}`, probability }));
  return [
    marked(text, marks),
    items.length > 0 ? bars(items, Infinity) : element("p", { class: "caption" }, "No spans were found."),
  ];
}

/** A text with its spans marked. Offsets count characters, of which some are two units of a JavaScript string. */
function marked(text, marks) {
  const characters = Array.from(text);
  const cut = (start, end) => characters.slice(start, end).join("");
  const parts = [];
  let reached = 0;
  for (const { start, end, label, hue, title } of marks) {
    if (start < reached) continue;
    const named = label && [" ", element("span", { class: "tag" }, label)];
    parts.push(cut(reached, start), element("mark", { class: `hue${hue}`, title }, cut(start, end), named));
    reached = end;
  }
  return element("p", { class: "marked", dir: "auto" }, parts, cut(reached));
}

function tags({ tags: found, words, probabilities }) {
  const names = [...new Set(found)];
  return element("p", { class: "marked tagged" }, found.map((name, at) => [
    element("span", { class: "word", title: `${name}, ${chance(probabilities[at])}` },
      element("span", { dir: "auto" }, words[at]),
      element("span", { class: `tag hue${names.indexOf(name) % 6}` }, name)), " "]));
}

function passageAnswer({ answer, start, end, n_best: ranked }, context) {
  const there = start !== null && start !== undefined;
  const items = ranked.map(({ answer: text, probability }, at) =>
    ({ name: text || "no answer", probability, chosen: at === 0 }));
  return [
    element("p", { class: "verdict", dir: "auto" }, there ? answer : "no answer"),
    marked(context, there ? [{ start, end, label: "", hue: 0, title: "the answer" }] : []),
    bars(items),
  ];
}
