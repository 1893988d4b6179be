"use strict";
/* The example browser. Its state is the fragment of the page's address; it sends nothing and stores nothing. */
(() => {
  const given = JSON.parse(document.getElementById("mistakes-data").textContent);
  const form = document.getElementById("mistakes-filters");
  const list = document.getElementById("mistakes-list");
  const count = document.getElementById("mistakes-count");
  const one = document.getElementById("mistakes-one");
  const more = document.getElementById("mistakes-more");
  const AT_ONCE = 10;
  const CONTROLS = ["wrong", "right", "class", "only", "sort", "find"];
  let shown = AT_ONCE, found = [];

  const make = (tag, text, kind) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const percent = value => value === null ? "" : `${(100 * value).toFixed(1)} %`;
  const state = () => new URLSearchParams(location.hash.slice(1));
  const isOurs = () => [...CONTROLS, "confusion", "example"].some(name => state().has(name));
  const everything = row => [row.id, row.target, ...row.inputs.map(pair => pair[1])].join("\n").toLowerCase();

  function matches(row, asked) {
    const answer = name => row.answers[given.methods.indexOf(asked.get(name))];
    const pairs = row.confusions.map(at => given.confusions[at]);
    if (asked.has("example")) return row.id === asked.get("example");
    if (asked.get("wrong") && (!answer("wrong") || answer("wrong")[2])) return false;
    if (asked.get("right") && (!answer("right") || !answer("right")[2])) return false;
    if (asked.get("class") && !pairs.some(pair => pair[0] === asked.get("class"))) return false;
    if (asked.get("confusion") && !row.confusions.includes(Number(asked.get("confusion")))) return false;
    if (asked.get("only") === "suspect" && !row.suspect) return false;
    if (asked.get("only") === "like" && !row.like) return false;
    return !asked.get("find") || everything(row).includes(asked.get("find").toLowerCase());
  }

  function inOrder(rows, asked) {
    const sort = asked.get("sort"), sign = sort === "unsure" ? 1 : -1;
    const sure = row => row.answers[0][1] === null ? 2 : sign * row.answers[0][1];  // without a probability: last
    const wrong = row => row.answers[0][2] ? 2 : row.off ? -row.off : sure(row) / 4;  // numbers: furthest first; right ones stay in the order of the file
    if (sort === "listed") return rows;
    if (sort) return rows.sort((a, b) => sure(a) - sure(b));
    if (asked.get("only") === "suspect") return rows.sort((a, b) => a.suspect.rank - b.suspect.rank);
    return rows.sort((a, b) => wrong(a) - wrong(b));
  }

  function text(row) {
    const made = make("div", undefined, "mistakes-text");
    for (const [role, words] of row.inputs) {
      const line = make("p");
      if (row.inputs.length > 1) line.append(make("b", `${role} `));
      const weighed = row.words && row.words[role];
      if (!weighed) line.append(words);
      else for (const [word, change] of weighed) {
        const part = make("span", word);
        if (change) {
          part.title = `without it ${change > 0 ? "−" : "+"}${Math.abs(change).toFixed(1)} points`;
          part.className = change > 0 ? "mistakes-for" : "mistakes-against";
          part.style.setProperty("--share", `${Math.min(100, 10 + 2 * Math.abs(change))}%`);
        }
        line.append(part, " ");
      }
      made.append(line);
    }
    return made;
  }

  function answers(row) {
    const made = make("table"), body = make("tbody");
    row.answers.forEach(([brief, sure, right], at) => {
      const line = make("tr"), head = make("th", given.methods[at]);
      head.scope = "row";
      line.append(head, make("td", right ? "right" : "wrong", right ? "mistakes-good" : "mistakes-bad"),
        make("td", brief), make("td", percent(sure), "n"));
      body.append(line);
    });
    made.append(body);
    return made;
  }

  function card(row) {
    const made = make("article"), head = make("h4"), link = make("a", row.id);
    link.href = `#${new URLSearchParams({example: row.id})}`;
    head.append(link, " target ", make("span", row.target, "mistakes-target"));
    made.append(head, text(row));
    if (row.suspect) made.append(make("p", `Suspected label error ${row.suspect.rank} of ${given.suspects}: the methods together say ${row.suspect.likely}, and give the target ${percent(row.suspect.confidence)}.`, "note"));
    const most = Object.values(row.words ?? {}).flat().filter(pair => pair[1] > 0).sort((a, b) => b[1] - a[1]).slice(0, 3);
    if (most.length) made.append(make("p", `Words that decided: ${most.map(([word, points]) => `${word} (${points.toFixed(1)} points)`).join(", ")}.`, "note"));
    if (row.like) made.append(make("p", `The training row ${row.like} has the same text, or nearly so.`, "note"));
    made.append(answers(row));
    return made;
  }

  function show() {
    const asked = state();
    for (const name of CONTROLS) {
      const control = form.elements[name];
      if (control && document.activeElement !== control) control.value = asked.get(name) ?? "";
    }
    found = inOrder(given.rows.filter(row => matches(row, asked)), asked);
    list.replaceChildren(...found.slice(0, shown).map(card));
    const pair = asked.has("confusion") ? given.confusions[Number(asked.get("confusion"))] : undefined;
    const only = asked.get("example") ?? (pair && `${pair[0]} → ${pair[1]}`);
    one.hidden = only === undefined;
    one.textContent = `Only ${only}. Show all`;
    count.textContent = `${found.length.toLocaleString("en")} of ${given.rows.length.toLocaleString("en")} examples`;
    more.hidden = found.length <= shown;
  }

  function go(asked) {
    shown = AT_ONCE;
    const kept = [...asked].filter(([, value]) => value);
    location.replace(`#${kept.length ? new URLSearchParams(kept) : "mistakes-examples"}`);
  }

  function changed() {
    const asked = state(), before = asked.get("confusion");
    const next = new URLSearchParams(before === null ? [] : [["confusion", before]]);
    for (const name of CONTROLS) if (form.elements[name]) next.set(name, form.elements[name].value);
    go(next);
  }

  function save() {
    const roles = [...new Set(given.rows.flatMap(row => row.inputs.map(pair => pair[0])))];
    const heads = ["id", ...roles, "target", ...given.methods.flatMap(name => [name, `${name} probability`, `${name} right`]), "suspected label", "training row like it"];
    const lines = found.map(row => {
      const inputs = Object.fromEntries(row.inputs);
      return [row.id, ...roles.map(role => inputs[role] ?? ""), row.target,
        ...row.answers.flatMap(([brief, sure, right]) => [brief, sure ?? "", right ? 1 : 0]),
        row.suspect ? row.suspect.likely : "", row.like ?? ""];
    });
    const cell = value => `"${String(value).replaceAll('"', '""')}"`;
    const csv = [heads, ...lines].map(line => line.map(cell).join(",")).join("\r\n") + "\r\n";
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([csv], {type: "text/csv"}));
    link.download = "examples.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  form.hidden = false;
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("input", changed);
  document.getElementById("mistakes-save").addEventListener("click", save);
  one.addEventListener("click", () => go(new URLSearchParams()));
  more.addEventListener("click", () => {
    const before = shown;
    shown += AT_ONCE;
    show();
    list.children[before]?.querySelector("a").focus();
  });
  addEventListener("hashchange", event => {
    show();
    const followed = isOurs() && !form.contains(document.activeElement) && document.activeElement !== one;
    if (followed) document.getElementById("mistakes-examples").scrollIntoView();
  });
  show();
  if (isOurs()) document.getElementById("mistakes-examples").scrollIntoView();
})();
