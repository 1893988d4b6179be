// What the page asks the server, with the token; refusals come back as errors that say what to do.

import { element } from "./element.js";

const KEY = "graftwork.token";
const JSON_TEXT = "application/json";
const EVENTS = "text/event-stream";
const TRIES = 6; // of a request that a full queue refuses
const LONGEST_WAIT = 60; // seconds
const [PART_ROWS, PART_ANSWERS, PART_LETTERS] = [64, 1024, 20_000]; // of many rows, asked together

let kept = "";
try {
  kept = sessionStorage.getItem(KEY) ?? "";
} catch { /* storage is switched off: the token lives as long as the page */ }

/** What the server refused, in the words of its errors: what, where, got, expected, do. */
export class Refused extends Error {
  constructor(parts) {
    super(parts.what);
    this.parts = parts;
  }
}

/** The server wants a token, or another one. */
export class NoToken extends Refused {}

/** Whether a token is known. */
export function hasToken() {
  return kept !== "";
}

/** Keep a token for as long as this tab is open; an empty one forgets it. */
export function keepToken(token) {
  kept = token;
  try {
    if (token) sessionStorage.setItem(KEY, token);
    else sessionStorage.removeItem(KEY);
  } catch { /* kept in memory */ }
}

/** Take the token out of a link's `#token=…`, so that it stands neither in the address bar nor in the history. */
export function takeToken() {
  const found = /^#token=([^&]*)/.exec(location.hash);
  if (!found) return;
  history.replaceState(null, "", `${location.pathname}${location.search}#/`);
  try {
    keepToken(decodeURIComponent(found[1]));
  } catch {
    keepToken(found[1]);
  }
}

/**
 * JSON from `path`; with a `body` it is posted. `waits(seconds)` is told when a full queue makes it wait. With
 * `grows(text)` the answer is asked for as events, and it is told a text as far as it is written.
 */
export async function ask(path, { body, signal, waits = () => {}, grows } = {}) {
  for (let tried = 1; ; tried += 1) {
    const answer = await sent(path, body, signal, grows ? EVENTS : JSON_TEXT);
    if (answer.status === 429 && tried < TRIES) {
      const seconds = retryAfter(answer.headers.get("Retry-After"));
      waits(seconds);
      await pause(seconds, signal);
      continue;
    }
    if (answer.ok && answer.headers.get("Content-Type")?.startsWith(EVENTS)) return heard(answer, path, signal, grows);
    const content = await answer.json().catch(() => null);
    if (answer.ok && content !== null) return content;
    const parts = content?.error ?? { what: `the server answered ${answer.status} and no JSON`, where: path };
    if (answer.status === 401) throw new NoToken(parts);
    throw new Refused(parts);
  }
}

/**
 * The answers to many rows of `tasks` tasks each, asked in parts that are answered in time; `progress(rows)` is told
 * how many are. Answers less probable than `below` are withheld. An error has the number of its `row`.
 */
export async function askRows(rows, { tasks, below, signal, waits, progress = () => {} }) {
  const answers = [];
  while (answers.length < rows.length) {
    const part = partOf(rows.slice(answers.length, answers.length + PART_ROWS), Math.floor(PART_ANSWERS / tasks));
    try {
      const told = await ask("v1/predict", { body: { rows: part, abstain_below: below }, signal, waits });
      answers.push(...told.rows);
    } catch (error) {
      const place = /^rows\[(\d+)\]/.exec(error.parts?.where ?? "");
      if (place) error.row = answers.length + Number(place[1]);
      throw error;
    }
    progress(answers.length);
  }
  return answers;
}

/** The first of these rows, at least one, up to so many and within the letters of a part. */
function partOf(rows, most) {
  let letters = 0;
  const fits = rows.findIndex((row, at) => at >= most || (letters += JSON.stringify(row).length) > PART_LETTERS);
  return fits < 0 ? rows : rows.slice(0, Math.max(fits, 1));
}

/** The answer at the end of events. */
async function heard(answer, path, signal, grows) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let [rest, text] = ["", ""];
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const events = (rest + part.value).split("\n\n");
      rest = events.pop();
      for (const lines of events) {
        const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(lines);
        const content = JSON.parse(data);
        if (name === "answer") return content;
        if (name === "error") throw new Refused(content.error);
        grows(text += content.text);
      }
    }
  } catch (error) {
    if (signal?.aborted || error instanceof Refused) throw error;
  }
  throw new Refused({ what: "the answer broke off", where: path, do: "try again" });
}

async function sent(path, body, signal, accepts) {
  const headers = { Accept: accepts };
  if (kept) headers.Authorization = `Bearer ${kept}`;
  if (body !== undefined) headers["Content-Type"] = JSON_TEXT;
  const content = body === undefined ? undefined : JSON.stringify(body);
  try {
    return await fetch(path, {
      method: body === undefined ? "GET" : "POST", headers, body: content, signal,
      cache: "no-store", credentials: "omit", redirect: "error",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused({ what: "the server does not answer", where: path,
      do: "see whether `graft serve` is still running, then try again" });
  }
}

/** Seconds, from a number of them or a date. */
function retryAfter(header) {
  const seconds = /^\d+$/.test(header ?? "") ? Number(header) : (Date.parse(header ?? "") - Date.now()) / 1000;
  return Number.isNaN(seconds) ? 1 : Math.min(Math.max(Math.ceil(seconds), 0), LONGEST_WAIT);
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => reject(new DOMException("given up", "AbortError"));
    if (signal?.aborted) return stop();
    signal?.addEventListener("abort", stop, { once: true });
    setTimeout(resolve, seconds * 1000);
  });
}

/** A refusal as a person reads it. Anything else is a mistake of this page, and is named as that. */
export function shownError(error) {
  const parts = error instanceof Refused ? error.parts : { what: `the page failed: ${error.message}` };
  const rest = ["where", "got", "expected", "do"].filter((name) => parts[name]);
  return element("div", { class: "error", role: "alert" },
    element("p", {}, parts.what),
    rest.length > 0 && element("dl", { class: "pairs" }, rest.map((name) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, String(parts[name]))))));
}
