// SPDX-License-Identifier: Apache-2.0

// The charts of a history: /api/v1/history of one subject, drawn by uPlot. The script beside this one sets
// window.uPlot. A chart has a measure's values under the cursor, which all charts of the page share. Arrow keys move
// it. Times are UTC, as everywhere on these pages.

const uPlot = window.uPlot;

// Each chart has a title, a unit, a factor from the API's unit, and its lines. "step" divides a count by the step.
const kinds = [
  { id: "use", title: "Use against entitlement", unit: "%", by: 100, lines: [
    { of: "use", label: "use", colour: "--fill", area: true },
    { of: "entitlement", label: "entitlement", colour: "--ink", dash: [6, 4] }] },
  { id: "waiting", title: "Applications that wait", unit: "", by: 1, lines: [
    { of: "waiting", label: "waiting", colour: "--warn", area: true }] },
  { id: "grants", title: "Containers granted a second", unit: "/s", by: "step", lines: [
    { of: "grants", label: "granted", colour: "--fill" }] },
  { id: "grant-times", title: "Ask to grant", unit: "ms", by: 1000, lines: [
    { of: "ask_to_grant_p50_s", label: "p50", colour: "--fill" },
    { of: "ask_to_grant_p99_s", label: "p99", colour: "--warn" }] },
  { id: "submissions", title: "Submissions a second, through this router", unit: "/s", by: "step", lines: [
    { of: "submissions", label: "submitted", colour: "--fill" }] },
];

// Colours are the page's, in the scheme in force. A canvas does not know variables: an element resolves them.
const probe = document.createElement("span");
probe.hidden = true;
document.body.append(probe);
function colour(name, alpha) {
  probe.style.color = `var(${name})`;
  const rgb = getComputedStyle(probe).color;
  return alpha === undefined ? rgb : rgb.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);
}

function text(value, unit) {
  if (value === null || value === undefined) return "–";
  const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 1 ? 1 : 3;
  return value.toLocaleString("en-GB", { maximumFractionDigits: digits }) + (unit && " " + unit);
}

const two = (n) => String(n).padStart(2, "0");
const clock = (at, seconds) => {
  const d = new Date(at * 1000);
  return `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}` + (seconds ? ":" + two(d.getUTCSeconds()) : "");
};

const height = 140;

// Options of uPlot for a chart of a width.
function options(kind, width) {
  const axis = { stroke: () => colour("--soft"), grid: { stroke: () => colour("--line"), width: 1 }, ticks: { stroke: () => colour("--line"), width: 1 } };
  return {
    width, height, tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
    cursor: { sync: { key: "history" }, drag: { x: false, y: false } },
    scales: { y: { range: (u, low, high) => [0, high > 0 ? high * 1.05 : 1] } },
    axes: [
      { ...axis, space: 60, values: (u, at) => at.map((t) => clock(t, false)) },
      { ...axis, size: (u, texts) => Math.max(58, ...(texts ?? []).map((t) => 7 * t.length + 18)), values: (u, at) => at.map((v) => text(v, kind.unit)) },
    ],
    series: [
      { label: "time", value: (u, at) => (at === null ? "–" : clock(at, true) + " UTC") },
      ...kind.lines.map((line) => ({
        label: line.label, width: 1.5, dash: line.dash, stroke: () => colour(line.colour),
        fill: line.area ? () => colour(line.colour, 0.25) : undefined,
        points: { show: false }, value: (u, v) => text(v, kind.unit),
      })),
    ],
  };
}

// A chart in a section; it is made for the first answer with its measure.
class Chart {
  constructor(kind, into) {
    this.kind = kind;
    this.figure = document.createElement("div");
    this.figure.className = "plot";
    this.figure.dataset.chart = kind.id;
    this.figure.tabIndex = 0;
    this.figure.setAttribute("role", "group");
    this.caption = document.createElement("p");
    this.figure.append(this.caption);
    into.append(this.figure);
    this.figure.addEventListener("keydown", (e) => this.key(e));
  }

