// What a head of the frozen backbone attends to: a heat map, and the chosen word's row in the text and as bars.

import { bars } from "./answers.js";
import { drawn, element } from "./element.js";
import { ask, NoToken, shownError } from "./server.js";
import { chance } from "./units.js";

const EXAMPLE = "The bank by the river was closed, so I took my money to another bank.";
const LETTER = 6.7; // pixels of width, about, at 12 pixels of height
const LARGEST = 30; // pixels of a cell
const READABLE = 11; // pixels that a label needs
const LONGEST = 12; // letters of a label
const FEW = 40; // words: up to here the picture leaves room beside it
const LISTED = 8; // words of a row that are told as bars

let kept = { text: EXAMPLE, block: 0, head: 0, blocks: 1, heads: 1 };

/** The view `#/attention`. */
export async function attentionView(signal) {
  const picture = element("div", { class: "picture" });
  const status = element("p", { class: "status", role: "status" });
  const area = element("textarea", { name: "text", rows: 2, required: true, maxlength: 5000, dir: "auto" });
  area.value = kept.text;
  const block = element("select", { name: "block" });
  const head = element("select", { name: "head" });
  const offer = () => {
    fill(block, kept.blocks, kept.block);
    fill(head, kept.heads, kept.head);
  };
  let asked = new AbortController();
  const look = async () => {
    asked.abort();
    const mine = asked = new AbortController();
    signal.addEventListener("abort", () => mine.abort());
    kept = { ...kept, text: area.value, block: Number(block.value), head: Number(head.value) };
    const body = { text: kept.text, block: kept.block, head: kept.head };
    const waits = (seconds) => { status.textContent = `The server is busy. The next try is in ${seconds} s.`; };
    try {
      const found = await ask("v1/attention", { body, signal: mine.signal, waits });
      kept = { ...kept, blocks: found.blocks, heads: found.heads };
      offer();
      picture.replaceChildren(...shownPicture(found));
      status.textContent = `Block ${kept.block}, head ${kept.head}, ${found.words.length} words.`;
    } catch (error) {
      if (error.name === "AbortError") return;
      status.textContent = "";
      picture.replaceChildren(shownError(error));
      if (error instanceof NoToken) form.dispatchEvent(new CustomEvent("notoken", { bubbles: true, detail: error }));
    }
  };
  const form = element("form", { class: "ask", submit: (event) => { event.preventDefault(); look(); } },
    element("label", {}, "Text", area),
    element("div", { class: "beside controls" }, element("label", {}, "Block", block), element("label", {}, "Head", head),
      element("button", { type: "submit", class: "main" }, "Show")));
  for (const select of [block, head]) select.addEventListener("change", () => form.requestSubmit());
  offer();
  look();
  return {
    title: "Attention",
    content: [
      element("h1", { tabindex: -1 }, "Attention"),
      element("p", { class: "about" }, "How much of what a word reads is which other word, in one head of one block of the frozen "
        + "backbone that all tasks share. What adapters change in it is not shown."),
      form, status, picture,
    ],
  };
}

function fill(select, number, chosen) {
  if (select.options.length !== number) {
    select.replaceChildren(...Array.from({ length: number }, (_, at) => element("option", { value: at }, String(at))));
  }
  select.value = chosen;
}

