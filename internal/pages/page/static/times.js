// SPDX-License-Identifier: Apache-2.0

// Times as their distance from now. The router writes each as <time> with its instant,
// which stays in the title. The distance is by the router's clock: the page has its time.

const ahead = Date.parse(document.body.dataset.now) - Date.now();

// The same words as Age in format.go, in whole seconds.
function length(seconds) {
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} days`;
}

function distance(at) {
  const seconds = (Date.now() + ahead - at) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  return seconds < 0 ? "in " + length(-seconds) : length(seconds) + " ago";
}

// tell renews the words of all times.
export function tell() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const text = distance(Date.parse(time.dateTime));
    if (time.textContent !== text) time.textContent = text;
  }
}

setInterval(() => {
  if (!document.hidden) tell();
}, 1000);
