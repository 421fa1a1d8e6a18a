// SPDX-License-Identifier: Apache-2.0

// The page asks every second and draws what it hears. Text reaches the page
// only as text content, never as markup.

const $ = (id) => document.getElementById(id);
const history = [];
const keep = 120; // seconds drawn

function row(cells, state) {
  const tr = document.createElement("tr");
  if (state) tr.className = state;
  cells.forEach((cell, i) => {
    const td = document.createElement("td");
    if (state && i === cells.dot) {
      const dot = document.createElement("span");
      dot.className = "dot";
      td.append(dot);
    }
    td.append(String(cell));
    tr.append(td);
  });
  return tr;
}

function memory(mb) {
  if (mb >= 1 << 20) return (mb / (1 << 20)).toFixed(1) + " TiB";
  if (mb >= 1 << 10) return (mb / (1 << 10)).toFixed(1) + " GiB";
  return mb + " MiB";
}

async function get(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(5000) });
  if (!answer.ok) throw new Error(path + " answered " + answer.status);
  return answer;
}

function drawSubclusters(doc) {
  const sum = { containers: 0, rate: 0, running: 0, pending: 0, nodes: 0, used: 0, total: 0 };
  const body = document.createDocumentFragment();
  for (const s of doc.subclusters) {
    const m = s.metrics;
    sum.containers += m.containersAllocated;
    sum.rate += m.containerAssignedPerSecond;
    sum.running += m.appsRunning;
    sum.pending += m.appsPending;
    sum.nodes += m.activeNodes;
    sum.used += m.allocatedMB;
    sum.total += m.totalMB;
    const cells = [s.id, s.state, m.activeNodes, m.appsRunning, m.appsPending, m.containersAllocated, memory(m.allocatedMB) + " of " + memory(m.totalMB), s.reason];
    cells.dot = 1;
    body.append(row(cells, s.state));
  }
  $("subclusters").tBodies[0].replaceChildren(body);
  for (const name of ["containers", "rate", "running", "pending", "nodes"]) $(name).textContent = sum[name].toLocaleString("en");
  $("used").textContent = sum.total ? Math.round((100 * sum.used) / sum.total) + "%" : "–";
  $("frozen").hidden = !doc.frozen;
  $("frozen").textContent = doc.frozen ? "The view is frozen: " + doc.frozen : "";
  history.push(sum.rate);
  if (history.length > keep) history.shift();
  const top = Math.max(10, ...history);
  $("line").setAttribute("points", history.map((v, i) => `${(600 * (keep - history.length + i)) / (keep - 1)},${118 - (114 * v) / top}`).join(" "));
}

function drawApps(doc, missing) {
  const apps = (doc.apps && doc.apps.app) || [];
  const body = document.createDocumentFragment();
  for (const a of apps.slice(0, 50)) {
    const cells = [a.id, a.name, a.user, a.queue, a.state, a.finalStatus, Math.max(0, a.runningContainers ?? 0)];
    cells.dot = 4;
    body.append(row(cells, a.state));
  }
  $("apps").tBodies[0].replaceChildren(body);
  $("partial").hidden = !missing;
  $("partial").textContent = missing ? "Not all subclusters answered: " + missing : "";
}

async function refresh() {
  try {
    drawSubclusters(await (await get("/api/v1/subclusters")).json());
    const apps = await get("/ws/v1/cluster/apps?limit=50&deSelects=resourceRequests");
    drawApps(await apps.json(), apps.headers.get("X-Missing-SubClusters"));
    $("status").textContent = "live, " + new Date().toLocaleTimeString("en-GB");
    $("status").dataset.state = "live";
  } catch (e) {
    $("status").textContent = "not answering since " + ($("status").dataset.since ||= new Date().toLocaleTimeString("en-GB")) + ": " + e.message;
    $("status").dataset.state = "stale";
    return;
  }
  delete $("status").dataset.since;
}

for (;;) {
  await refresh();
  await new Promise((done) => setTimeout(done, 1000));
}
