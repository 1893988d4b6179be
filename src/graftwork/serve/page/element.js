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
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** A table that a narrow screen shows as blocks: each cell knows its column's title. Columns: {title, number, plain, wraps}. */
export function table(columns, rows, { caption, className = "" } = {}) {
  const heads = columns.map(({ title, number }) =>
    element("th", { role: "columnheader", scope: "col", class: number ? "n" : null }, title));
  const lines = rows.map(({ cells, className: kind }) => element("tr", { role: "row", class: kind }, cells.map((cell, at) => {
    const { title, number, plain, wraps } = columns[at];
    const tag = at === 0 ? "th" : "td";
    const described = { role: at === 0 ? "rowheader" : "cell", scope: at === 0 ? "row" : null };
    const look = [number && "n", plain && "plain", wraps && "wraps"].filter(Boolean).join(" ");
    return element(tag, { ...described, class: look || null, "data-title": title }, cell);
  })));
  return element("table", { role: "table", class: className },
    caption && element("caption", {}, caption),
    element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, heads)),
    element("tbody", { role: "rowgroup" }, lines));
}

/** JSON as nested lists of terms, for what has no table of its own. */
export function tree(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) {
    const plain = value.every((item) => item === null || typeof item !== "object");
    return plain ? value.map(String).join(", ") || "–" : element("ul", {}, value.map((item) => element("li", {}, tree(item))));
  }
  return element("dl", { class: "pairs" }, Object.entries(value).map(([key, item]) =>
    element("div", {}, element("dt", {}, words(key)), element("dd", {}, tree(item)))));
}

/** `trained_parameters` as words. */
export function words(name) {
  return String(name).replaceAll("_", " ");
}
