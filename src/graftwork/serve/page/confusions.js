// Answers beside the labels of a file: the share that agree, and a table whose cells list their rows.

import { element } from "./element.js";
import { chance, count, percent } from "./units.js";

const USUAL = ["label", "target", "class", "category"]; // columns that are taken for the labels until another is chosen
const UNSURE = "not sure";
const [MOST_LABELS, MOST_PAIRS, MOST_ROWS] = [16, 20, 100];

/** A choice of the column with the labels, and what it shows; rows are {line, cells}, with an answer each. */
export function confusionView(header, rows, answers) {
  if (!answers.every((answer) => "label" in answer || "best_guess" in answer)) return null;
  const shown = element("div", {});
  const change = () => shown.replaceChildren(...(select.value === "" ? []
    : compared(rows.map(({ line, cells }, at) => pairOf(line, cells, cells[Number(select.value)], answers[at])))));
  const select = element("select", { name: "labels", change }, element("option", { value: "" }, "nothing"),
    header.map((name, at) => element("option", { value: at }, name)));
  const usual = header.findIndex((name) => USUAL.includes(name.toLowerCase()));
  if (usual >= 0) select.value = usual;
  change();
  return element("div", { class: "confusions" }, element("label", {}, "Compare with the column", select), shown);
}

function pairOf(line, cells, truth, answer) {
  const said = answer.label ?? UNSURE;
  return { line, cells, truth: inOrder(truth.split("|")), said: inOrder([said].flat()),
    probability: answer.probabilities?.[said] };
}

const inOrder = (labels) => labels.map((label) => label.trim()).sort().join("|");

function compared(pairs) {
  const right = pairs.filter(({ truth, said }) => truth === said).length;
  const cells = new Map(); // truth, then answer -> its pairs
  for (const pair of pairs) {
    if (!cells.has(pair.truth)) cells.set(pair.truth, new Map());
    const row = cells.get(pair.truth);
    row.set(pair.said, [...(row.get(pair.said) ?? []), pair]);
  }
  const list = element("div", { role: "status" });
  const open = (truth, said) => list.replaceChildren(...rowsOf(truth, said, cells.get(truth).get(said)));
  const labels = [...new Set(pairs.flatMap(({ truth, said }) => [truth, said]))].sort();
  const table = labels.length > MOST_LABELS ? commonest(cells, open) : matrix(labels, cells, open);
  return [element("p", {}, `${count(right)} of ${count(pairs.length)} agree, ${percent(right / pairs.length)} %.`),
    table, list];
}

/** A row for each label of the file, a column for each answer. */
function matrix(labels, cells, open) {
  const most = Math.max(...[...cells.values()].flatMap((row) => [...row.values()].map((found) => found.length)));
  const answered = labels.filter((label) => [...cells.values()].some((row) => row.has(label)));
  const cell = (truth, said) => {
    const found = cells.get(truth).get(said) ?? [];
    const made = element("td", { class: truth === said ? "n right" : "n wrong" },
      found.length > 0 && element("button", { type: "button", class: "link", click: () => open(truth, said),
        "aria-label": `${found.length} of ${truth}, answered ${said}` }, count(found.length)));
    made.style.setProperty("--share", `${Math.round((100 * found.length) / most)}%`);
    return made;
  };
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Confusions" },
    element("table", { class: "matrix" },
      element("caption", {}, "Rows: the column of the file. Columns: the answers."),
      element("thead", {}, element("tr", {}, element("td", {}), answered.map((label) =>
        element("th", { scope: "col" }, label)))),
      element("tbody", {}, [...cells.keys()].sort().map((truth) => element("tr", {},
        element("th", { scope: "row" }, truth), answered.map((said) => cell(truth, said)))))));
}

/** The commonest confusions, where there are too many labels for a table. */
function commonest(cells, open) {
  const wrong = [...cells].flatMap(([truth, row]) => [...row].map(([said, found]) => ({ truth, said, found })))
    .filter(({ truth, said }) => truth !== said).sort((a, b) => b.found.length - a.found.length);
  return element("ul", {}, wrong.slice(0, MOST_PAIRS).map(({ truth, said, found }) => element("li", {},
    element("button", { type: "button", class: "link", click: () => open(truth, said) },
      `${truth}, answered ${said}: ${count(found.length)}`))));
}

/** The rows of a cell, those answered with the highest probability first: there a wrong label is likeliest. */
function rowsOf(truth, said, found) {
  const ordered = [...found].sort((a, b) => (b.probability ?? 0) - (a.probability ?? 0));
  const first = ordered.slice(0, MOST_ROWS);
  return [element("h3", {}, `${truth}, answered ${said}`),
    element("ul", { class: "rows" }, first.map(({ line, cells, probability }) => element("li", { dir: "auto" },
      element("span", { class: "caption" }, `Line ${line}`, probability !== undefined && `, ${chance(probability)}`),
      " ", cells.join(" · ")))),
    found.length > MOST_ROWS && element("p", { class: "caption" },
      `${count(found.length - MOST_ROWS)} more are in the file.`)].filter(Boolean);
}
