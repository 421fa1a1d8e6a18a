// SPDX-License-Identifier: Apache-2.0

// Sorting and paging of the tables that a page has whole. The head of each column
// becomes a button: one way, the other way, the table's own order. A table of many rows
// shows one page of them. The address keeps the orders, as it keeps the filters.
// Lists that the API sorts and pages have links in their heads instead (data-order).

const length = 50; // rows of a page

// By table: the column and direction, and the first row that is shown.
const orders = new Map();
const firsts = new Map();

// The address has ?sort=TABLE.COLUMN, or TABLE.-COLUMN for the reverse.
for (const text of new URLSearchParams(location.search).getAll("sort")) {
  const [, table, down, column] = text.match(/^([^.]+)\.(-?)(.+)$/) ?? [];
  if (table) orders.set(table, { column, down: down === "-" });
}

function keep() {
  const at = new URL(location.href);
  const others = at.searchParams.getAll("sort").filter((text) => !text.includes("."));
  at.searchParams.delete("sort");
  for (const text of others) at.searchParams.append("sort", text);
  for (const [table, { column, down }] of orders) at.searchParams.append("sort", `${table}.${down ? "-" : ""}${column}`);
  history.replaceState(history.state, "", at);
}

const slug = (text) => text.trim().toLowerCase().replace(/[^a-z0-9]+/g, "-");
const units = { KiB: 1 / 1024, MiB: 1, GiB: 1024, TiB: 1024 * 1024, ms: 0.001, s: 1, min: 60, h: 3600, day: 86400, days: 86400 };
const number = /^(-?[\d,]*\.?\d+)(?: ?(%|KiB|MiB|GiB|TiB|ms|s|min|h|days?))?(?:$|[,;/ ])/;
const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

// The value of a cell: the instant of a time, the used part of a bar, a number with its unit, or text.
function valueOf(cell) {
  const time = cell?.querySelector("time[datetime]");
  if (time) return Date.parse(time.dateTime);
  const text = cell?.textContent.trim() ?? "";
  const shown = text || (cell?.querySelector("svg[aria-label]")?.getAttribute("aria-label") ?? "");
  if (shown === "" || shown === "–") return null;
  const found = shown.match(number);
  return found ? Number(found[1].replaceAll(",", "")) * (units[found[2]] ?? 1) : shown;
}

// Cells without a value come last in both directions.
function compare(a, b, down) {
  if (a === null || b === null) return (a === null) - (b === null);
  const by = typeof a === "number" && typeof b === "number" ? a - b : words.compare(String(a), String(b));
  return down ? -by : by;
}

// The rows of a body in their own order, each with the rows that are a part of it.
function groups(body) {
  const out = [];
  for (const row of body.rows) {
    row.dataset.n ||= String(row.sectionRowIndex);
    if (row.classList.contains("part") && out.length) out.at(-1).push(row);
    else out.push([row]);
  }
  return out.sort((a, b) => a[0].dataset.n - b[0].dataset.n);
}

function arrange(table) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const order = orders.get(table.id);
  const index = heads.findIndex((head) => order && head.dataset.column === order.column);
  let list = groups(body);
  if (index >= 0 && list.length > 1) {
    const keyed = list.map((rows) => ({ rows, value: valueOf(rows[0].cells[index]) }));
    keyed.sort((a, b) => compare(a.value, b.value, order.down));
    list = keyed.map(({ rows }) => rows);
  }
  for (const [i, head] of heads.entries()) {
    if (head.dataset.column) head.setAttribute("aria-sort", i !== index ? "none" : order.down ? "descending" : "ascending");
  }
  const rows = list.flat();
  if (rows.some((row, i) => row !== body.rows[i])) body.append(...rows);
  page(table, list);
}

// Shows one page of the rows, with buttons for the others. A row with parts is shown with them.
function page(table, list) {
  const id = "pager-" + table.id;
  let pager = document.getElementById(id);
  if (list.length <= length) {
    pager?.remove();
    for (const rows of list) for (const row of rows) row.hidden = false;
    return;
  }
  let first = firsts.get(table.id);
  if (first === undefined) first = Math.max(0, list.findIndex((rows) => rows.length > 1)); // what is open is shown
  first = Math.max(0, Math.min(first - (first % length), Math.floor((list.length - 1) / length) * length));
  for (const [i, rows] of list.entries()) for (const row of rows) row.hidden = i < first || i >= first + length;
  if (!pager) {
    pager = document.createElement("p");
    pager.id = id;
    pager.className = "pager";
    const button = (name, by) => {
      const b = document.createElement("button");
      b.type = "button";
      b.id = `${id}-${slug(name)}`;
      b.textContent = name;
      b.setAttribute("aria-controls", table.id);
      b.addEventListener("click", () => {
        firsts.set(table.id, Number(pager.dataset.first) + by);
        dress();
      });
      return b;
    };
    const text = document.createElement("span");
    text.setAttribute("role", "status");
    pager.append(button("Previous", -length), text, button("Next", length));
    (table.closest(".wide") ?? table).after(pager);
  }
  pager.dataset.first = first;
  const [before, text, after] = pager.children;
  const said = `${first + 1} to ${Math.min(first + length, list.length)} of ${list.length}`;
  if (text.textContent !== said) text.textContent = said;
  // A disabled button would lose the focus.
  before.setAttribute("aria-disabled", String(first === 0));
  after.setAttribute("aria-disabled", String(first + length >= list.length));
}

// One way, the other way, the table's own order. Numbers and times begin with the greatest.
function turn(table, head, index) {
  const now = orders.get(table.id);
  const column = head.dataset.column;
  const values = groups(table.tBodies[0]).map((rows) => valueOf(rows[0].cells[index])).filter((v) => v !== null);
  const first = values.length > 0 && values.every((v) => typeof v === "number");
  if (now?.column !== column) orders.set(table.id, { column, down: first, turned: false });
  else if (!now.turned) orders.set(table.id, { column, down: !now.down, turned: true });
  else orders.delete(table.id);
  firsts.set(table.id, 0);
  arrange(table);
  keep();
}

// dress makes the heads of new tables buttons, and arranges all. A live part brings a new table each time.
export function dress() {
  for (const table of document.querySelectorAll("table[id]:not([data-order])")) {
    if (!table.tHead || !table.tBodies[0]) continue;
    for (const [index, head] of [...table.tHead.rows[0].cells].entries()) {
      if (head.dataset.column || head.dataset.fixed !== undefined) continue;
      head.dataset.column = slug(head.textContent);
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.id = `sort-${table.id}-${head.dataset.column}`;
      button.append(...head.childNodes);
      button.addEventListener("click", () => turn(table, head, index));
      head.append(button);
    }
    arrange(table);
  }
}
