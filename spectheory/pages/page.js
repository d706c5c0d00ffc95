// Charts are drawn, columns sort on a click, details open for print, and the numbers can be saved.
const specs = JSON.parse(document.getElementById("specs").textContent);
const narrow = matchMedia("(max-width: 640px)");
const [fore, soft, line] = ["var(--fore)", "var(--soft)", "var(--line)"]; // dark or light with the page, in print too

function look() {
  const below = { orient: "bottom", columns: 2, labelLimit: 150 };
  return {
    background: null,
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: { labelColor: fore, titleColor: fore, gridColor: line, domainColor: soft, tickColor: soft, labelFontSize: 12, titleFontSize: 13, titleFontWeight: 400 },
    legend: { labelColor: fore, titleColor: fore, labelFontSize: 13, symbolSize: 90, labelLimit: 260, symbolBaseFillColor: soft, symbolBaseStrokeColor: soft, ...(narrow.matches ? below : {}) },
    text: { fill: fore, fontSize: 13 },
  };
}

async function draw() {
  for (const [name, spec] of Object.entries(specs)) {
    const found = await window.vegaEmbed("#chart-" + name, spec, { actions: false, renderer: "svg", config: look() });
    (window.charts ||= {})[name] = found.view;
  }
  ready();
}

function ready() {
  window.drawn = performance.now(); // milliseconds since the page was asked for
  document.body.dataset.ready = "yes";
}

if (Object.keys(specs).length) {
  draw();
  narrow.addEventListener("change", draw);
} else {
  ready();
}

function key(row, column) {
  const given = row.cells[column].dataset.key;
  const number = Number(given);
  return given === "" ? -Infinity : Number.isNaN(number) ? given : number;
}

function compare(x, y) {
  if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1; // numbers before words
  return x < y ? -1 : x > y ? 1 : 0;
}

for (const table of document.querySelectorAll("table")) {
  const heads = [...table.querySelectorAll("th")];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const way = head.ariaSort === "descending" ? 1 : -1;
      heads.forEach((each) => { each.ariaSort = "none"; });
      head.ariaSort = way === 1 ? "ascending" : "descending";
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => way * compare(key(a, column), key(b, column)));
      table.tBodies[0].append(...rows);
    });
  });
}

addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details:not([open])")) { each.open = true; each.dataset.shut = "yes"; }
});
addEventListener("afterprint", () => {
  for (const each of document.querySelectorAll("details[data-shut]")) { each.open = false; delete each.dataset.shut; }
});

document.getElementById("save").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([document.getElementById("answer").textContent], { type: "application/json" }));
  link.download = "answer.json";
  link.click();
});