/** The heat map, and the words to choose a row by; weights: a row per word, and its shares of all words. */
function shownPicture({ words, weights, cut }) {
  const most = Math.max(...weights.flat());
  const told = element("div", { class: "row-told" });
  const detail = element("p", { class: "caption", "aria-live": "polite" });
  const map = heatMap(words, weights, most, (row, column) => select(row, column));
  const options = words.map((word, at) => element("span", { role: "option", id: `word-${at}`, tabindex: -1, dir: "auto" }, word));
  const list = element("div", { role: "listbox", "aria-label": "Words: choose one to see what it reads", class: "words" },
    options.map((option) => [option, " "]));
  let chosen = 0;

  function select(row, column = null) {
    chosen = row;
    options.forEach((option, at) => {
      option.setAttribute("aria-selected", at === row);
      option.tabIndex = at === row ? 0 : -1;
      option.style.setProperty("--share", `${Math.round(100 * weights[row][at] / most)}%`);
    });
    map.choose(row, column);
    const ranked = words.map((name, at) => ({ name, probability: weights[row][at], at }))
      .sort((a, b) => b.probability - a.probability).slice(0, LISTED);
    detail.textContent = column === null
      ? `“${words[row]}” reads most of “${ranked[0].name}”, ${chance(ranked[0].probability)}.`
      : `“${words[row]}” reads “${words[column]}”, ${chance(weights[row][column])}.`;
    told.replaceChildren(...bars(ranked, Infinity).filter(Boolean));
  }

  list.addEventListener("keydown", (event) => {
    const to = { ArrowRight: chosen + 1, ArrowDown: chosen + 1, ArrowLeft: chosen - 1, ArrowUp: chosen - 1, Home: 0, End: words.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    options[Math.min(Math.max(to, 0), words.length - 1)].focus();
  });
  options.forEach((option, at) => {
    for (const name of ["focus", "pointerenter", "click"]) option.addEventListener(name, () => select(at));
  });
  const first = words.length > 2 ? 1 : 0; // the first is often a token that the tokenizer adds
  select(first);
  return [
    cut && element("p", { class: "note" }, "The text is longer than the backbone reads: only its beginning was read."),
    element("div", { class: words.length <= FEW ? "few" : null },
      element("figure", {}, map.node, element("figcaption", { class: "caption" },
        "A row is a word, a column what it reads: the stronger the colour, the more. ",
        `The strongest is ${chance(most)}; a row sums to 100 %. Choose a word, or point at the picture.`)),
      element("div", {}, list, detail, told)),
  ].filter(Boolean);
}

/** An SVG that is drawn anew when its width changes. */
function heatMap(words, weights, most, pointed) {
  const node = element("div", { class: "map", role: "img", "aria-label":
    `Heat map of ${words.length} by ${words.length} words; the list of words after it tells the same, row by row` });
  const labels = words.map((word) => (Array.from(word).length > LONGEST ? `${Array.from(word).slice(0, LONGEST - 1).join("")}…` : word));
  const margin = 10 + LETTER * Math.max(...labels.map((label) => Array.from(label).length));
  let at = { row: 0, column: null };
  let marks = null;
  let size = 0;

  function draw() {
    size = Math.min((node.clientWidth - margin - 2) / words.length, LARGEST);
    if (size <= 0) return;
    const side = size * words.length;
    const every = Math.ceil(READABLE / size);
    const cells = weights.flatMap((row, i) => row.map((weight, j) => weight / most > 0.004 && drawn("rect", {
      x: margin + j * size, y: margin + i * size, width: size, height: size, "fill-opacity": (weight / most).toFixed(3) })));
    const named = labels.flatMap((label, i) => (i % every === 0 ? [
      drawn("text", { x: margin - 6, y: margin + (i + 0.5) * size, "text-anchor": "end", "data-row": i }, label),
      drawn("text", { transform: `translate(${margin + (i + 0.5) * size} ${margin - 6}) rotate(-90)`, "data-column": i }, label),
    ] : []));
    marks = { row: drawn("rect", { class: "outline", x: margin, width: side, height: size }),
      column: drawn("rect", { class: "outline faint", y: margin, width: size, height: side }) };
    const svg = drawn("svg", { width: margin + side + 2, height: margin + side + 2, "aria-hidden": "true", focusable: "false" },
      drawn("rect", { class: "ground", x: margin, y: margin, width: side, height: side }),
      drawn("g", { class: "cells" }, cells), drawn("g", { class: "names" }, named), marks.column, marks.row);
    node.replaceChildren(svg);
    mark();
  }

  function mark() {
    if (!marks) return;
    marks.row.setAttribute("y", margin + at.row * size);
    marks.column.setAttribute("x", margin + (at.column ?? 0) * size);
    marks.column.toggleAttribute("hidden", at.column === null);
    for (const label of node.querySelectorAll("text")) {
      label.classList.toggle("chosen", label.dataset.row === String(at.row) || label.dataset.column === String(at.column));
    }
  }

  node.addEventListener("pointermove", (event) => {
    const box = node.getBoundingClientRect();
    const place = (distance) => Math.floor((distance - margin) / size);
    const row = place(event.clientY - box.top);
    const column = place(event.clientX - box.left);
    if (row < 0 || row >= words.length || column >= words.length) return;
    if (row !== at.row || column !== at.column) pointed(row, column < 0 ? null : column);
  });
  new ResizeObserver(() => { if (Math.abs(node.clientWidth - node.drawnAt) > 1 || !marks) { node.drawnAt = node.clientWidth; draw(); } }).observe(node);
  return { node, choose: (row, column) => { at = { row, column }; mark(); } };
}
