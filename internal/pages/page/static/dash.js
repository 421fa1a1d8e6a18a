// SPDX-License-Identifier: Apache-2.0

// What makes a page live. Its parts come rendered by the router: a part stands
// between two comments, and is swapped when the router says that it has changed.
// The router has escaped what is in it, and its policy lets no script in a page run.

import { dress } from "./tables.js";
import { tell } from "./times.js";

const status = document.getElementById("status");

// The two comments of a part.
function bounds(name) {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_COMMENT);
  let begin = null;
  for (let c = walk.nextNode(); c; c = walk.nextNode()) {
    if (c.data === "live:" + name) begin = c;
    else if (c.data === "over:" + name && begin) return [begin, c];
  }
  return null;
}

// An element that has the focus keeps it, by its id or its address.
function address(e) {
  if (!e || e === document.body) return null;
  if (e.id) return "#" + CSS.escape(e.id);
  const href = e.getAttribute("href");
  if (href) return `a[href="${CSS.escape(href)}"]`;
  const label = e.getAttribute("aria-label");
  return label ? `[aria-label="${CSS.escape(label)}"]` : null;
}

function swap(name, html) {
  const at = bounds(name);
  if (!at) return;
  const range = document.createRange();
  range.setStartAfter(at[0]);
  range.setEndBefore(at[1]);
  const focus = range.intersectsNode(document.activeElement) ? address(document.activeElement) : null;
  const scrolled = new Map();
  for (const e of document.querySelectorAll(".wide")) if (e.scrollLeft) scrolled.set(e.getAttribute("aria-label"), e.scrollLeft);
  range.deleteContents();
  const whole = document.createElement("template");
  whole.innerHTML = html;
  at[0].after(whole.content);
  dress();
  tell();
  for (const e of document.querySelectorAll(".wide")) e.scrollLeft = scrolled.get(e.getAttribute("aria-label")) ?? e.scrollLeft;
  if (focus) document.querySelector(focus)?.focus({ preventScroll: true });
}

dress();
tell();

let source = null;
let since = null;

function say(state, text) {
  if (status.dataset.state === state && state !== "live") return;
  status.dataset.state = state;
  status.textContent = text;
}

function lost() {
  since ||= new Date().toLocaleTimeString("en-GB");
  say("stale", "not answering since " + since);
}

let last = 0;
let had = document.body.dataset.parts; // the digest of the parts that the page shows

function listen() {
  if (source || document.hidden) return;
  source = new EventSource("/dash/stream?at=" + encodeURIComponent(document.body.dataset.here) + "&had=" + had);
  source.addEventListener("part", (e) => {
    const part = JSON.parse(e.data);
    swap(part.part, part.html);
  });
  source.addEventListener("alive", (e) => {
    had = e.lastEventId || had;
    since = null;
    last = Date.now();
    if (status.dataset.state !== "live") say("live", "live");
  });
  source.addEventListener("error", lost);
}

// A page that nobody sees asks for nothing.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) return listen();
  source?.close();
  source = null;
});
// A stream that is silent is as good as cut.
setInterval(() => {
  if (source && last && Date.now() - last > 10000) lost();
  if (source?.readyState === EventSource.CLOSED) {
    source = null;
    lost();
    listen();
  }
}, 2000);
listen();

// "/" goes to the search.
document.addEventListener("keydown", (e) => {
  const typing = e.target.closest?.("input, textarea, select");
  if (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) {
    e.preventDefault();
    document.getElementById("search").focus();
  }
});

// Empty fields of a filter do not stand in the address.
for (const form of document.querySelectorAll("form.filter, form.search")) {
  form.addEventListener("formdata", (e) => {
    for (const [name, value] of [...e.formData]) if (value === "") e.formData.delete(name);
  });
}

// Changes are calls of the API in the name of who looks, as JSON: another site's
// page cannot send that. Each is confirmed.
// The listener is the document's, since live parts replace their forms.
document.documentElement.classList.add("changes");
document.addEventListener("submit", (e) => {
  const form = e.target.closest("form.change");
  if (!form) return;
  e.preventDefault();
  confirm(form);
});

function confirm(form) {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", "Confirm");
  const text = document.createElement("p");
  text.textContent = form.dataset.confirm;
  const yes = document.createElement("button");
  yes.textContent = form.querySelector("button").textContent;
  yes.className = "danger";
  const no = document.createElement("button");
  no.textContent = "Cancel";
  dialog.append(text, yes, no);
  document.body.append(dialog);
  no.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  yes.addEventListener("click", async () => {
    yes.disabled = true;
    const answer = await send(form);
    if (answer === "") return location.reload();
    text.textContent = answer;
    text.className = "warning";
  });
  dialog.showModal();
  no.focus();
}

// send makes the change; what went wrong in words, "" for nothing.
async function send(form) {
  const body = {};
  for (const [name, value] of new FormData(form)) body[name] = name === "priority" ? Number(value) : value;
  for (const [name, value] of Object.entries(form.dataset)) {
    if (name.startsWith("json")) body[name.slice(4).toLowerCase()] = JSON.parse(value);
    if (!name.startsWith("fixed")) continue;
    body[name.slice(5).toLowerCase()] = value === "true" ? true : value === "false" ? false : value;
  }
  try {
    const answer = await fetch(form.dataset.path, {
      method: form.dataset.method,
      headers: { "Content-Type": "application/json", Accept: "application/json", "X-Requested-By": "creel" },
      body: form.dataset.method === "DELETE" ? undefined : JSON.stringify(body),
    });
    if (answer.ok) return "";
    const doc = await answer.json().catch(() => ({}));
    return doc.detail || doc.RemoteException?.message || "refused with " + answer.status;
  } catch (e) {
    return "not sent: " + e.message;
  }
}
