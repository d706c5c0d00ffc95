// Charts are drawn and saved, commands are copied, columns sort on a click, details open for print.
const specs = JSON.parse(document.getElementById("specs").textContent);
const narrow = matchMedia("(max-width: 640px)");
const [fore, soft, line] = ["var(--fore)", "var(--soft)", "var(--line)"]; // dark or light with the page, in print too

function look() {
  const columns = narrow.matches ? { columns: 2, labelLimit: 150 } : { direction: "horizontal", labelLimit: 260 };
  return {
    background: null,
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: { labelColor: fore, titleColor: fore, gridColor: line, domainColor: soft, tickColor: soft, labelFontSize: 12, titleFontSize: narrow.matches ? 11 : 13, titleFontWeight: 400 },
    legend: { labelColor: fore, titleColor: fore, labelFontSize: 13, symbolSize: 90, symbolBaseFillColor: soft, symbolBaseStrokeColor: soft, orient: "bottom", ...columns },
    text: { fill: fore, fontSize: 13 },
  };
}

async function drawOne(name) {
  const options = { actions: false, renderer: "svg", config: look() };
  (window.charts ||= {})[name] = (await window.vegaEmbed("#chart-" + name, specs[name], options)).view;
}

async function draw() {
  for (const name of Object.keys(specs)) { await drawOne(name); }
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

function save(content, type, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
}

document.getElementById("save").addEventListener("click", () => {
  save(document.getElementById("answer").textContent, "application/json", "answer.json");
});

function lightColours() { // those outside of media queries: saved pictures are for white paper
  const rules = [...document.styleSheets[0].cssRules].filter((rule) => rule.selectorText === ":root");
  return (name) => rules.map((rule) => rule.style.getPropertyValue(name)).find(Boolean);
}

async function drawing(name) { // an SVG file that needs no page around it
  if (!specs[name]) {
    const image = await fetch(document.querySelector(`#${name} img`).src);
    return image.text();
  }
  const light = lightColours();
  const svg = (await window.charts[name].toSVG()).replace(/var\((--\w+)\)/g, (_, each) => light(each));
  return svg.replace(/(<svg[^>]*>)/, '$1<rect width="100%" height="100%" fill="#fff"/>');
}

async function picture(svg) { // the same as PNG, twice as large
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * image.naturalWidth, 2 * image.naturalHeight];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => { canvas.toBlob(done, "image/png"); });
}

for (const tools of document.querySelectorAll(".tools")) {
  const name = tools.dataset.of;
  tools.querySelector("[data-reset]")?.addEventListener("click", () => drawOne(name));
  for (const button of tools.querySelectorAll("[data-save]")) {
    button.addEventListener("click", async () => {
      const file = `${name}.${button.dataset.save}`;
      if (file.endsWith(".csv")) { return save(JSON.parse(document.getElementById("csv").textContent)[name], "text/csv", file); }
      const svg = await drawing(name);
      return file.endsWith(".svg") ? save(svg, "image/svg+xml", file) : save(await picture(svg), "image/png", file);
    });
  }
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("code");
    getSelection().selectAllChildren(code);
    await navigator.clipboard?.writeText(code.textContent).then(() => { button.textContent = "Copied"; }, () => {});
  });
}
