// The box to try a text on one task or all: its fields are the inputs that the chosen task takes.

import { answersView, growing, summary } from "./answers.js";
import { decidingWords, hasClasses } from "./deciding.js";
import { element } from "./element.js";
import { feedbackForm } from "./feedback.js";
import { fileForm } from "./file.js";
import { ask, NoToken, shownError } from "./server.js";
import { asCurl, asPython } from "./snippets.js";
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
const CLIPPED = 70; // letters of an example
const drafts = new Map(); // what was typed, by name of the input: it survives a change of task, of view and of token

/** A form over these tasks; with several, one, two side by side, or all of them may be asked. */
export function askForm(tasks, others = []) {
  const choices = choicesOf(tasks);
  if (choices.length === 0) {
    return element("p", {}, "It answers for files, which a server does not take: use ",
      element("code", {}, "graft predict"), ".");
  }
  const fields = element("div", { class: "fields" });
  const examples = element("div", { class: "examples" });
  const beside = element("div", {});
  const results = element("div", { class: "results" });
  const least = element("input", { name: "abstain_below", type: "number", min: 0, max: 1, step: "any" });
  const status = element("p", { class: "status", role: "status" });
  const stop = element("button", { type: "button", hidden: true }, "Stop waiting");
  const known = new Map([...others, ...tasks].map((task) => [task.name, task]));
  let chosen = choices[0];
  let second = ""; // the task beside it
  const asked = () => ({
    task: second ? [chosen.task, second] : chosen.task,
    fields: FORMS[chosen.inputs].fields,
    tasks: second ? 2 : chosen.task === "*" ? tasks.length : 1,
    below: least.value === "" ? undefined : Number(least.value),
  });
  const body = () => {
    const { task, below } = asked();
    const row = { task, ...inputsOf(form, chosen) };
    return below === undefined ? row : { rows: [row], abstain_below: below };
  };
  const choose = (choice) => {
    chosen = choice;
    second = "";
    fields.replaceChildren(...FORMS[choice.inputs].fields.map((field) => control(field, form)));
    beside.replaceChildren(...besideSelection(choice, [...known.values()], (name) => {
      second = name;
      snippets.show();
    }));
    file.show();
    snippets.show();
    offerExamples(examples, choice, tasks, () => choice === chosen, (given) => {
      fill(form, choice, given);
      snippets.show();
      form.requestSubmit();
    });
  };
  let sent = new AbortController();
  const send = async () => {
    sent.abort(); // a second question takes the place of the first
    const { signal } = sent = new AbortController();
    await answer(body(), tasks, known, { form, status, results, stop }, signal);
  };
  stop.addEventListener("click", () => {
    sent.abort();
    stop.hidden = true;
    status.textContent = "Stopped; nothing was answered.";
  });
  const form = element("form", { class: "ask", input: () => snippets.show(), submit: (event) => {
    event.preventDefault();
    send();
  } });
  const file = fileForm(asked);
  const snippets = snippetsOf(body);
  form.append(element("div", { class: "beside controls" }, choices.length > 1 && selection(choices, choose), beside),
    fields, examples, element("label", {}, "Not sure below a probability of", least),
    element("p", { class: "buttons" }, element("button", { type: "submit", class: "main" }, "Answer"), stop,
      element("span", { class: "caption" }, "or Ctrl + Enter")),
    element("div", {}, snippets.node, file.node));
  choose(chosen);
  return [form, status, results];
}

/** A task to answer beside the chosen one, on the same inputs. */
function besideSelection(choice, tasks, choose) {
  const alike = choicesOf(tasks).filter(({ task, inputs }) =>
    inputs === choice.inputs && task !== "*" && task !== choice.task);
  if (choice.task === "*" || alike.length === 0) return [];
  const select = element("select", { name: "second", change: () => choose(select.value) },
    element("option", { value: "" }, "nothing"), alike.map(({ task }) => element("option", { value: task }, task)));
  return [element("label", {}, "Beside it", select)];
}

