// Charts over the tables of the figures page: the table is what is drawn, and stays.
(() => {
  "use strict";
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const inks = ["--accent", "--bad-fg", "--wait-fg", "--special-fg"];

  const read = (table) => {
    const head = [...table.tHead.rows[0].cells].map((c) => c.textContent.trim());
    const rows = [...table.tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent.trim()));
    const days = rows.map((r) => Date.parse(r[0] + "T00:00:00Z") / 1000);
    const series = head.slice(1).map((_, i) => rows.map((r) => (r[i + 1] === "" ? null : Number(r[i + 1]))));
    return { names: head.slice(1), data: [days, ...series] };
  };

  const draw = (box) => {
    const table = box.querySelector("[data-chart-table] table"); // the legend of the chart is a table, too
    const area = box.querySelector(".chart-area");
    box.dataset.drawn = box.dataset.drawn || "not"; // then the table shows itself
    if (!table || !area || !window.uPlot) return;
    const { names, data } = read(table);
    if (data[0].length === 0) return;
    area.hidden = false;
    area.replaceChildren();
    const unit = box.dataset.unit || "";
    const axis = { stroke: color("--muted"), grid: { stroke: color("--border"), width: 1 }, ticks: { stroke: color("--border"), width: 1 } };
    const show = (v) => (v === null || v === undefined ? "–" : unit === "$" ? "$" + v : v.toLocaleString() + (unit ? " " + unit : ""));
    const chart = new window.uPlot({
      width: Math.max(240, area.clientWidth - 16), height: 200,
      tzDate: (ts) => window.uPlot.tzDate(new Date(ts * 1000), "UTC"),
      scales: { y: { range: (_, min, max) => [0, max > 0 ? max * 1.1 : 1] } },
      axes: [{ ...axis, incrs: [1, 2, 5, 7, 14, 30, 90, 365].map((d) => d * 86400), values: (_, ticks) => ticks.map((v) => new Date(v * 1000).toISOString().slice(5, 10)) }, { ...axis, size: 64, values: (_, ticks) => ticks.map((v) => v.toLocaleString("en", { notation: "compact" })) }],
      series: [{ value: (_, v) => (v ? new Date(v * 1000).toISOString().slice(0, 10) : "") },
        ...names.map((label, i) => ({ label, stroke: color(inks[i]), width: 2, dash: i ? [6, 2 * i] : [], points: { show: true, size: 5 }, value: (_, v) => show(v) }))],
    }, data, area);
    // Half a day beside the first and the last: one day alone would be a point in years.
    chart.setScale("x", { min: data[0][0] - 43200, max: data[0].at(-1) + 43200 });
    const fold = box.querySelector("[data-chart-table]");
    if (fold && box.dataset.drawn === "not") fold.open = false;
    box.dataset.drawn = "1";
  };

  const all = () => document.querySelectorAll("[data-chart]").forEach(draw);
  let later = 0;
  const soon = () => { clearTimeout(later); later = setTimeout(all, 150); };
  window.addEventListener("resize", soon);
  new MutationObserver(soon).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  all();

  // Figures stand still while they are read; that there are newer ones is said.
  const newer = document.querySelector(".as-of-newer");
  if (newer) document.addEventListener("gh-event", () => { newer.hidden = false; }, { once: true });
})();
