"use strict";
(() => {
const body = document.querySelector("tbody"), compare = document.getElementById("compare");
const chosen = name => [...document.querySelectorAll(`input[name=${name}]:checked`)].map(e => e.value);
const count = () => {
  const n = chosen("dir").length;
  compare.disabled = n < 2;
  compare.textContent = n < 2 ? "Compare (choose two or more)" : `Compare ${n}`;
};
document.addEventListener("change", count);
const filter = document.getElementById("filter"), shown = document.getElementById("shown");
/* Every word must be in the row; what is chosen for a comparison stays to be seen. */
const sift = () => {
  const words = filter.value.toLowerCase().split(/\s+/).filter(word => word);
  const rows = [...body.rows];
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every(word => text.includes(word)) && !row.querySelector("input[name=dir]:checked");
  }
  const left = rows.filter(row => !row.hidden).length;
  shown.textContent = words.length ? `${left} of ${rows.length}` : "";
};
filter.addEventListener("input", sift);
/* Enter in the filter compares nothing. */
filter.addEventListener("keydown", event => { if (event.key === "Enter") event.preventDefault(); });
let before = "", wait = 2000;
const look = async () => {
  try {
    const answer = await fetch("/rows", { credentials: "same-origin" });
    const text = answer.ok ? await answer.text() : before;
    document.getElementById("lost").hidden = answer.ok;
    if (text !== before) {
      const dirs = new Set(chosen("dir")), base = chosen("baseline")[0], focus = document.activeElement;
      const held = focus && body.contains(focus) ? [focus.name, focus.value, focus.getAttribute("href")] : null;
      body.innerHTML = text;
      for (const e of body.querySelectorAll("input[name=dir]")) e.checked = dirs.has(e.value);
      for (const e of body.querySelectorAll("input[name=baseline]")) e.checked = e.value === base;
      if (held) {
        const same = e => e.name === held[0] && e.value === held[1] && e.getAttribute("href") === held[2];
        const e = [...body.querySelectorAll("input, a, button")].find(same);
        if (e) e.focus();
      }
      count();
      sift();
    }
    before = text;
    wait = 2000;
  } catch {
    document.getElementById("lost").hidden = false;
    wait = Math.min(wait * 2, 30000);
  }
  setTimeout(look, wait);
};
count();
sift();
look();
})();