/** Inputs that the task was tested with when it was made, to click on. */
async function offerExamples(place, choice, tasks, current, take) {
  place.replaceChildren();
  const takes = tasks.find(({ name }) => name === choice.task) ?? tasks.find((task) => fits(task, choice.inputs));
  const told = takes.examples ? takes : await ask(`v1/tasks/${encodeURIComponent(takes.name)}`).catch(() => ({}));
  const asText = (each) => choice.inputs === "text" && each.words ? { text: each.words.join(" ") } : each;
  const given = (told.examples ?? []).map(asText)
    .filter((each) => Object.keys(each).sort().join(" ") === choice.inputs);
  if (!current() || given.length === 0) return;
  place.replaceChildren(element("span", { class: "caption" }, "Or try"), ...given.map((each) => {
    const text = Object.values(each).flat().join(" · ");
    return element("button", { type: "button", class: "example", dir: "auto", click: () => take(each) },
      text.length > CLIPPED ? `${text.slice(0, CLIPPED - 1)}…` : text);
  }));
}

function fill(form, choice, given) {
  for (const { name, lines } of FORMS[choice.inputs].fields) {
    form.elements[name].value = lines ? given[name].join("\n") : given[name];
    drafts.set(name, form.elements[name].value);
  }
}

function snippetsOf(body) {
  const parts = [["Python", asPython], ["curl", asCurl]].map(([name, write]) => {
    const code = element("pre", { tabindex: 0, "aria-label": `As ${name}` });
    const copy = element("button", { type: "button", class: "link", click: async () => {
      await navigator.clipboard.writeText(code.textContent);
      copy.textContent = "Copied";
    } }, `Copy as ${name}`);
    return { write, code, copy };
  });
  const show = () => parts.forEach(({ write, code }) => { code.textContent = write(body()); });
  const node = element("details", {}, element("summary", {}, "As Python or curl"),
    parts.map(({ code, copy }) => [code, navigator.clipboard && element("p", {}, copy)]));
  return { node, show };
}

/** What may be asked: every task that takes an input together, then each by itself. */
function choicesOf(tasks) {
  const single = tasks.flatMap((task) => Object.keys(FORMS).filter((inputs) => fits(task, inputs))
    .map((inputs) => ({ task: task.name, inputs, label: task.name })));
  const together = Object.keys(FORMS).flatMap((inputs) => {
    const number = single.filter((choice) => choice.inputs === inputs).length;
    const label = `all ${count(number)} tasks that take ${FORMS[inputs].noun}`;
    return number > 1 ? [{ task: "*", inputs, label }] : [];
  });
  const order = Object.keys(FORMS);
  return [...together, ...single.sort((a, b) => order.indexOf(a.inputs) - order.indexOf(b.inputs))];
}

function fits(task, inputs) {
  return (task.inputs ?? []).some((names) => [...names].sort().join(" ") === inputs);
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

async function answer(body, listed, tasks, { form, status, results, stop }, signal) {
  const tell = (text) => { status.textContent = text; };
  const waits = (seconds) => {
    stop.hidden = false;
    tell(`The server is busy. The next try is in ${seconds} s, as it asks for.`);
  };
  tell("Asking …");
  const { task, ...inputs } = body.rows?.[0] ?? body;
  try {
    const grows = tasks.get(task)?.kind === "generation" && ((text) => {
      tell("Writing …");
      results.replaceChildren(growing(text));
    });
    const told = await ask("v1/predict", { body, signal, waits, grows });
    const row = told.rows?.[0] ?? told;
    results.replaceChildren(...answersView(row, inputs, listed, (name, found) => [
      hasClasses(found) && decidingWords(name, inputs, found),
      tasks.get(name)?.feedback && feedbackForm(tasks.get(name), inputs, found)]));
    tell(summary(row));
  } catch (error) {
    if (signal.aborted) return;
    tell("");
    results.replaceChildren(shownError(error));
    if (error instanceof NoToken) form.dispatchEvent(new CustomEvent("notoken", { bubbles: true, detail: error }));
  }
  stop.hidden = true;
}
