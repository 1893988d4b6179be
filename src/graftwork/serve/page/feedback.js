// Whether an answer is right, and what is: kept by a server that was started with --feedback.

import { element } from "./element.js";
import { ask, shownError } from "./server.js";

/** The buttons under an answer; `task` has its kind and labels. */
export function feedbackForm(task, inputs, answer) {
  const predicted = answer.best_guess ?? answer.label ?? answer.value;
  const told = element("p", { class: "caption", role: "status" });
  const keep = async (label) => {
    try {
      await ask("v1/feedback", { body: { task: task.name, ...inputs, label, predicted } });
      node.replaceChildren(told);
      told.textContent = `Kept as a row to train on: ${[label].flat().join(", ") || "no label"}.`;
    } catch (error) {
      told.replaceChildren(shownError(error));
    }
  };
  const right = element("button", { type: "button", click: () => keep(predicted) }, "Right");
  const wrong = element("button", { type: "button", "aria-expanded": "false", click: () => {
    correction.hidden = !correction.hidden;
    wrong.setAttribute("aria-expanded", String(!correction.hidden));
    if (!correction.hidden) correction.querySelector("select, input").focus();
  } }, "Wrong");
  const { field, given } = correctionField(task, predicted);
  const correction = element("form", { class: "buttons", hidden: true, submit: (event) => {
    event.preventDefault();
    keep(given());
  } }, field, element("button", { type: "submit" }, "Keep"));
  const node = element("div", { class: "feedback" },
    element("p", { class: "buttons" }, element("span", { class: "caption" }, "Is it right?"), right, wrong),
    correction, told);
  return node;
}

function correctionField({ kind, labels }, predicted) {
  if (kind === "regression") {
    const input = element("input", { type: "number", step: "any", required: true });
    return { field: element("label", {}, "Right value", input), given: () => input.valueAsNumber };
  }
  const several = kind === "multilabel";
  const offered = several ? labels : labels.filter((label) => label !== predicted);
  const select = element("select", { multiple: several, required: !several },
    !several && element("option", { value: "" }, "choose …"),
    offered.map((label) => element("option", { value: label, selected: several && predicted.includes(label) }, label)));
  const chosen = () => [...select.selectedOptions].map(({ value }) => value);
  return { field: element("label", {}, several ? "Right labels" : "Right label", select),
    given: () => several ? chosen() : select.value };
}
