"use strict";
(() => {
const main = document.getElementById("main"), url = main.dataset.follow;
const put = (id, text) => { const e = document.getElementById(id); if (e.textContent !== text) e.textContent = text; };
const MOST = 3600;
let followed = false;
let run = "", next = 0, metric = "", phase = "", t = [], lines = [[], [], [], []];
const rate = v => v >= 100 ? Math.round(v).toLocaleString("en") + "/s" : v.toPrecision(3) + "/s";
const time = us => us === null || us === undefined ? "-"
  : us < 1000 ? us.toFixed(us < 100 ? 1 : 0) + " µs" : us < 1e6 ? (us / 1e3).toFixed(2) + " ms" : (us / 1e6).toFixed(2) + " s";
const length = s => {
  const h = Math.floor(s / 3600), m = Math.floor(s % 3600 / 60), two = n => String(n).padStart(2, "0");
  return s < 120 ? Math.ceil(s) + " s" : h ? `${h}:${two(m)}:${two(Math.floor(s % 60))}` : `${m}:${two(Math.floor(s % 60))} min`;
};
const series = (n, v) => ({ n, t: t, v, x: Float64Array.from(t) });
const show = told => {
  if (told.run !== run) { t = []; lines = [[], [], [], []]; }
  ({ run, next, metric } = told);
  let before = t.length ? t[t.length - 1] : null;
  for (const [at, step, ...values] of told.rows) {
    /* Intervals that were not recorded are a gap: one is missing where the step is that of two. */
    if (before !== null && at - before > 1.5 * step) { t.push((before + at) / 2); lines.forEach(line => line.push(null)); }
    t.push(at);
    values.forEach((v, i) => lines[i].push(v));
    before = at;
  }
  if (t.length > MOST) { t = t.slice(-MOST); lines = lines.map(line => line.slice(-MOST)); }
  const last = t.length - 1, failed = lines[1].some(v => v > 0);
  put("state", told.state + (told.silent_s ? `, nothing written for ${length(told.silent_s)}` : ""));
  put("phase", told.phase || "-");
  put("left", told.over ? "-" : told.left_s === null ? "not known" : length(told.left_s));
  const errors = told.errors.map(([name, count]) => `${count.toLocaleString("en")} ${name}`).join(", ");
  document.getElementById("errors").hidden = !errors;
  put("failing", errors);
  put("throughput", last < 0 ? "-" : rate(lines[0][last] || 0));
  put("p50", last < 0 ? "-" : time(lines[2][last]));
  put("p99", last < 0 ? "-" : time(lines[3][last]));
  /* The shares are those of the last interval: what the server took, and what the client added; another's are not shown. */
  const span = told.server_span, same = span && t[last] >= span[0] && t[last] <= span[1];
  [["metric", lines[2], 0], ["metric99", lines[3], 1]].forEach(([id, line, at]) => {
    const server = same && told.server_us[at], all = line[last];
    const shares = server && all ? `; server ${time(server)}, client ${time(Math.max(0, all - server))}` : "";
    if (metric) put(id, metric + shares);
  });
  /* The load has other operations than what follows it. */
  if (told.phase && told.phase !== phase && phase !== "warmup") metric = "";
  if (told.phase) phase = told.phase;
  /* Of an experiment: the run that is followed. */
  put("which", main.dataset.name === run ? "" : run);
  if (told.runs) put("runs", `${told.runs[0]} of ${told.runs[1]}`);
  if (t.length) {
    const span = [Math.min(t[0], told.phases.length && t.length < MOST ? 0 : t[0]), Math.max(t[last] + 0.5, t[0] + 1)];
    const bands = told.phases.map(([from, to, name]) => [from, to === null ? span[1] : to, name]);
    const rates = [series("succeeded", lines[0])];
    if (failed) rates.push(series("failed", lines[1]));
    const times = [series("p50", lines[2]), series("p99", lines[3])];
    document.dispatchEvent(new CustomEvent("dyno:more", { detail: { span, bands, charts: [rates, times] } }));
  }
};
let wait = 1000;
const look = async () => {
  try {
    const query = new URLSearchParams({ from: next, run, metric });
    const answer = await fetch(url + "?" + query, { credentials: "same-origin" });
    if (!answer.ok) throw new Error(await answer.text());
    const told = await answer.json();
    show(told);
    document.getElementById("lost").hidden = true;
    document.getElementById("over").hidden = !told.over;
    /* Who has followed it to its end reads what came of it. */
    if (told.over && followed) { location.replace(document.querySelector("#over a").href); return; }
    followed = followed || !told.over;
    wait = told.over ? 5000 : 1000;
  } catch (error) {
    document.getElementById("lost").hidden = false;
    put("why", error.message);
    /* Figures of a run that is not seen any more would pass for its present ones. */
    ["throughput", "p50", "p99", "left"].forEach(id => put(id, "-"));
    wait = Math.min(wait * 2, 30000);
  }
  setTimeout(look, wait);
};
look();
})();
