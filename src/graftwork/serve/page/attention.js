// What the heads of a block attend to: all at a glance, one as a heat map, a word's row in the text and as bars.

import { bars, CUT } from "./answers.js";
import { element } from "./element.js";
import { headPictures } from "./heads.js";
import { heatMap } from "./heatmap.js";
import { ask, NoToken, shownError } from "./server.js";
import { chance } from "./units.js";

const EXAMPLE = "The bank by the river was closed, so I took my money to another bank.";
const FEW = 40; // words: up to here the picture leaves room beside it
const LISTED = 8; // words of a row that are told as bars
const ABOUT = "How much of what a word reads is which other word, in the heads of one block: of the frozen backbone "
  + "that all tasks share, or of a task, with what its method changed in it.";

let kept = { text: EXAMPLE, block: 0, task: "" }; // what was asked last
let shownHead = 0;
let sizes = { blocks: 1, heads: 1 }; // of the backbone, as far as it has told
let leaveOut = false; // the tokens that the tokenizer adds

/** The view `#/attention`. */
export async function attentionView(leaving) {
  const picture = element("div", { class: "picture" });
  const status = element("p", { class: "status", role: "status" });
  const area = element("textarea", { name: "text", rows: 2, required: true, maxlength: 5000, dir: "auto" });
  const submit = (event) => {
    event.preventDefault();
    look();
  };
  const change = () => form.requestSubmit();
  const block = element("select", { name: "block", change });
  const head = element("select", { name: "head", change: () => choose(Number(head.value)) });
  const task = element("select", { name: "task", change }, element("option", { value: "" }, "the frozen backbone"));
  let found = null; // what was answered last
  let choose = () => {}; // shows a head of what was answered last
  const put = () => {
    const whole = leaveOut ? withoutAdded(found) : found;
    const one = element("div", {});
    choose = (chosen) => {
      shownHead = Math.min(chosen, found.heads - 1);
      head.value = shownHead;
      heads.mark(shownHead);
      one.replaceChildren(element("h2", {}, `Head ${shownHead}`),
        ...shownPicture({ ...whole, weights: whole.weights[shownHead] }));
      status.textContent = `Block ${kept.block}, head ${shownHead}, ${found.words.length} words.`;
    };
    const heads = headPictures(whole.weights, choose);
    picture.replaceChildren(element("h2", {}, `Block ${kept.block}`), heads.node, one);
    choose(shownHead);
  };
  const left = element("input", { type: "checkbox", change: () => {
    leaveOut = left.checked;
    if (found) put();
  } });
  left.checked = leaveOut;
  const form = element("form", { class: "ask", submit },
    element("label", {}, "Text", area),
    element("div", { class: "beside controls" },
      element("label", {}, "Network", task), element("label", {}, "Block", block), element("label", {}, "Head", head),
      element("label", { class: "tick" }, left, "without added tokens"),
      element("button", { type: "submit", class: "main" }, "Show")));
  const offer = () => {
    fill(block, sizes.blocks, kept.block);
    fill(head, sizes.heads, shownHead);
  };
  let asked = new AbortController();
  const look = async () => {
    asked.abort(); // a second question takes the place of the first
    asked = new AbortController();
    const signal = AbortSignal.any([asked.signal, leaving]);
    kept = { text: area.value, block: Number(block.value), task: task.value };
    const waits = (seconds) => { status.textContent = `The server is busy. The next try is in ${seconds} s.`; };
    try {
      const body = { text: kept.text, block: kept.block, head: null, ...(kept.task && { task: kept.task }) };
      found = await ask("v1/attention", { body, signal, waits });
      sizes = found;
      offer();
      put();
    } catch (error) {
      if (signal.aborted) return;
      status.textContent = "";
      found = null;
      choose = () => {};
      picture.replaceChildren(shownError(error));
      if (error instanceof NoToken) form.dispatchEvent(new CustomEvent("notoken", { bubbles: true, detail: error }));
    }
  };
  area.value = kept.text;
  offer();
  offerTasks(task, leaving);
  look();
  const title = element("h1", { tabindex: -1 }, "Attention");
  return { title: "Attention", content: [title, element("p", { class: "about" }, ABOUT), form, status, picture] };
}

