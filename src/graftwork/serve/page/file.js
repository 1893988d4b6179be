// A CSV file that comes back answered: read here, asked in parts, offered for download with the answers as columns.

import { confusionView } from "./confusions.js";
import { BadFile, flat, readCsv, writeCsv } from "./csv.js";
import { element } from "./element.js";
import { askRows, Refused, shownError } from "./server.js";
import { count } from "./units.js";

const MOST_BYTES = 20e6;

/** The part of the form; `asked()` gives the task or tasks, the fields of their inputs, and how many tasks answer. */
export function fileForm(asked) {
  const told = element("p", { class: "caption", role: "status" });
  const result = element("div", {});
  const needs = element("code", {});
  let running = new AbortController();
  const stop = element("button", { type: "button", hidden: true, click: () => {
    running.abort();
    stop.hidden = true;
    told.textContent = "Stopped; nothing was kept.";
  } }, "Stop");
  const change = async () => {
    const file = input.files[0];
    if (!file) return;
    running.abort();
    const { signal } = running = new AbortController();
    result.replaceChildren();
    stop.hidden = false;
    try {
      const question = asked();
      const { header, rows, all } = await answered(file, question, signal, (text) => { told.textContent = text; });
      const compared = question.tasks === 1
        && confusionView(header, rows, all.map((row) => row.answers[question.task]));
      result.replaceChildren(...[download(withAnswers(header, rows, all), `answered-${file.name}`), compared]
        .filter(Boolean));
    } catch (error) {
      if (signal.aborted) return;
      told.textContent = "";
      const shown = error instanceof BadFile ? new Refused({ what: error.message, where: file.name }) : error;
      result.replaceChildren(shownError(shown));
    }
    stop.hidden = true;
    input.value = ""; // so that the same file, mended, is a change too
  };
  const input = element("input", { type: "file", accept: ".csv,text/csv", change });
  const lists = element("span", {}, " Of a list, the cell has a line for each.");
  const show = () => {
    needs.textContent = asked().fields.map(({ name }) => name).join(",");
    lists.hidden = !asked().fields.some((field) => field.lines);
  };
  const node = element("details", {}, element("summary", {}, "Answer a CSV file"),
    element("p", { class: "caption" }, "Its header has ", needs,
      ", and any other columns. It is read here, asked in parts, and comes back with the answers as columns.", lists),
    element("p", { class: "buttons" }, element("label", {}, "File", input), stop), told, result);
  return { node, show };
}

async function answered(file, { task, fields, tasks, below }, signal, tell) {
  const [header, ...rows] = await table(file);
  const places = fields.map(({ name }) => header.cells.indexOf(name));
  const missing = fields.filter((_, at) => places[at] < 0).map(({ name }) => name);
  if (missing.length > 0) {
    throw new BadFile(`Line 1: no column ${missing.join(", ")}; the header has ${header.cells.join(", ")}.`);
  }
  const inputs = rows.map(({ line, cells }) => Object.fromEntries(fields.map((field, at) => {
    const text = cells[places[at]];
    if (!text.trim()) throw new BadFile(`Line ${line}: the cell of ${field.name} is empty.`);
    return [field.name, field.lines ? text.split(/\r?\n/).filter((each) => each.trim()) : text];
  })));
  const progress = (done) => tell(`${count(done)} of ${count(rows.length)} rows answered.`);
  progress(0);
  const waits = (seconds) => tell(`The server is busy. The next try is in ${seconds} s.`);
  try {
    const all = await askRows(inputs.map((given) => ({ task, ...given })), { tasks, below, signal, waits, progress });
    return { header: header.cells, rows, all };
  } catch (error) {
    if (error instanceof Refused && error.row !== undefined) error.parts.where = `line ${rows[error.row].line}`;
    throw error;
  }
}

/** The text of the file with the answers as further columns. */
function withAnswers(header, rows, all) {
  const answers = all.map((row) => ({ ...flat(row.answers), ...(row.cut && { cut: true }) }));
  const names = [...new Set(answers.flatMap(Object.keys))];
  const titles = names.map((name) => header.includes(name) ? `predicted.${name}` : name);
  return writeCsv([[...header, ...titles],
    ...rows.map(({ cells }, at) => [...cells, ...names.map((name) => answers[at][name] ?? "")])]);
}

async function table(file) {
  if (file.size > MOST_BYTES) {
    throw new BadFile(`The file has more than ${count(MOST_BYTES)} bytes: use graft predict --file for it.`);
  }
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new BadFile("The file is not text in UTF-8: save it as CSV (UTF-8).");
  }
  const rows = readCsv(text);
  if (rows.length < 2) throw new BadFile("The file has no rows below its header.");
  const twice = rows[0].cells.find((name, at) => rows[0].cells.indexOf(name) !== at);
  if (twice !== undefined) throw new BadFile(`Line 1: the column ${twice} occurs twice.`);
  return rows;
}

function download(content, name) {
  const link = URL.createObjectURL(new Blob([content], { type: "text/csv" }));
  return element("p", {}, element("a", { href: link, download: name }, `Download ${name}`));
}
