// One task: try it, its scores, its price tag, the leaderboard behind it, its card.

import { boardSection, interval, ownRow, spread } from "./board.js";
import { element, metricTitle, table, tree, words } from "./element.js";
import { askForm } from "./form.js";
import { taskLink } from "./links.js";
import { costName, costNames, gradesLegend, price } from "./prices.js";
import { ask } from "./server.js";
import { percent, show } from "./units.js";

/** The view of one task: `#/tasks/NAME`. */
export async function taskView(name, signal) {
  const [task, { tasks: all }] = await Promise.all(
    [`v1/tasks/${encodeURIComponent(name)}`, "v1/tasks"].map((path) => ask(path, { signal })));
  return {
    title: task.name,
    content: [
      element("p", { class: "back" }, element("a", { href: "#/" }, "All tasks")),
      element("h1", { tabindex: -1 }, task.name),
      element("p", { class: "about" }, about(task), versions(task)),
      section("try", "Try a text", askForm([task], [...task.versions, ...all.filter((other) => !other.failed)])),
      element("div", { class: "halves" }, scores(task), prices(task)),
      boardSection(task),
      labels(task),
      card(task),
    ],
  };
}

function section(id, title, ...content) {
  return element("section", { "aria-labelledby": id }, element("h2", { id }, title), content);
}

function about(task) {
  const facts = [
    `${words(task.kind)} by ${task.method?.name ?? "no method"}`,
    task.version && `version ${task.version}`,
    task.run && `run ${task.run}`,
    task.bytes !== undefined && `${show(task.bytes, "bytes")} in the bank`,
  ];
  return `${facts.filter(Boolean).join(", ")}.`;
}

function versions(task) {
  if (task.versions.length === 0) return null;
  return [" Stored besides: ", task.versions.map(({ name }, at) =>
    [at > 0 && ", ", element("a", { href: taskLink(name) }, name)]), "."];
}

function scores(task) {
  const found = Object.entries(task.scores ?? {});
  if (found.length === 0) return section("scores", "Scores", element("p", {}, "None is recorded."));
  const row = ownRow(task);
  const columns = [{ title: "metric" }, { title: "this run", number: true }];
  if (row) {
    const over = `over ${row.n_seeds} ${row.n_seeds === 1 ? "seed" : "seeds"}`;
    columns.push({ title: over, number: true }, { title: "95 % interval" });
  }
  const rows = found.map(([metric, value]) => {
    const over = row && (row.scores[metric] ? [spread(row, metric), interval(row.scores[metric])] : ["–", "–"]);
    return { cells: [metricTitle(metric, task.positive), percent(value), ...(over || [])] };
  });
  return section("scores", "Scores", table(columns, rows),
    element("p", { class: "legend" }, "In points, on the test split, which no run saw while it fitted or chose."));
}

function prices(task) {
  const names = costNames([task.costs]);
  if (names.length === 0) return section("price", "Price tag", element("p", {}, "None is recorded."));
  const rows = names.map((name) => ({ cells: [costName(name), price(task.costs[name])] }));
  return section("price", "Price tag",
    table([{ title: "of the run", plain: true }, { title: "price", number: true }], rows),
    element("p", { class: "legend" }, "What the run would cost alone. ", gradesLegend([task.costs])));
}

function labels(task) {
  if (!task.labels?.length) return null;
  return section("labels", `${task.labels.length} labels`,
    element("ul", { class: "labels" }, task.labels.map((label) => element("li", {}, label))));
}

function card(task) {
  if (!task.card && !task.recipe) return null;
  return section("card", "Card",
    task.card && element("pre", { class: "card" }, task.card),
    element("details", {}, element("summary", {}, "Method and recipe"),
      tree({ method: task.method, recipe: task.recipe })));
}
