// A heat map of words by words as SVG, drawn anew when its width changes.

import { drawn, element } from "./element.js";

const FONT = 12; // pixels, as the style sheet has it
const LONGEST = 12; // letters of a label
const LARGEST = 30; // pixels of a cell
const READABLE = 11; // pixels that a label needs
const GAP = 6; // pixels between labels and cells
const FAINTEST = 0.004; // of the strongest: below it nothing is to be seen

/** Nodes, and `choose(row, column)` to mark a row; `pointed(row, column)` is told where the pointer is. */
export function heatMap(words, weights, most, pointed) {
  const labels = words.map(shortened);
  const told = `Heat map of ${words.length} by ${words.length} words; the list of words after it tells it row by row`;
  const node = element("div", { class: "map", role: "img", "aria-label": told });
  let chosen = { row: 0, column: null };
  let margin = 0; // beside and above the cells, in pixels
  let size = 0; // of a cell
  let width = 0; // that it was drawn for

  function draw() {
    width = node.clientWidth;
    margin = GAP + widest(labels, getComputedStyle(node).fontFamily);
    size = Math.max(Math.min((width - margin - 2) / words.length, LARGEST), 1);
    const side = size * words.length;
    node.replaceChildren(drawn("svg", { width: margin + side + 2, height: margin + side + 2, "aria-hidden": "true" },
      drawn("rect", { class: "ground", x: margin, y: margin, width: side, height: side }),
      drawn("g", { class: "cells" }, cells(weights, most, margin, size)),
      drawn("g", {}, names(labels, margin, size)),
      drawn("rect", { class: "outline faint", y: margin, width: size, height: side }),
      drawn("rect", { class: "outline", x: margin, width: side, height: size })));
    mark();
  }

  function mark() {
    const [column, row] = node.querySelectorAll(".outline");
    row.setAttribute("y", margin + chosen.row * size);
    column.setAttribute("x", margin + (chosen.column ?? 0) * size);
    column.toggleAttribute("hidden", chosen.column === null);
    for (const { dataset, classList } of node.querySelectorAll("text")) {
      classList.toggle("chosen", dataset.row === String(chosen.row) || dataset.column === String(chosen.column));
    }
  }

  node.addEventListener("pointermove", (event) => {
    const box = node.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - margin) / size);
    const column = Math.floor((event.clientX - box.left - margin) / size);
    if (row < 0 || row >= words.length || column >= words.length) return;
    if (row !== chosen.row || column !== chosen.column) pointed(row, column < 0 ? null : column);
  });
  new ResizeObserver(() => { if (node.clientWidth !== width) draw(); }).observe(node);
  const choose = (row, column) => {
    chosen = { row, column };
    if (size > 0) mark();
  };
  return { node, choose };
}

function shortened(word) {
  const letters = Array.from(word);
  return letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : word;
}

/** Pixels that the longest of them takes, drawn in bold as one that is chosen. */
function widest(labels, family) {
  const brush = document.createElement("canvas").getContext("2d");
  brush.font = `600 ${FONT}px ${family}`;
  return Math.ceil(Math.max(...labels.map((label) => brush.measureText(label).width)));
}

function cells(weights, most, margin, size) {
  return weights.flatMap((row, i) => row.map((weight, j) => weight / most > FAINTEST && drawn("rect", {
    x: margin + j * size, y: margin + i * size, width: size, height: size,
    "fill-opacity": (weight / most).toFixed(3),
  })));
}

/** The words on both axes, or every second, third, … of them where there is no room. */
function names(labels, margin, size) {
  const every = Math.ceil(READABLE / size);
  return labels.flatMap((label, i) => {
    if (i % every > 0) return [];
    const middle = margin + (i + 0.5) * size;
    return [
      drawn("text", { x: margin - GAP, y: middle, "text-anchor": "end", "data-row": i }, label),
      drawn("text", { transform: `translate(${middle} ${margin - GAP}) rotate(-90)`, "data-column": i }, label),
    ];
  });
}
