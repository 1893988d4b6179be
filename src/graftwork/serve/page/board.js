// The leaderboard of the comparison behind a task, as the report shows it.

import { breakable, element, metricTitle, table, words } from "./element.js";
import { costName, costNames, gradesLegend, LISTED, price } from "./prices.js";
import { percent } from "./units.js";

/** The board that was stored with a task: scores with spread, baselines, prices, what was dropped and why. */
export function boardSection(task) {
  const board = task.board;
  const title = element("h2", { id: "board" }, "Leaderboard");
  const within = (...content) => element("section", { "aria-labelledby": "board" }, title, content);
  if (!board) {
    return within(element("p", {}, "None was stored with this task, so nothing here says what the other methods reach. "
      + "To compare them and keep the board with it: ", element("code", {}, "graft compare DATA"), ", then ",
    element("code", {}, "graft bank add … --board FOLDER"), "."));
  }
  const said = task.board_in_words ?? {};
  return within(
    said.answer && element("p", { class: "answer" }, said.answer),
    notes(board.notes),
    boardTable(board, ownRow(task)),
    legend(board),
    notes(errors(board)),
    folded("All prices", pricesTable(board)),
    folded("Runs", runs(board)),
    list("Which differences are real", said.verdicts),
    list("About the data", said.warnings),
    said.search && element("p", { class: "legend" }, `${said.search}.`),
  );
}

/** The row of the board that the task's run is one of; none where it is of no row. */
export function ownRow({ board, run }) {
  return board?.rows.find((row) => row.runs.includes(run));
}

function boardTable(board, own) {
  const metric = board.headline_metric;
  const others = [...new Set(board.rows.flatMap((row) => Object.keys(row.scores)))].filter((name) => name !== metric);
  const columns = [
    { title: "method" }, { title: "runs", number: true },
    { title: metricTitle(metric, board.task?.positive), number: true, wraps: true }, { title: "95 % interval" },
    ...others.map((name) => ({ title: metricTitle(name, board.task?.positive), number: true })),
    ...LISTED.map((name) => ({ title: costName(name), number: true })),
  ];
  const rows = board.rows.map((row) => ({
    className: [row.status !== "ok" && "lost", row === own && "own"].filter(Boolean).join(" ") || null,
    cells: [
      [mark(row, board), " ", breakable(row.method)],
      String(row.n_seeds),
      status(row, metric) ?? spread(row, metric),
      interval(row.scores[metric]),
      ...others.map((name) => row.scores[name] ? percent(row.scores[name].mean) : "–"),
      ...LISTED.map((name) => price(row.costs[name])),
    ],
  }));
  return element("div", { class: "scroll" }, table(columns, rows, { className: "wide cards board" }));
}

function mark(row, board) {
  const [sign, meaning] = row.below_majority ? ["!", `below ${floorName(board)}`]
    : board.frontier.includes(row.method) ? ["◆", "no other method is both better and cheaper to train"] : ["", ""];
  return element("span", { class: "mark" }, sign && element("abbr", { title: meaning }, sign));
}

/** The best constant answer, as `graftwork.compare.majority_floor.floor_name` has it. */
function floorName(board) {
  return board.task?.kind === "generation" ? "the most frequent text" : "the majority class";
}

function status(row, metric) {
  return row.scores[metric] ? null : words(row.status);
}

/** `96.6 ± 0.4`: the mean over seeds and, where there are several, its standard deviation. */
export function spread(row, metric) {
  const { mean, sd } = row.scores[metric];
  return row.n_seeds > 1 ? `${percent(mean)}\u00a0±\u00a0${percent(sd)}` : percent(mean);
}

/** `[95.1, 97.9]`. */
export function interval(found) {
  return found ? element("span", { class: "quiet" }, `[${percent(found.low)}, ${percent(found.high)}]`) : "–";
}

/** The first line of what went wrong in a row. */
function errors(board) {
  const failed = board.rows.filter((row) => row.errors?.length > 0);
  return failed.map((row) => `${row.method}: ${row.errors[0].split("\n")[0]}`);
}

function legend(board) {
  return element("p", { class: "legend" },
    "Scores in points: mean ± standard deviation over seeds; the interval is over seeds and examples. ",
    "Prices are of one run, median over runs. ",
    board.frontier.length > 0 && "◆ no other method is both better and cheaper to train. ",
    board.rows.some((row) => row.below_majority) && `! below ${floorName(board)}. `,
    gradesLegend(board.rows.map((row) => row.costs)));
}

function pricesTable(board) {
  const methods = board.rows.map((row) => ({ title: row.method, number: true }));
  const columns = [{ title: "of one run, median", plain: true }, ...methods];
  const rows = costNames(board.rows.map((row) => row.costs)).map((name) =>
    ({ cells: [costName(name), ...board.rows.map((row) => price(row.costs[name]))] }));
  return element("div", { class: "scroll" }, table(columns, rows, { className: "wide cards board" }));
}

function runs(board) {
  return element("ul", {}, board.rows.map((row) =>
    element("li", {}, `${row.method}: `, element("code", {}, row.runs.join(" ") || "–"))));
}

function folded(title, content) {
  return element("details", {}, element("summary", {}, title), content);
}

function notes(lines) {
  return (lines ?? []).map((line) => element("p", { class: "note" }, line));
}

function list(title, lines) {
  if (!lines?.length) return null;
  return [element("h3", {}, title), element("ul", {}, lines.map((line) => element("li", {}, line)))];
}
