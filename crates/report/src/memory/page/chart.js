// Pure functions from numbers to numbers and texts. Nothing here accesses the page.
const chart = (() => {
  const UNITS = ["B", "KB", "MB", "GB"];

  // Rounds half to even, like the tables of the page.
  function halfToEven(value) {
    const rounded = Math.round(value);
    return Math.abs(value % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
  }

  function bytesText(bytes) {
    let value = bytes, unit = 0;
    while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) { value /= 1024; unit += 1; }
    return `${unit === 0 ? value : (halfToEven(value * 100) / 100).toFixed(2)} ${UNITS[unit]}`;
  }

  function timeText(microseconds) {
    if (microseconds >= 1e6) return `${(microseconds / 1e6).toFixed(3)} s`;
    if (microseconds >= 1e3) return `${(microseconds / 1e3).toFixed(3)} ms`;
    return `${microseconds} us`;
  }

  // Removes trailing zeros: `2.5 ms` for `2.500 ms`, `512 KB` for `512.00 KB`.
  function round(text) {
    return text.replace(/(\.\d*?)0+(?= )/, "$1").replace(/\.(?= )/, "");
  }

  // Returns the last index whose time is not after `time`; the first one if all are.
  function indexAt(times, time) {
    let low = 0, high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= time) low = middle + 1; else high = middle;
    }
    return Math.max(0, low - 1);
  }

  // Returns at most about `most` points: the highest and the last one of each time interval.
  function thinned(times, rows, most) {
    if (times.length <= most) return { times, rows };
    const first = times[0], span = times[times.length - 1] - first + 1;
    const stretch = (index) => Math.floor((times[index] - first) * most / 2 / span);
    const total = rows.map((row) => row.reduce((sum, bytes) => sum + bytes, 0));
    const kept = [];
    for (let begin = 0, end; begin < times.length; begin = end) {
      let highest = begin;
      for (end = begin + 1; end < times.length && stretch(end) === stretch(begin); end += 1) {
        if (total[end] > total[highest]) highest = end;
      }
      kept.push(highest);
      if (highest !== end - 1) kept.push(end - 1);
    }
    return { times: kept.map((index) => times[index]), rows: kept.map((index) => rows[index]) };
  }

  // Returns, for each category that is shown, the lower and upper edges of its layer at each point.
  function layers(rows, shown) {
    const floor = rows.map(() => 0);
    return shown.map((isShown, category) => {
      if (!isShown) return null;
      const lower = floor.slice();
      rows.forEach((row, index) => { floor[index] += Math.max(0, row[category]); });
      return { lower, upper: floor.slice() };
    });
  }

  function highest(layered) {
    let most = 0;
    for (const layer of layered) if (layer) for (const value of layer.upper) most = Math.max(most, value);
    return most;
  }

  // Returns round numbers from zero to at least `most`.
  function ticks(most, count, base) {
    if (most <= 0) return [0];
    const rough = most / count;
    const power = base ** Math.floor(Math.log(rough) / Math.log(base));
    const steps = base === 2 ? [1, 2] : [1, 2, 5, 10];
    const step = power * steps.find((factor) => power * factor >= rough);
    const found = [];
    for (let value = 0; value <= most + step / 2; value += step) found.push(value);
    return found;
  }

  // Returns the outline of a layer: memory keeps its size until it changes, so edges are steps.
  function outline(layer, xs, end, y) {
    const edge = (values) => values.map((value, index) => {
      const next = index + 1 < xs.length ? xs[index + 1] : end;
      return [[xs[index], y(value)], [next, y(value)]];
    }).flat();
    const points = edge(layer.upper).concat(edge(layer.lower).reverse());
    return "M" + points.map(([px, py]) => `${px.toFixed(1)},${py.toFixed(1)}`).join("L") + "Z";
  }

  return { bytesText, timeText, round, indexAt, thinned, layers, highest, ticks, outline };
})();
