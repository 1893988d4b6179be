// Elements from data: a text is always a text node, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element; an attribute that is a function listens to the event of its name. */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (shown(value)) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter(shown));
  return made;
}

function shown(value) {
  return value !== null && value !== undefined && value !== false;
}

/**
 * A table whose rows a narrow screen shows as blocks: each cell knows its column's title, and the roles stay.
 * Columns are {title, number, plain, wraps}, rows {cells, className}; the first cell is the row's heading.
 */
export function table(columns, rows, { className = "" } = {}) {
  const heads = columns.map(({ title, number }) =>
    element("th", { role: "columnheader", scope: "col", class: number ? "n" : null }, title));
  const lines = rows.map(({ cells, className: kind }) =>
    element("tr", { role: "row", class: kind }, cells.map((cell, at) => tableCell(cell, columns[at], at === 0))));
  return element("table", { role: "table", class: className },
    element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, heads)),
    element("tbody", { role: "rowgroup" }, lines));
}

function tableCell(content, { title, number, plain, wraps }, first) {
  const look = [number && "n", plain && "plain", wraps && "wraps"].filter(Boolean).join(" ") || null;
  const told = first ? { role: "rowheader", scope: "row" } : { role: "cell" };
  return element(first ? "th" : "td", { ...told, class: look, "data-title": title }, content);
}

/** JSON as nested lists of terms, for what has no table of its own. */
export function tree(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) {
    const plain = value.every((item) => item === null || typeof item !== "object");
    if (plain) return value.map(String).join(", ") || "–";
    return element("ul", {}, value.map((item) => element("li", {}, tree(item))));
  }
  return element("dl", { class: "pairs" }, Object.entries(value).map(([key, item]) =>
    element("div", {}, element("dt", {}, words(key)), element("dd", {}, tree(item)))));
}

/** A name that may be broken after its underscores, dots and hyphens. */
export function breakable(name) {
  return name.split(/(?<=[_.-])/).map((part, at) => [at > 0 && element("wbr"), part]);
}

/** A metric as words, with the class that it is of where it is of one: `f1 of 'spam'`. */
export function metricTitle(metric, positive) {
  return metric === "f1" && positive != null ? `f1 of '${positive}'` : words(metric);
}

/** `trained_parameters` as words. */
export function words(name) {
  return String(name).replaceAll("_", " ");
}
