// All tasks of the bank, and the box to try a text on one or all of them.

import { breakable, element, table } from "./element.js";
import { askForm } from "./form.js";
import { taskLink } from "./links.js";
import { gradesLegend, headline, costName, LISTED, price } from "./prices.js";
import { ask } from "./server.js";
import { count } from "./units.js";

/** The first view: `#/`. */
export async function tasksView(signal) {
  const { bank, tasks: all } = await ask("v1/tasks", { signal });
  const tasks = all.filter((task) => !task.failed);
  const name = bank.backbone?.id;
  const number = `${count(tasks.length)} ${tasks.length === 1 ? "task" : "tasks"}`;
  return {
    title: "Tasks",
    content: [
      element("h1", { tabindex: -1 }, name ? `${number} on ${name}` : number),
      element("p", { class: "about" }, about(bank)),
      ...all.filter((task) => task.failed).map(unopened),
      ...(tasks.length > 0 ? [trial(tasks), listed(tasks)] : [empty()]),
    ],
  };
}

function about(bank) {
  const facts = [
    bank.backbone && `revision ${bank.backbone.revision.slice(0, 12)}`,
    bank.precision && `frozen weights in ${bank.precision}`,
  ].filter(Boolean);
  return `One frozen backbone answers for every task${facts.length > 0 ? `: ${facts.join(", ")}` : ""}.`;
}

function empty() {
  return element("p", {}, "The bank is empty. Add a task to it; this server takes it up without a restart: ",
    element("code", {}, "graft train DATA --bank BANK --task NAME"));
}

function unopened(task) {
  return element("p", { class: "note" }, `${task.name} could not be opened: ${task.failed}`);
}

function trial(tasks) {
  return element("section", { "aria-labelledby": "try" }, element("h2", { id: "try" }, "Try a text"), askForm(tasks));
}

function listed(tasks) {
  const rows = tasks.map((task) => ({ cells: cells(task) }));
  const found = tasks.map((task) => `${task.name} ${task.kind} ${task.method?.name}`.toLowerCase());
  const columns = [
    { title: "task" }, { title: "kind" }, { title: "method" }, { title: "score", number: true, wraps: true },
    ...LISTED.map((name) => ({ title: costName(name), number: true })),
  ];
  const shown = table(columns, rows, { className: "wide cards" });
  const lines = [...shown.tBodies[0].rows];
  const told = element("p", { class: "caption", role: "status" });
  const search = (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    lines.forEach((line, at) => { line.hidden = !found[at].includes(wanted); });
    const left = lines.filter((line) => !line.hidden).length;
    told.textContent = wanted ? `${count(left)} of ${count(lines.length)} tasks` : "";
  };
  const find = element("label", { class: "find" }, "Find a task",
    element("input", { type: "search", autocomplete: "off", spellcheck: "false", input: search }));
  return element("section", { "aria-labelledby": "tasks" },
    element("div", { class: "beside" }, element("h2", { id: "tasks" }, "Tasks"), tasks.length > 8 && find),
    told, element("div", { class: "scroll" }, shown),
    element("p", { class: "legend" },
      "Scores in points, each task's headline metric on its test split, of one run; the spread over seeds and the ",
      "baselines are in its leaderboard, where one was stored with it. A price is what the run would cost alone. ",
    gradesLegend(tasks.map((task) => task.costs))));
}

function cells(task) {
  return [
    element("a", { href: taskLink(task.name) }, breakable(task.name)),
    task.kind,
    task.method?.name ?? "–",
    headline(task.scores, task.positive),
    ...LISTED.map((name) => price(task.costs?.[name])),
  ];
}
