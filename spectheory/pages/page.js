// Charts are drawn, columns sort on a click, and the numbers can be saved.
const specs = JSON.parse(document.getElementById("specs").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");

async function draw() {
  for (const [name, spec] of Object.entries(specs)) {
    const config = { background: "transparent", ...(spec.config || {}) };
    const found = await window.vegaEmbed("#chart-" + name, { ...spec, config }, { actions: false, renderer: "svg", theme: dark.matches ? "dark" : undefined });
    (window.charts ||= {})[name] = found.view;
  }
  document.body.dataset.ready = "yes";
}

if (Object.keys(specs).length) {
  draw();
  dark.addEventListener("change", draw);
} else {
  document.body.dataset.ready = "yes";
}

function key(row, column) {
  const given = row.cells[column].dataset.key;
  const number = Number(given);
  return given === "" ? -Infinity : Number.isNaN(number) ? given : number;
}

for (const table of document.querySelectorAll("table")) {
  table.querySelectorAll("th button").forEach((button, column) => {
    button.addEventListener("click", () => {
      const down = button.dataset.down !== "yes";
      button.dataset.down = down ? "yes" : "no";
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => {
        const [x, y] = [key(a, column), key(b, column)];
        return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
      });
      table.tBodies[0].append(...rows);
    });
  });
}

document.getElementById("save").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([document.getElementById("answer").textContent], { type: "application/json" }));
  link.download = "answer.json";
  link.click();
});
