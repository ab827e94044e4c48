// The part that touches the page.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const host = document.getElementById("chart");
  const reading = document.getElementById("reading");
  if (data.times.length === 0) { host.textContent = "No memory was recorded for this device."; return; }
  const SIZE = { width: 1080, height: 380, left: 84, right: 12, top: 24, bottom: 28 };
  const inner = SIZE.width - SIZE.left - SIZE.right;
  const last = Math.max(data.end, data.times[data.times.length - 1] + 1);
  const whole = [data.times[0], last];
  const state = { shown: data.categories.map(() => true), range: whole, chosen: null, cursor: null };

  function make(name, attributes, parent, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    if (parent) parent.appendChild(element);
    return element;
  }

  const toX = (time) => SIZE.left + (time - state.range[0]) / (state.range[1] - state.range[0]) * inner;
  const toTime = (x) => state.range[0] + (x - SIZE.left) / inner * (state.range[1] - state.range[0]);

  function visible() {
    const first = chart.indexAt(data.times, state.range[0]);
    const end = chart.indexAt(data.times, state.range[1]) + 1;
    return { times: data.times.slice(first, end).map((time) => Math.max(time, state.range[0])), rows: data.bytes.slice(first, end) };
  }

  function draw() {
    const { times, rows } = visible();
    const layered = chart.layers(rows, state.shown);
    const marks = chart.ticks(chart.highest(layered), 5, 2);
    const most = marks[marks.length - 1] || 1;
    const toY = (bytes) => SIZE.height - SIZE.bottom - bytes / most * (SIZE.height - SIZE.top - SIZE.bottom);
    const svg = make("svg", { viewBox: `0 0 ${SIZE.width} ${SIZE.height}` });
    for (const mark of marks) {
      make("line", { class: "grid", x1: SIZE.left, x2: SIZE.width - SIZE.right, y1: toY(mark), y2: toY(mark) }, svg);
      make("text", { x: SIZE.left - 8, y: toY(mark) + 4, "text-anchor": "end" }, svg, chart.bytesText(mark));
    }
    const xs = times.map(toX), end = toX(state.range[1]);
    layered.forEach((layer, category) => {
      if (!layer) return;
      make("path", { d: chart.outline(layer, xs, end, toY), fill: `var(--category-${category})`, "fill-opacity": 0.85 }, svg);
    });
    for (const mark of chart.ticks(state.range[1] - state.range[0], 6, 10)) {
      const time = state.range[0] + mark;
      if (time <= state.range[1]) make("text", { x: toX(time), y: SIZE.height - 8, "text-anchor": "middle" }, svg, chart.timeText(time - data.times[0]));
    }
    if (data.peak !== null && data.peak >= state.range[0] && data.peak <= state.range[1]) {
      const x = toX(data.peak);
      make("line", { class: "peak", x1: x, x2: x, y1: SIZE.top - 6, y2: SIZE.height - SIZE.bottom }, svg);
      const anchor = x > SIZE.width / 2 ? "end" : "start";
      make("text", { class: "peak-name", x, y: SIZE.top - 10, "text-anchor": anchor }, svg, `peak ${chart.bytesText(data.peak_bytes)}`);
    }
    if (state.chosen) {
      const [from, to] = state.chosen.map(toX).sort((a, b) => a - b);
      make("rect", { class: "chosen", x: from, width: to - from, y: SIZE.top, height: SIZE.height - SIZE.top - SIZE.bottom }, svg);
    }
    if (state.cursor !== null) {
      const x = toX(Math.min(Math.max(data.times[state.cursor], state.range[0]), state.range[1]));
      make("line", { class: "cursor", x1: x, x2: x, y1: SIZE.top, y2: SIZE.height - SIZE.bottom }, svg);
    }
    listen(svg);
    host.replaceChildren(svg);
  }

  function read(index) {
    state.cursor = index;
    const row = data.bytes[index];
    const parts = row.map((bytes, category) => [bytes, data.categories[category]]).filter(([bytes]) => bytes !== 0);
    const total = row.reduce((sum, bytes) => sum + bytes, 0);
    reading.textContent = `${chart.timeText(data.times[index] - data.times[0])}: ${chart.bytesText(total)}` +
      parts.map(([bytes, name]) => `, ${name} ${chart.bytesText(bytes)}`).join("");
    draw();
  }

  function timeOf(event, svg) {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * SIZE.width;
    return Math.min(Math.max(toTime(x), state.range[0]), state.range[1]);
  }

  function listen(svg) {
    svg.addEventListener("pointermove", (event) => {
      const time = timeOf(event, svg);
      if (state.chosen) state.chosen[1] = time;
      read(chart.indexAt(data.times, time));
    });
    svg.addEventListener("pointerdown", (event) => { const time = timeOf(event, svg); state.chosen = [time, time]; });
    svg.addEventListener("pointerup", () => {
      const [from, to] = state.chosen ? state.chosen.slice().sort((a, b) => a - b) : [0, 0];
      state.chosen = null;
      if (to - from > (state.range[1] - state.range[0]) / 100) state.range = [from, to];
      draw();
    });
  }

  host.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") { state.range = whole; state.chosen = null; draw(); return; }
    if (step === undefined) return;
    event.preventDefault();
    const next = state.cursor === null ? 0 : state.cursor + step;
    read(Math.min(Math.max(next, 0), data.times.length - 1));
  });

  const legend = document.getElementById("legend");
  data.categories.forEach((name, category) => {
    const button = document.createElement("button");
    const swatch = document.createElement("i");
    swatch.style.background = `var(--category-${category})`;
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.append(swatch, name);
    button.addEventListener("click", () => {
      state.shown[category] = !state.shown[category];
      button.setAttribute("aria-pressed", String(state.shown[category]));
      draw();
    });
    legend.appendChild(button);
  });
  draw();
})();