  show(doc) {
    const start = Date.parse(doc.from) / 1000;
    const factor = this.kind.by === "step" ? 1 / doc.step_s : this.kind.by;
    const columns = this.kind.lines.map((line) => doc[line.of] ?? Array(doc.steps).fill(null));
    this.figure.hidden = this.kind.lines.every((line) => !doc[line.of]);
    if (this.figure.hidden) return;
    this.data = [
      Array.from({ length: doc.steps }, (_, i) => start + (i + 1) * doc.step_s),
      ...columns.map((column) => column.map((v) => (v === null ? null : v * factor))),
    ];
    this.describe(doc);
    if (!this.plot) {
      this.plot = new uPlot(options(this.kind, this.figure.clientWidth), this.data, this.figure);
      new ResizeObserver(() => {
        const width = this.figure.clientWidth; // 0 while it is hidden
        if (width) this.plot.setSize({ width, height });
      }).observe(this.figure);
      return;
    }
    this.plot.setData(this.data); // the cursor stays where it is
  }

  // The newest and the greatest values in words, since a canvas has none.
  describe(doc) {
    const { title, unit, lines } = this.kind;
    const now = lines.map((line, i) => `${line.label} ${text(this.data[i + 1].at(-1), unit)}`);
    const greatest = (values) => values.reduce((most, v) => (most === null || v > most ? v : most), null);
    const most = lines.map((line, i) => `${line.label} ${text(greatest(this.data[i + 1]), unit)}`);
    const range = doc.step_s * doc.steps > 3600 ? "day" : "hour";
    const newest = document.createElement("b");
    newest.textContent = lines.length > 2 ? "" : text(this.data[1].at(-1), unit);
    this.caption.replaceChildren(title + " ", newest);
    this.figure.setAttribute("aria-label", `${title}, the last ${range}: now ${now.join(", ")}; at most ${most.join(", ")}. Arrow keys move the cursor.`);
  }

  key(e) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (!by || !this.plot) return;
    e.preventDefault();
    const last = this.data[0].length - 1;
    const at = Math.min(Math.max((this.plot.cursor.idx ?? last + 1) + by, 0), last);
    this.plot.setCursor({ left: this.plot.valToPos(this.data[0][at], "x"), top: 10 }, true, true);
  }
}

// The entitlements of some queues in one chart. A queue name has no blank.
const palette = ["--fill", "--warn", "--good", "--bad", "--ink", "--soft"];
const entitlements = (queues) => ({
  id: "plan", title: "Entitlement", unit: "%", by: 100,
  lines: queues.map((queue, i) => ({ of: queue, label: queue, colour: palette[i], dash: i % 2 ? [6, 3] : undefined })),
});

// ask returns the history of a subject, null without an answer.
async function ask(subject, range) {
  const answer = await fetch("/api/v1/history?" + new URLSearchParams({ subject, range_s: range })).catch(() => null);
  return answer?.ok ? answer.json() : null;
}

// askQueues returns the entitlements of queues as one document.
async function askQueues(queues, range) {
  const docs = await Promise.all(queues.map((queue) => ask("queue/" + queue, range)));
  const whole = docs.find((doc) => doc?.steps);
  if (!whole) return null;
  const { from, step_s, steps } = whole;
  return queues.reduce(
    (out, queue, i) => (docs[i]?.steps === steps ? { ...out, [queue]: docs[i].entitlement } : out), { from, step_s, steps });
}

// A section follows a history over the chosen range.
function follow(section, shown, read) {
  const into = section.querySelector(".plots");
  const charts = shown.map((kind) => new Chart(kind, into));
  const buttons = [...section.querySelectorAll("[data-range]")];
  let range = 3600;
  let asked = 0;
  let due = 0;

  async function load() {
    const mine = ++asked;
    due = Date.now() + (range > 3600 ? 60000 : 5000);
    const doc = await read(range);
    if (mine !== asked || !doc?.steps) return; // the page's head says whether what is drawn is old
    if (!shown.some((kind) => kind.lines.some((line) => doc[line.of]))) return;
    section.classList.add("drawn");
    for (const chart of charts) chart.show(doc);
  }

  for (const button of buttons) {
    button.addEventListener("click", () => {
      range = Number(button.dataset.range);
      for (const b of buttons) b.setAttribute("aria-pressed", String(b === button));
      load();
    });
  }
  setInterval(() => {
    if (!document.hidden && Date.now() >= due) load();
  }, 1000);
  load();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const chart of charts) chart.plot?.redraw(false);
  });
}

for (const section of document.querySelectorAll("[data-history]")) {
  follow(section, kinds, (range) => ask(section.dataset.history, range));
}
for (const section of document.querySelectorAll("[data-queues]")) {
  const queues = section.dataset.queues.split(" ");
  follow(section, [entitlements(queues)], (range) => askQueues(queues, range));
}
