// CSV by RFC 4180: read strictly, with the line of what is wrong; written with quotes where they are needed.

/** What is wrong with a file, and where. */
export class BadFile extends Error {}

const bad = (line, what) => new BadFile(`Line ${line}: ${what}.`);

/** The rows of a text, the header first, each {line, cells}; every row has as many cells as the header. */
export function readCsv(text) {
  const token = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|\n|\r|$)/y;
  const rows = [];
  let [line, cells, begins] = [1, [], 1];
  while (token.lastIndex < text.length || cells.length > 0) {
    const at = token.lastIndex;
    const found = token.exec(text);
    if (!found) throw bad(line, text[at] === '"' ? "a quoted cell does not end, or text follows its quotes"
      : "a quote is inside a cell that does not begin with one");
    const [whole, quoted, plain, end] = found;
    cells.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    line += (whole.match(/\r\n|\n|\r/g) ?? []).length;
    if (end === ",") continue;
    const wanted = rows[0]?.cells.length ?? cells.length;
    if (cells.length !== wanted) throw bad(begins, `${cells.length} cells, where the header has ${wanted}`);
    rows.push({ line: begins, cells });
    [cells, begins] = [[], line];
    if (end === "") break;
  }
  return rows;
}

/** The text of rows of cells. */
export function writeCsv(rows) {
  const cell = (value) => /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
  return rows.map((row) => `${row.map((value) => cell(String(value))).join(",")}\r\n`).join("");
}

/** An answer as columns, as `graft predict --out FILE.csv` names them; of several tasks each with its name before. */
export function flat(answers) {
  const several = Object.keys(answers).length > 1;
  return Object.fromEntries(Object.entries(answers).flatMap(([task, answer]) =>
    Object.entries(answer).flatMap(([key, value]) => {
      const named = several ? `${task}.${key}` : key;
      if (value === null) return [[named, ""]];
      if (Array.isArray(value)) return [[named, key.endsWith("label") ? value.join("|") : JSON.stringify(value)]];
      if (typeof value !== "object") return [[named, value]];
      const before = named.slice(0, named.length - "probabilities".length);
      return Object.entries(value).map(([label, probability]) => [`${before}p(${label})`, probability]);
    })));
}
