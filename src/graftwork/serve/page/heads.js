// All heads of a block at a glance: a small picture of each, to choose one by.

import { drawn, element } from "./element.js";

const SHADES = 8; // of the colour, from faint to full: one path each, so that many words stay cheap to draw

/** Nodes for the heads' weights (heads, words, words), and `mark(head)`; `choose(head)` is told which was chosen. */
export function headPictures(weights, choose) {
  const buttons = weights.map((rows, head) => element("button", {
    type: "button", "aria-label": `Head ${head}`, click: () => choose(head),
  }, picture(rows), String(head)));
  const mark = (head) => buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(at === head)));
  return { node: element("div", { class: "heads", role: "group", "aria-label": "Heads of the block" }, buttons), mark };
}

function picture(rows) {
  const most = Math.max(...rows.flat());
  const paths = Array.from({ length: SHADES + 1 }, () => "");
  rows.forEach((row, y) => row.forEach((weight, x) => {
    paths[Math.round((SHADES * weight) / most)] += `M${x} ${y}h1v1h-1z`;
  }));
  const box = `0 0 ${rows.length} ${rows.length}`;
  return drawn("svg", { viewBox: box, "shape-rendering": "crispEdges", "aria-hidden": "true" },
    paths.map((d, shade) => shade > 0 && d && drawn("path", { d, "fill-opacity": shade / SHADES })));
}
