"use strict";
/* Tables that sort by a click on a column's head: numbers as numbers, empty cells last. */
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const key = (row, i) => {
    const cell = row.cells[i];
    const text = cell.dataset.v ?? cell.textContent.replaceAll(",", "");
    const number = Number(text);
    return text === "" ? null : Number.isNaN(number) ? text : number;
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach(h => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map(row => [key(row, i), row]);
      rows.sort(([a], [b]) =>
        a === null || b === null ? (a === null) - (b === null) : (down ? -1 : 1) * compare(a, b));
      body.append(...rows.map(([, row]) => row));
    });
  });
}

/* Values of a picture under the pointer, from the data it was drawn with. */
function show(number) {
  if (number === null || number === undefined) return "n/a";
  return Math.abs(number) >= 1e5 ? Math.round(number).toLocaleString("en") : String(Number(number.toPrecision(4)));
}
function along([min, max, log], at) {
  return log ? min * Math.pow(max / min, at) : min + (max - min) * at;
}
function place([min, max, log], value) {
  return log ? Math.log(value / min) / Math.log(max / min) : (value - min) / (max - min);
}
function nearest(rows, column, axis, value) {
  let best = null, least = Infinity;
  for (const row of rows) {
    if (row[column] === null) continue;
    const distance = Math.abs(place(axis, row[column]) - place(axis, value));
    if (distance < least) { least = distance; best = row; }
  }
  return best;
}
function line(series, row) {
  const names = series.columns, div = document.createElement("div"), name = document.createElement("b");
  name.textContent = series.label;
  let text = "";
  if (names.length === 4 && names[2].endsWith("_min") && names[3].endsWith("_max"))
    text = show(row[1]) + (row[2] === row[3] ? "" : ` (${show(row[2])} to ${show(row[3])})`);
  else
    text = names.slice(1).map((n, i) => `${n.replaceAll("_", " ")} ${show(row[i + 1])}`).join(", ");
  div.append(name, ": " + text);
  return div;
}
for (const figure of document.querySelectorAll("figure")) {
  const source = figure.querySelector("script[type='application/json']");
  const plot = figure.querySelector(".plot");
  if (!source || !plot) continue;
  const panels = JSON.parse(source.textContent);
  if (panels.length === 0) continue;
  const rule = document.createElement("div"), tip = document.createElement("div");
  rule.className = "rule";
  tip.className = "tip";
  rule.hidden = tip.hidden = true;
  plot.append(rule, tip);
  plot.tabIndex = 0;
  const hide = () => { rule.hidden = tip.hidden = true; };
  const read = (panel, fx, fy) => {
    const [x0, x1, y0, y1] = panel.place, x = along(panel.x, (fx - x0) / (x1 - x0));
    const y = along(panel.y, (y1 - fy) / (y1 - y0));
    const lines = [];
    let shown = null, unit = "";
    for (const series of panel.series) {
      let row = nearest(series.rows, 0, panel.x, x);
      if (row === null) continue;
      if (series.map) {
        const column = series.rows.filter(r => r[0] === row[0]);
        row = nearest(column, 1, panel.y, y);
        if (row === null) continue;
      } else if (Math.abs(place(panel.x, row[0]) - place(panel.x, x)) > 0.1) continue;
      if (shown === null || Math.abs(row[0] - x) < Math.abs(shown - x)) shown = row[0];
      unit = series.columns[0].replaceAll("_", " ");
      lines.push(line(series, row));
    }
    if (shown === null) return hide();
    const head = document.createElement("div");
    head.textContent = `${unit} ${show(shown)}`;
    tip.replaceChildren(head, ...lines);
    rule.hidden = tip.hidden = false;
    const at = x0 + place(panel.x, shown) * (x1 - x0);
    rule.style.cssText = `left:${at * 100}%;top:${y0 * 100}%;height:${(y1 - y0) * 100}%`;
    tip.style.cssText = at < 0.5 ? `left:calc(${at * 100}% + 8px);top:${y0 * 100}%`
                                 : `right:calc(${(1 - at) * 100}% + 8px);top:${y0 * 100}%`;
  };
  const at = event => {
    const box = plot.getBoundingClientRect();
    const fx = (event.clientX - box.left) / box.width, fy = (event.clientY - box.top) / box.height;
    const panel = panels.find(p => fx >= p.place[0] && fx <= p.place[1] && fy >= p.place[2] - 0.02 && fy <= p.place[3] + 0.02);
    if (panel) read(panel, fx, fy); else hide();
  };
  plot.addEventListener("pointermove", at);
  plot.addEventListener("pointerdown", at);
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  let step = 0.5, which = 0;
  plot.addEventListener("keydown", event => {
    const moves = { ArrowLeft: -0.01, ArrowRight: 0.01 }, turns = { ArrowUp: -1, ArrowDown: 1 };
    if (event.key === "Escape") return hide();
    if (!(event.key in moves) && !(event.key in turns)) return;
    event.preventDefault();
    step = Math.min(1, Math.max(0, step + (moves[event.key] ?? 0)));
    which = (which + (turns[event.key] ?? 0) + panels.length) % panels.length;
    const [x0, x1, y0, y1] = panels[which].place;
    read(panels[which], x0 + step * (x1 - x0), (y0 + y1) / 2);
  });
}
