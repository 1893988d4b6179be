// The page: which view is shown, the form that asks for the token, and what goes wrong on the way.

import { attentionView } from "./attention.js";
import { element } from "./element.js";
import { place } from "./links.js";
import { hasToken, keepToken, NoToken, shownError, takeToken } from "./server.js";
import { taskView } from "./task.js";
import { tasksView } from "./tasks.js";

const main = document.getElementById("main");
const forget = document.getElementById("forget");
let leaving = new AbortController(); // ends what the view before was still waiting for
let shown = null; // the address of the view that is on the screen

function viewOf([first, name]) {
  if (first === "tasks" && name) return (signal) => taskView(name, signal);
  return first === "attention" ? attentionView : tasksView;
}

async function show() {
  takeToken();
  leaving.abort();
  const { signal } = leaving = new AbortController();
  main.setAttribute("aria-busy", "true");
  let view;
  try {
    view = await viewOf(place())(signal);
  } catch (error) {
    if (signal.aborted) return;
    view = error instanceof NoToken ? tokenView(error) : failedView(error);
  }
  if (!signal.aborted) put(view);
}

/** Show a view; after the first one the focus goes to its heading, as on a new page, or to what the view names. */
function put({ title, content, focus }) {
  main.replaceChildren(...content.flat(Infinity).filter(Boolean));
  main.removeAttribute("aria-busy");
  document.title = `${title} · Graftwork`;
  forget.hidden = !hasToken();
  const address = place().join("/");
  for (const link of document.querySelectorAll("nav a")) {
    const attention = link.hash === "#/attention";
    if (attention === (place()[0] === "attention")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (focus) focus.focus();
  else if (shown !== null && shown !== address) {
    main.querySelector("h1").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  shown = focus ? "token" : address;
}

function failedView(error) {
  return {
    title: "Error",
    content: [element("h1", { tabindex: -1 }, "This can't be shown"), shownError(error),
      element("p", { class: "buttons" }, element("button", { type: "button", class: "main", click: show }, "Try again"),
        element("a", { href: "#/" }, "All tasks"))],
  };
}

/** Asks for the token; says so when the one that was tried is refused. */
function tokenView(error) {
  const refused = hasToken();
  keepToken("");
  const trouble = element("div", {}, refused && shownError(error));
  const field = element("input", { type: "password", name: "token", required: true, autocomplete: "off",
    spellcheck: "false", "aria-describedby": "where" });
  const submit = (event) => {
    event.preventDefault();
    const token = field.value.trim();
    if (!/^[!-~]+$/.test(token)) {
      trouble.replaceChildren(element("p", { class: "error", role: "alert" },
        "A token has letters, digits and signs only, without spaces."));
      return field.focus();
    }
    keepToken(token);
    return show();
  };
  return {
    title: "Token",
    focus: field,
    content: [
      element("h1", { tabindex: -1 }, "This server asks for a token"),
      element("p", { id: "where" }, element("code", {}, "graft serve"),
        " printed a link when it started that holds the token; or it is in the file given by ",
        element("code", {}, "--token-file"), ". It is kept until this tab is closed."),
      trouble,
      element("form", { class: "ask token", submit }, element("label", {}, "Token", field),
        element("p", { class: "buttons" }, element("button", { type: "submit", class: "main" }, "Open"))),
    ],
  };
}

addEventListener("hashchange", () => {
  if (/^($|#\/|#token=)/.test(location.hash)) show(); // others are places in the page, as of the skip link
});
main.addEventListener("notoken", (event) => put(tokenView(event.detail)));
forget.addEventListener("click", () => {
  keepToken("");
  show();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
show();
