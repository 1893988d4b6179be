// The box to try a text on one task or all: its fields are the inputs that the chosen task takes.

import { answersView, growing, summary } from "./answers.js";
import { element } from "./element.js";
import { ask, NoToken, shownError } from "./server.js";
import { count } from "./units.js";

// Names of inputs, sorted -> how they are asked for. `lines`: every line is one of a list.
const FORMS = {
  "text": { noun: "a text", fields: [{ name: "text", label: "Text", rows: 4 }] },
  "text_a text_b": { noun: "a pair of texts", fields: [
    { name: "text_a", label: "First text", rows: 3 }, { name: "text_b", label: "Second text", rows: 3 }] },
  "context question": { noun: "a question about a passage", fields: [
    { name: "question", label: "Question", rows: 1 }, { name: "context", label: "Passage", rows: 7 }] },
  "choices text": { noun: "a text and choices", fields: [
    { name: "text", label: "Text", rows: 3 },
    { name: "choices", label: "Choices, one to a line", rows: 4, lines: true }] },
  "words": { noun: "words", fields: [{ name: "words", label: "Words, one to a line", rows: 6, lines: true }] },
};
const drafts = new Map(); // what was typed, by name of the input: it survives a change of task, of view and of token

/** A form over these tasks; with several, one or all of them may be asked. */
export function askForm(tasks) {
  const choices = choicesOf(tasks);
  if (choices.length === 0) {
    return element("p", {}, "It answers for files, which a server does not take: use ",
      element("code", {}, "graft predict"), ".");
  }
  const fields = element("div", { class: "fields" });
  const results = element("div", { class: "results" });
  const status = element("p", { class: "status", role: "status" });
  const stop = element("button", { type: "button", hidden: true }, "Stop waiting");
  let chosen = choices[0];
  const choose = (choice) => {
    chosen = choice;
    fields.replaceChildren(...FORMS[choice.inputs].fields.map((field) => control(field, form)));
  };
  let asked = new AbortController();
  const send = async () => {
    asked.abort(); // a second question takes the place of the first
    const { signal } = asked = new AbortController();
    await answer(chosen, inputsOf(form, chosen), tasks, { form, status, results, stop }, signal);
  };
  stop.addEventListener("click", () => {
    asked.abort();
    stop.hidden = true;
    status.textContent = "Stopped; nothing was answered.";
  });
  const form = element("form", { class: "ask", submit: (event) => {
    event.preventDefault();
    send();
  } });
  form.append(choices.length > 1 ? selection(choices, choose) : "", fields,
    element("p", { class: "buttons" }, element("button", { type: "submit", class: "main" }, "Answer"), stop,
      element("span", { class: "caption" }, "or Ctrl + Enter")));
  choose(chosen);
  return [form, status, results];
}

/** What may be asked: every task that takes an input together, then each by itself. */
function choicesOf(tasks) {
  const single = tasks.flatMap((task) => (task.inputs ?? []).map((names) => [...names].sort().join(" "))
    .filter((inputs) => inputs in FORMS).map((inputs) => ({ task: task.name, inputs, label: task.name })));
  const together = Object.keys(FORMS).flatMap((inputs) => {
    const number = single.filter((choice) => choice.inputs === inputs).length;
    const label = `all ${count(number)} tasks that take ${FORMS[inputs].noun}`;
    return number > 1 ? [{ task: "*", inputs, label }] : [];
  });
  const order = Object.keys(FORMS);
  return [...together, ...single.sort((a, b) => order.indexOf(a.inputs) - order.indexOf(b.inputs))];
}

function selection(choices, choose) {
  const groups = new Map();
  choices.forEach((choice, at) => {
    const title = choice.task === "*" ? "Together" : `From ${FORMS[choice.inputs].noun}`;
    if (!groups.has(title)) groups.set(title, element("optgroup", { label: title }));
    groups.get(title).append(element("option", { value: at }, choice.label));
  });
  const change = () => choose(choices[Number(select.value)]);
  const select = element("select", { name: "task", change }, [...groups.values()]);
  return element("label", {}, "Ask", select);
}

function control(field, form) {
  const area = element("textarea", {
    name: field.name, rows: field.rows, required: true, maxlength: 20000, dir: "auto",
    input: () => drafts.set(field.name, area.value),
    keydown: (event) => {
      const line = field.rows === 1 && event.key === "Enter";
      if (!event.isComposing && (line || (event.key === "Enter" && (event.ctrlKey || event.metaKey)))) {
        event.preventDefault();
        form.requestSubmit();
      }
    },
  });
  area.value = drafts.get(field.name) ?? "";
  return element("label", {}, field.label, area);
}

function inputsOf(form, choice) {
  return Object.fromEntries(FORMS[choice.inputs].fields.map(({ name, lines }) => {
    const text = form.elements[name].value; // its line ends are one character each, as offsets count them
    return [name, lines ? text.split("\n").map((line) => line.trim()).filter(Boolean) : text];
  }));
}

async function answer(choice, inputs, tasks, { form, status, results, stop }, signal) {
  const tell = (text) => { status.textContent = text; };
  const waits = (seconds) => {
    stop.hidden = false;
    tell(`The server is busy. The next try is in ${seconds} s, as it asks for.`);
  };
  tell("Asking …");
  try {
    const writes = tasks.find((task) => task.name === choice.task)?.kind === "generation";
    const grows = writes && ((text) => {
      tell("Writing …");
      results.replaceChildren(growing(text));
    });
    const told = await ask("v1/predict", { body: { task: choice.task, ...inputs }, signal, waits, grows });
    const row = told.rows?.[0] ?? told;
    results.replaceChildren(...answersView(row, inputs, tasks));
    tell(summary(row));
  } catch (error) {
    if (signal.aborted) return;
    tell("");
    results.replaceChildren(shownError(error));
    if (error instanceof NoToken) form.dispatchEvent(new CustomEvent("notoken", { bubbles: true, detail: error }));
  }
  stop.hidden = true;
}
