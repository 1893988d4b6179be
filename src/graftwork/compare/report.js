/** What a cell is sorted by: its value, the number that its text begins with, or its text. */
function key(cell, number) {
  const text = cell.textContent.trim();
  return number ? parseFloat(cell.dataset.value ?? text.replace(/,/g, "")) : text;
}

function sortable(table) {
  const [head, body] = [table.tHead.rows[0], table.tBodies[0]];
  for (const [column, cell] of [...head.cells].entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...cell.childNodes);
    cell.append(button);
    button.addEventListener("click", () => {
      const number = cell.classList.contains("n");
      const down = cell.ariaSort ? cell.ariaSort === "ascending" : number;
      const order = (a, b) => {
        const [x, y] = [a, b].map((row) => key(row.cells[column], number));
        if (!number) return (down ? -1 : 1) * x.localeCompare(y, "en", { numeric: true });
        return Number.isNaN(x) || Number.isNaN(y) ? Number.isNaN(x) - Number.isNaN(y) : down ? y - x : x - y;
      };
      body.append(...[...body.rows].sort(order));
      for (const one of head.cells) one.removeAttribute("aria-sort");
      cell.ariaSort = down ? "descending" : "ascending";
    });
  }
}

/** Shows the chart of the metric and the cost that are chosen. */
function frontier(form) {
  const choose = () => {
    const [metric, cost] = [...form.querySelectorAll("select")].map((select) => select.value);
    for (const one of form.parentElement.querySelectorAll("[data-cost]")) {
      one.hidden = one.dataset.metric !== metric || one.dataset.cost !== cost;
    }
  };
  form.addEventListener("change", choose);
  form.hidden = false;
  choose();
}

addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("table[data-sort]").forEach(sortable);
  document.querySelectorAll(".axes").forEach(frontier);
});
