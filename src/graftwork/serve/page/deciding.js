// The words that decided an answer, by occlusion: each is left out once, and the answer is asked again.

import { element } from "./element.js";
import { askRows, shownError } from "./server.js";
import { count, percent } from "./units.js";

const MOST = 200; // words
const LISTED = 5;
const TEXTS = ["text", "text_a", "text_b"]; // of choices, only the text: they are the answers
const ABOUT = "Each word is left out once, and the answer asked again: the deeper the colour, the more its probability "
  + "changes. Words that only decide together show little.";

/** Whether an answer has a probability for each of the same classes, whatever the text is. */
export function hasClasses(answer) {
  return "choice" in answer || ("probabilities" in answer && "label" in answer && chosenOf(answer) !== undefined);
}

/** What is asked about: of several labels the most probable. */
function chosenOf(answer) {
  if ("choice" in answer) return answer.index;
  const given = [answer.best_guess ?? answer.label].flat();
  return given.sort((a, b) => answer.probabilities[b] - answer.probabilities[a])[0];
}

/** A button that finds them, and what it finds. */
export function decidingWords(task, inputs, answer) {
  const place = element("div", { "aria-live": "polite" });
  const click = async () => {
    button.disabled = true;
    try {
      place.replaceChildren(...await found(task, inputs, answer, (text) => place.replaceChildren(text)));
    } catch (error) {
      place.replaceChildren(shownError(error));
    }
    button.disabled = false;
  };
  const button = element("button", { type: "button", class: "link", click }, "Which words decided?");
  return element("div", { class: "deciding" }, button, place);
}

async function found(task, inputs, answer, tell) {
  const fields = TEXTS.filter((name) => name in inputs)
    .map((name) => ({ name, parts: partsOf(inputs[name]) }));
  const words = fields.flatMap(({ name, parts }) => parts.filter(({ word }) => word).map((part) => ({ name, part })));
  const variants = words.map(({ name, part }) => ({ task, ...inputs, [name]: without(inputs[name], part) }));
  if (words.length > MOST) return [`The text has ${count(words.length)} words; more than ${MOST} are not tried.`];
  if (variants.some((variant) => TEXTS.some((name) => variant[name]?.trim() === ""))) {
    return ["A text of one word has nothing to leave out."];
  }
  const chosen = chosenOf(answer);
  const progress = (done) => tell(`${done} of ${variants.length} words tried.`);
  const rows = await askRows(variants, { tasks: 1, progress });
  words.forEach(({ part }, at) => {
    part.change = answer.probabilities[chosen] - rows[at].answers[task].probabilities[chosen];
  });
  const name = "choice" in answer ? answer.best_guess ?? answer.choice : chosen;
  return shown(fields, words.map(({ part }) => part), name);
}

/** The text as words and what is between them; languages without spaces are cut too. */
function partsOf(text) {
  return [...new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)]
    .map(({ segment, index, isWordLike }) => ({ text: segment, start: index, word: isWordLike }));
}

function without(text, { start, text: word }) {
  const [before, after] = [text.slice(0, start), text.slice(start + word.length)];
  return /\s$|^$/.test(before) ? before + after.replace(/^\s/, "") : before + after;
}

function shown(fields, words, chosen) {
  const most = Math.max(...words.map(({ change }) => Math.abs(change)), 1e-9);
  const listed = [...words].sort((a, b) => Math.abs(b.change) - Math.abs(a.change)).slice(0, LISTED);
  return [
    ...fields.map(({ parts }) => element("p", { class: "marked", dir: "auto" }, parts.map((part) => {
      if (!part.word) return part.text;
      const mark = element("mark", { class: part.change < 0 ? "against" : "for", title: inWords(part) }, part.text);
      mark.style.setProperty("--share", `${Math.round((100 * Math.abs(part.change)) / most)}%`);
      return mark;
    }))),
    element("p", { class: "caption" }, `Without the word, “${chosen}” is:`),
    element("ol", { class: "deciding-words" }, listed.map((part) =>
      element("li", {}, element("span", { dir: "auto" }, part.text), `: ${inWords(part)}`))),
    element("p", { class: "caption" }, ABOUT),
  ];
}

function inWords({ change }) {
  const points = percent(Math.abs(change));
  if (points === "0.0") return "as probable";
  return `${points} points ${change > 0 ? "less" : "more"} probable`;
}