/** The tasks over texts, as other networks to look into. */
async function offerTasks(select, signal) {
  const { tasks } = await ask("v1/tasks", { signal }).catch(() => ({ tasks: [] }));
  const reading = tasks.filter(({ failed, inputs }) => !failed && inputs.length > 0);
  select.append(...reading.map(({ name }) => element("option", { value: name }, name)));
  if (reading.some(({ name }) => name === kept.task)) select.value = kept.task;
}

function fill(select, number, chosen) {
  if (select.options.length !== number) {
    const options = Array.from({ length: number }, (_, at) => element("option", { value: at }, String(at)));
    select.replaceChildren(...options);
  }
  select.value = chosen;
}

/** The same without the tokens that the tokenizer adds, which often take most of what is read. */
function withoutAdded({ words, added, weights, cut }) {
  const own = (row) => row.filter((_, at) => !added[at]);
  return { words: own(words), weights: weights.map((rows) => own(rows).map(own)), cut, partly: true };
}

/** The heat map, and the words to choose a row by; `weights` has a row per word, its shares of all words. */
function shownPicture({ words, weights, cut, partly }) {
  if (words.length === 0) return [element("p", {}, "No word is left.")];
  const most = Math.max(...weights.flat());
  const share = (row, column) => `${Math.round((100 * weights[row][column]) / most)}%`;
  const sentence = element("p", { class: "caption", "aria-live": "polite" });
  const told = element("div", { class: "row-told" });

  function choose(row, column = null) {
    list.mark(row, (at) => share(row, at));
    map.choose(row, column);
    const ranked = words.map((name, at) => ({ name, probability: weights[row][at] }))
      .sort((a, b) => b.probability - a.probability).slice(0, LISTED);
    told.replaceChildren(...bars(ranked, Infinity).filter(Boolean));
    sentence.textContent = column === null
      ? `“${words[row]}” reads most of “${ranked[0].name}”, ${chance(ranked[0].probability)}.`
      : `“${words[row]}” reads “${words[column]}”, ${chance(weights[row][column])}.`;
  }

  const map = heatMap(words, weights, most, choose);
  const list = wordList(words, choose);
  choose(words.length > 2 ? 1 : 0); // the first is often a token that the tokenizer adds
  const caption = element("figcaption", { class: "caption" },
    "A row is a word, a column what it reads: the stronger the colour, the more. ",
    `The strongest is ${chance(most)}; a row sums to 100 %${partly ? " with the tokens left out" : ""}. `,
    "Choose a word, or point at the picture.");
  const figure = element("figure", {}, map.node, caption);
  const beside = element("div", {}, list.node, sentence, told);
  const note = cut && element("p", { class: "note" }, CUT);
  return [note, element("div", { class: words.length <= FEW ? "few" : null }, figure, beside)].filter(Boolean);
}

/** The text as a list of words, of which one is chosen by arrow keys, Home, End or pointing. */
function wordList(words, choose) {
  const options = words.map((word, at) => {
    const chosen = () => choose(at);
    const listens = { focus: chosen, pointerenter: chosen, click: chosen };
    return element("span", { role: "option", tabindex: -1, dir: "auto", ...listens }, word);
  });
  const keydown = (event) => {
    const at = options.indexOf(event.target);
    const steps = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    options[Math.min(Math.max(steps[event.key], 0), options.length - 1)].focus();
  };
  const node = element("div", { role: "listbox", "aria-label": "Words: choose one to see what it reads", class: "words",
    keydown }, options.map((option) => [option, " "]));
  const mark = (row, share) => options.forEach((option, at) => {
    option.setAttribute("aria-selected", at === row);
    option.tabIndex = at === row ? 0 : -1;
    option.style.setProperty("--share", share(at));
  });
  return { node, mark };
}
