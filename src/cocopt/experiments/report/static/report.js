"use strict";
// Draws the charts, sorts the tables and follows the buttons of a report. Names reach the page as text, never as HTML.
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const states = data.problems.map(() => ({ hidden: new Set(), bands: true, bounds: true, reference: null }));
  const drawn = new Set();
  const LEAST = 1e-7; // of the largest value: smaller ones do not stretch a logarithmic axis
  let printing = false;

  // ---------------------------------------------------------------------------------------------------------- numbers

  const minus = (text) => text.replace(/-/g, "−");

  function written(value, exponent, decimals) {
    if (exponent >= -4 && exponent <= 6) return minus(value.toFixed(Math.min(20, Math.max(0, decimals))));
    return minus((value / 10 ** exponent).toFixed(Math.min(20, Math.max(0, decimals + exponent))) + "e" + exponent);
  }

  function number(value, digits = 4) {
    if (value === null || value === undefined) return "undefined";
    if (value === 0) return "0";
    const exponent = Math.floor(Math.log10(Math.abs(Number(value.toExponential(digits - 1)))));
    return written(value, exponent, digits - 1 - exponent);
  }

  function meanText([mean, low, high]) {
    if (mean === null) return "undefined";
    if (low === null || !(high > low)) return number(mean);
    const half = (high - low) / 2;
    const decimals = 1 - Math.floor(Math.log10(Number(half.toExponential(1))));
    const largest = Math.floor(Math.log10(Math.max(Math.abs(mean), half)));
    return written(mean, largest, decimals) + " ± " + written(half, largest, decimals);
  }

  // ------------------------------------------------------------------------------------------------------------ theme

  function theme() {
    const isDark = dark.matches && !printing;
    return isDark
      ? { ink: "#e8eaed", quiet: "#a7afb8", grid: "#2e343a", zero: "#59616a", paper: "#1b1f23", key: "dark" }
      : { ink: "#1c1f23", quiet: "#5a6169", grid: "#e8eaec", zero: "#9aa1a8", paper: "#ffffff", key: "light" };
  }

  const colour = (index) => data.algorithms[index][theme().key];
  const faint = (hex, share) => hex + Math.round(255 * share).toString(16).padStart(2, "0");
  // Plotly reads a little HTML in texts
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const short = (text) => (text.length > 48 ? text.slice(0, 47) + "…" : text);
  const title = (index) => data.algorithms[index].title;

  function axis(look, more) {
    return Object.assign(
      {
        gridcolor: look.grid, linecolor: look.zero, zerolinecolor: look.zero, tickcolor: look.zero, ticks: "outside", ticklen: 4,
        automargin: true, tickfont: { size: 11, color: look.quiet }, title: { font: { size: 12, color: look.quiet }, standoff: 8 },
      },
      more,
    );
  }

  function layout(figure, more) {
    const look = theme();
    const base = {
      margin: { l: 50, r: 14, t: 14, b: 42 }, showlegend: false, hovermode: "closest",
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, color: look.ink, size: 12 },
      hoverlabel: { bgcolor: look.paper, bordercolor: look.zero, font: { color: look.ink, size: 12 }, align: "left", namelength: -1 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: look.quiet, activecolor: look.ink, orientation: "h" },
      dragmode: window.matchMedia("(pointer: coarse)").matches ? false : "zoom", // a finger scrolls the page
      autosize: true,
    };
    if (printing) {
      const two = figure.dataset.kind === "curve" && figure.closest(".content") && !figure.closest(".further");
      Object.assign(base, { autosize: false, width: two ? 325 : 670, height: two ? 215 : more.height || 320 });
      delete more.height;
    }
    return Object.assign(base, more);
  }

  const config = {
    displaylogo: false, responsive: true, showTips: false,
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]], displayModeBar: true, // the style sheet shows it to a pointer
  };

  // ------------------------------------------------------------------------------------------------------------- axes

  // A scale for numbers of both signs: linear between −unit and unit, logarithmic beyond.
  function bothSigns(values) {
    const largest = Math.max(...values.map(Math.abs), 1e-300);
    const unit = largest >= 10 ? 1 : 10 ** Math.floor(Math.log10(largest / 100));
    const apply = (y) => (y === null ? null : Math.sign(y) * Math.log10(1 + Math.abs(y) / unit));
    const ticks = [0];
    const last = Math.ceil(Math.log10(largest / unit));
    const stride = Math.max(1, Math.ceil(last / 4));
    for (let k = last > 1 ? 1 : 0; k <= last; k += stride) ticks.push(unit * 10 ** k, -unit * 10 ** k);
    return { unit, apply, tickvals: ticks.map(apply), ticktext: ticks.map((y) => minus(y === 0 ? "0" : power(y))) };
  }

  function power(value) {
    const size = Math.abs(value);
    return (value < 0 ? "-" : "") + (size >= 1e4 || size < 1e-2 ? size.toExponential(0).replace("+", "") : String(Number(size.toPrecision(1))));
  }

  function finite(lists) {
    return lists.flat().filter((value) => value !== null && value !== undefined);
  }

  const plainTicks = (values) => ({ exponentformat: values.some((value) => Math.abs(value) >= 1e6) ? "power" : "none", nticks: 7 });

  function padded(low, high) {
    const space = 0.04 * (high - low) || 0.5;
    return [low - space, high + space];
  }

  // ----------------------------------------------------------------------------------------------------------- charts

  function visible(problem, state, of) {
    return problem.algorithms.filter((index) => index in of && !state.hidden.has(index));
  }

  function curveChart(figure) {
    const problem = data.problems[figure.dataset.problem];
    const state = states[figure.dataset.problem];
    const key = figure.dataset.metric;
    const logX = pressed(figure, "x"), logY = pressed(figure, "y");
    const curves = problem.curves[key] || {};
    const bounds = state.bounds ? problem.bounds[key] || {} : {};
    const shown = visible(problem, state, curves);
    const notes = [];
    const means = finite(shown.map((index) => curves[index][1]));
    if (!means.length) notes.push(shown.length ? "Undefined: see the verdict on feasibility above." : "All algorithms are hidden.");
    else if (shown.some((index) => curves[index][1].includes(null))) notes.push("Not drawn where it is undefined.");
    const signed = means.some((value) => value < 0);
    const positive = means.filter((value) => value > 0);
    const scale = logY && signed ? bothSigns(means) : null;
    const least = positive.length ? Math.max(Math.min(...positive), LEAST * Math.max(...positive)) : 1;
    const onAxis = (value) => {
      if (value === null) return null;
      if (scale) return scale.apply(value);
      return logY ? Math.max(value, least / 100) : value; // a logarithmic axis has no zero; its frame ends above this
    };
    const traces = [];
    for (const index of shown) {
      const [place, mean, low, high] = curves[index];
      if (state.bands && low) traces.push(band(problem.t[place], low, high, onAxis, index));
    }
    for (const index of visible(problem, state, bounds)) traces.push(boundLine(problem.t[bounds[index][0]], bounds[index][1], onAxis, index));
    for (const index of shown) traces.push(meanLine(problem, curves[index], onAxis, index, logY && !scale ? 0 : null));
    const x = axis(theme(), logX ? { type: "log", range: [0, Math.log10(Math.max(problem.rounds, 2))] } : { range: [0, Math.max(problem.rounds, 2)] });
    x.title.text = "round t";
    if (logX) Object.assign(x, { dtick: problem.rounds >= 20 ? 1 : "D1", exponentformat: "power" });
    const y = axis(theme(), frame(problem, curves, bounds, shown, { logY, scale, least, means }));
    if (scale) notes.push(`Axis for both signs: linear between −${number(scale.unit, 1)} and ${number(scale.unit, 1)}, logarithmic beyond.`);
    if (!logY && boundsOutside(bounds, shown, y.range)) notes.push("Some bounds lie above the frame: “log y” shows them.");
    draw(figure, traces, layout(figure, { xaxis: x, yaxis: y }), notes);
    describe(figure, `${problem.metrics[key].title} against the round, ${shown.length} algorithms`);
  }

  function frame(problem, curves, bounds, shown, { logY, scale, least, means }) {
    if (!means.length) return { range: [0, 1] };
    const tops = finite(shown.filter((index) => index in bounds).map((index) => bounds[index][1]));
    if (scale) {
      const reach = [...means, ...tops].map(scale.apply);
      return { range: padded(Math.min(...reach), Math.max(...reach)), tickvals: scale.tickvals, ticktext: scale.ticktext };
    }
    if (logY) {
      const top = Math.max(...means, ...tops, least);
      const range = padded(Math.log10(least), Math.log10(top));
      const decades = range[1] - range[0];
      return { type: "log", range, dtick: decades > 8 ? Math.ceil(decades / 6) : decades > 1 ? 1 : "D2", exponentformat: "power" };
    }
    const reach = finite(shown.flatMap((index) => curves[index].slice(1)));
    const low = Math.min(0, ...reach), high = Math.max(...reach);
    return { range: [low < 0 ? padded(low, high)[0] : 0, padded(low, high)[1] || 1], ...plainTicks([low, high]) };
  }

  function boundsOutside(bounds, shown, range) {
    return shown.some((index) => index in bounds && finite([bounds[index][1]]).some((value) => value > range[1]));
  }

  function band(t, low, high, onAxis, index) {
    const known = t.map((_, i) => i).filter((i) => low[i] !== null && high[i] !== null);
    const back = [...known].reverse();
    return {
      x: [...known.map((i) => t[i]), ...back.map((i) => t[i])], y: [...known.map((i) => onAxis(high[i])), ...back.map((i) => onAxis(low[i]))],
      type: "scatter", mode: "lines", fill: "toself", fillcolor: faint(colour(index), 0.2), line: { width: 0 }, hoverinfo: "skip", meta: { index, kind: "band" },
    };
  }

  function boundLine(t, bound, onAxis, index) {
    return {
      x: t, y: bound.map(onAxis), type: "scatter", mode: "lines", line: { color: colour(index), width: 1.3, dash: "dash" }, opacity: 0.85,
      name: plain(short(title(index))), customdata: bound.map((value) => number(value)), meta: { index, kind: "bound" },
      hovertemplate: "<b>%{fullData.name}</b><br>bound at round %{x}: %{customdata}<extra></extra>",
    };
  }

  function meanLine(problem, [place, mean, low, high], onAxis, index, floor) {
    const t = problem.t[place];
    const few = t.length <= 20;
    return {
      x: t, y: mean.map((value) => (floor !== null && value !== null && value <= floor ? null : onAxis(value))), type: "scatter", mode: "lines+markers",
      line: { color: colour(index), width: 2 }, name: plain(short(title(index))), meta: { index, kind: "mean" }, connectgaps: false,
      marker: { symbol: data.algorithms[index].symbol, size: 7, color: colour(index), maxdisplayed: few ? 0 : 9 },
      customdata: mean.map((value, i) => [number(value), low && low[i] !== null ? `<br>95 % interval ${number(low[i])} to ${number(high[i])}` : ""]),
      hovertemplate: "<b>%{fullData.name}</b><br>round %{x}: %{customdata[0]}%{customdata[1]}<extra></extra>",
    };
  }

  function tradeOffChart(figure) {
    const problem = data.problems[figure.dataset.problem];
    const state = states[figure.dataset.problem];
    const across = problem.finals[figure.dataset.x], up = problem.finals[figure.dataset.metric];
    const logY = pressed(figure, "y");
    const every = visible(problem, state, across).filter((index) => index in up && across[index][0] !== null && up[index][0] !== null);
    const least = LEAST * Math.max(0, ...every.map((index) => up[index][0]));
    const shown = every.filter((index) => !logY || up[index][0] > least);
    const left = every.filter((index) => !shown.includes(index)).map((index) => short(title(index)));
    const notes = left.length ? [`Not on the logarithmic axis, since it is zero or next to it: ${left.join(", ")}.`] : [];
    if (!every.length) notes.push("Undefined, or all algorithms are hidden: choose another metric.");
    const front = shown.filter((a) => !shown.some((b) => beats(across, up, b, a))).sort((a, b) => across[a][0] - across[b][0]);
    const look = theme();
    const traces = [{
      x: front.map((index) => across[index][0]), y: front.map((index) => up[index][0]), type: "scatter", mode: "lines",
      line: { color: look.zero, width: 5 }, opacity: 0.45, hoverinfo: "skip", meta: { kind: "front" },
    }];
    const bar = (triple, index) => ({
      type: "data", symmetric: false, visible: triple[1] !== null, color: faint(colour(index), 0.6), thickness: 1.2, width: 3,
      array: [triple[2] - triple[0]], arrayminus: [logY ? Math.min(triple[0] - triple[1], 0.999 * triple[0]) : triple[0] - triple[1]],
    });
    const few = shown.length <= 10 && (printing || figure.clientWidth > 520 || shown.length <= 5);
    const where = few ? places(figure, shown, across, up, logY) : [];
    for (const index of shown) {
      traces.push({
        x: [across[index][0]], y: [up[index][0]], type: "scatter", mode: few ? "markers+text" : "markers", meta: { index, kind: "point" },
        error_x: { ...bar(across[index], index), arrayminus: [across[index][0] - across[index][1]] }, error_y: bar(up[index], index),
        marker: { symbol: data.algorithms[index].symbol, size: 11, color: colour(index) }, name: plain(short(title(index))),
        text: [plain(short(title(index)))], textposition: where[shown.indexOf(index)], textfont: { size: 11, color: look.ink }, cliponaxis: false,
        customdata: [[meanText(across[index]), meanText(up[index])]],
        hovertemplate: `<b>%{fullData.name}</b><br>${problem.metrics[figure.dataset.x].title}: %{customdata[0]}<br>` +
          `${plain(problem.metrics[figure.dataset.metric].title).replace(/%/g, "&#37;")}: %{customdata[1]}<extra></extra>`,
      });
    }
    const x = axis(look, plainTicks(shown.map((index) => across[index][0])));
    const y = axis(look, logY ? { type: "log", exponentformat: "power" } : plainTicks(shown.map((index) => up[index][0])));
    if (logY && shown.length) {
      const values = shown.map((index) => Math.log10(up[index][0]));
      const span = Math.max(...values) - Math.min(...values);
      y.range = [Math.min(...values) - 0.1 - 0.08 * span, Math.max(...values) + 0.1 + 0.08 * span];
      y.dtick = span > 1.2 ? 1 : "D2";
    }
    x.title.text = problem.metrics[figure.dataset.x].title;
    y.title.text = problem.metrics[figure.dataset.metric].title;
    draw(figure, traces, layout(figure, { xaxis: x, yaxis: y, height: printing ? 300 : undefined }), notes);
    describe(figure, `${y.title.text} against ${x.title.text}, ${shown.length} algorithms`);
  }

  // Where to write the names: beside each point, at the first place that meets neither a name nor a point.
  function places(figure, shown, across, up, logY) {
    const box = figure.querySelector(".chart");
    const width = Math.max(200, (printing ? 640 : box.clientWidth) - 90), height = Math.max(150, (printing ? 300 : box.clientHeight) - 80);
    const along = (value, values, size) => (size * (value - Math.min(...values))) / (Math.max(...values) - Math.min(...values) || 1);
    const level = (index) => (logY ? Math.log10(up[index][0]) : up[index][0]);
    const xs = shown.map((index) => across[index][0]), ys = shown.map(level);
    const points = shown.map((index) => [along(across[index][0], xs, width), height - along(level(index), ys, height)]);
    const taken = points.map(([x, y]) => [x - 7, y - 7, x + 7, y + 7]);
    return shown.map((index, i) => {
      const [x, y] = points[i], long = 6.4 * short(title(index)).length;
      const options = {
        "top center": [x - long / 2, y - 24], "bottom center": [x - long / 2, y + 8], "middle right": [x + 10, y - 8], "middle left": [x - 10 - long, y - 8],
        "top right": [x + 4, y - 24], "top left": [x - 4 - long, y - 24], "bottom right": [x + 4, y + 8], "bottom left": [x - 4 - long, y + 8],
      };
      const free = ([left, top]) => left > -30 && left + long < width + 30 &&
        !taken.some((own, k) => k !== i && left < own[2] && left + long > own[0] && top < own[3] && top + 16 > own[1]);
      const found = Object.keys(options).find((key) => free(options[key])) || (x > width / 2 ? "middle left" : "middle right");
      const [left, top] = options[found];
      taken.push([left, top, left + long, top + 16]);
      return found;
    });
  }

  function beats(across, up, b, a) {
    return across[b][0] <= across[a][0] && up[b][0] <= up[a][0] && (across[b][0] < across[a][0] || up[b][0] < up[a][0]);
  }

  // ----------------------------------------------------------------------------------------------- paired differences

  function differences(problem, key, reference) {
    const found = {};
    for (const [first, second, mean, low, high] of problem.paired[key] || []) {
      if (second === reference) found[first] = [mean, low, high];
      if (first === reference) found[second] = [-mean, high === null ? null : -high, low === null ? null : -low];
    }
    return found;
  }

  function separated([, low, high], key, problem) {
    const zero = key.startsWith("ccv") ? problem.zero : 0; // smaller sums of violations are rounding
    return low > zero ? "higher" : high < -zero && high !== null ? "lower" : "";
  }

  function pairedChart(figure) {
    const problem = data.problems[figure.dataset.problem];
    const state = states[figure.dataset.problem];
    const found = differences(problem, figure.dataset.metric, state.reference);
    const shown = visible(problem, state, found).reverse();
    const look = theme();
    const traces = shown.map((index) => ({
      x: [found[index][0]], y: [shown.indexOf(index)], type: "scatter", mode: "markers", name: plain(short(title(index))), meta: { index, kind: "difference" },
      marker: { symbol: data.algorithms[index].symbol, size: 9, color: colour(index) },
      error_x: { type: "data", symmetric: false, array: [found[index][2] - found[index][0]], arrayminus: [found[index][0] - found[index][1]], color: colour(index), thickness: 2.2, width: 5 },
      customdata: [meanText(found[index])], hovertemplate: "<b>%{fullData.name}</b><br>%{customdata}<extra></extra>",
    }));
    const narrow = figure.clientWidth < 520;
    const x = axis(look, { zeroline: true, zerolinewidth: 2, ...plainTicks(shown.map((index) => found[index][0])) });
    const label = (index) => plain(title(index).length > (narrow ? 18 : 34) ? title(index).slice(0, narrow ? 17 : 33) + "…" : title(index));
    const y = axis(look, { tickvals: shown.map((_, i) => i), ticktext: shown.map(label), range: [-0.7, shown.length - 0.3], showgrid: false, ticks: "", zeroline: false });
    y.tickfont = { size: 11.5, color: look.ink };
    x.title.text = `${plain(short(problem.metrics[figure.dataset.metric].title))}, less that of ${label(state.reference)}`;
    const height = 74 + Math.max(shown.length, 2) * 25;
    figure.querySelector(".chart").style.height = printing ? "" : `${height}px`;
    const undefinedNote = shown.length ? [] : ["Undefined, or all algorithms are hidden: choose another metric."];
    draw(figure, traces, layout(figure, { xaxis: x, yaxis: y, height: printing ? Math.min(height, 560) : undefined }), undefinedNote);
    describe(figure, `Paired differences of ${problem.metrics[figure.dataset.metric].title} to ${title(state.reference)}; the table below has the numbers`);
  }

  function pairedTable(figure) {
    const problem = data.problems[figure.dataset.problem];
    const state = states[figure.dataset.problem];
    const keys = Object.keys(problem.paired);
    const all = keys.map((key) => differences(problem, key, state.reference));
    const table = make("table", "values-table");
    table.append(make("caption", "", `Each less ${title(state.reference)}.`));
    const head = table.createTHead().insertRow();
    for (const text of ["Algorithm", ...keys.map((key) => problem.metrics[key].title)]) head.append(make("th", "", text));
    for (const cell of head.cells) cell.scope = "col";
    const body = table.createTBody();
    for (const index of problem.algorithms.filter((own) => own !== state.reference)) {
      const row = body.insertRow();
      row.append(rowHead(index));
      all.forEach((found, i) => {
        const cell = row.insertCell();
        cell.dataset.metric = keys[i];
        if (!(index in found)) return void (cell.textContent = "–");
        const side = separated(found[index], keys[i], problem);
        cell.className = side;
        cell.textContent = (side === "lower" ? "▼ " : side === "higher" ? "▲ " : "") + meanText(found[index]);
      });
    }
    figure.parentElement.querySelector(".paired").replaceChildren(table);
  }

  function make(tag, kind, text) {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function rowHead(index) {
    const cell = make("th");
    cell.scope = "row";
    const known = document.querySelector(`[data-algorithm="${index}"] .algorithm`);
    cell.append(known.cloneNode(true));
    return cell;
  }

  // ---------------------------------------------------------------------------------------------- values as a table

  function valuesTable(figure) {
    const problem = data.problems[figure.dataset.problem];
    const curves = problem.curves[figure.dataset.metric] || {};
    const of = problem.algorithms.filter((index) => index in curves);
    const table = make("table", "values-table");
    const rounds = of.length ? problem.t[curves[of[0]][0]] : [];
    const count = Math.min(6, rounds.length);
    const at = [...new Set(Array.from({ length: count }, (_, k) => nearest(rounds, Math.exp((Math.log(rounds[rounds.length - 1]) * k) / Math.max(1, count - 1)))))];
    table.append(make("caption", "", `${problem.metrics[figure.dataset.metric].title}: mean ± half of its 95 % interval at some rounds.`));
    const head = table.createTHead().insertRow();
    for (const text of ["Algorithm", ...at.map((i) => `t = ${rounds[i]}`)]) head.append(make("th", "", text));
    for (const cell of head.cells) cell.scope = "col";
    const body = table.createTBody();
    for (const index of of) {
      const row = body.insertRow();
      row.append(rowHead(index));
      const [place, mean, low, high] = curves[index];
      for (const i of at) {
        const k = problem.t[place].indexOf(rounds[i]);
        row.insertCell().textContent = k < 0 ? "–" : meanText([mean[k], low ? low[k] : null, high ? high[k] : null]);
      }
    }
    figure.querySelector(".values .scroll").replaceChildren(table);
  }

  function nearest(values, wanted) {
    let best = 0;
    values.forEach((value, i) => { if (Math.abs(value - wanted) < Math.abs(values[best] - wanted)) best = i; });
    return best;
  }

  // ---------------------------------------------------------------------------------------------------------- drawing

  const charts = { curve: curveChart, "trade-off": tradeOffChart, paired: pairedChart };

  function draw(figure, traces, arranged, notes) {
    Plotly.react(figure.querySelector(".chart"), traces, arranged, config);
    figure.querySelector(".note").textContent = notes.join(" ");
  }

  function describe(figure, text) {
    figure.querySelector(".chart").setAttribute("aria-label", text);
  }

  function redraw(figure) {
    if (drawn.has(figure)) charts[figure.dataset.kind](figure);
  }

  function pressed(figure, name) {
    const button = figure.querySelector(`[data-axis="${name}"]`);
    return button !== null && button.getAttribute("aria-pressed") === "true";
  }

  function press(button, value) {
    button.setAttribute("aria-pressed", String(value));
  }

  const figures = [...document.querySelectorAll("figure")];
  const ofProblem = (problem) => figures.filter((figure) => figure.dataset.problem === String(problem));

  // Regret and violations grow like powers of t, which are straight lines on logarithmic axes; the loss does not.
  function usualAxes(figure) {
    const problem = data.problems[figure.dataset.problem], key = figure.dataset.metric;
    if (figure.dataset.kind === "curve") {
      const growing = /^(regret|ccv[12]|certificate|worst|local_ccv[12])/.test(key) && problem.rounds >= 20;
      const last = problem.algorithms.filter((index) => index in (problem.curves[key] || {})).map((index) => finite([problem.curves[key][index][1]]).at(-1) || 0);
      const apart = last.length > 1 && Math.min(...last) > 0 && Math.max(...last) > 30 * Math.min(...last);
      press(figure.querySelector('[data-axis="x"]'), growing);
      press(figure.querySelector('[data-axis="y"]'), (growing && last.some((value) => value !== 0)) || apart);
    } else if (figure.dataset.kind === "trade-off") {
      const values = finite(Object.values(problem.finals[key] || {}).map((triple) => [triple[0]])).filter((value) => value > 0);
      press(figure.querySelector('[data-axis="y"]'), values.length > 1 && Math.max(...values) > 30 * Math.min(...values));
    }
  }

  // ----------------------------------------------------------------------------------------------------------- events

  for (const figure of figures) {
    usualAxes(figure);
    figure.addEventListener("click", (event) => {
      const button = event.target.closest("[data-axis]");
      if (!button) return;
      press(button, button.getAttribute("aria-pressed") !== "true");
      redraw(figure);
    });
    figure.addEventListener("change", (event) => {
      const use = event.target.dataset.use;
      if (use === "reference") {
        states[figure.dataset.problem].reference = Number(event.target.value);
        pairedTable(figure);
      } else {
        figure.dataset[use] = event.target.value;
        if (use === "metric") usualAxes(figure);
        const caption = figure.querySelector("figcaption");
        if (caption) caption.textContent = data.problems[figure.dataset.problem].metrics[figure.dataset.metric].about;
        if (figure.querySelector(".values[open]")) valuesTable(figure);
      }
      redraw(figure);
    });
    const values = figure.querySelector(".values");
    if (values) values.addEventListener("toggle", () => values.open && valuesTable(figure));
    if (figure.dataset.kind === "paired") {
      const problem = data.problems[figure.dataset.problem];
      states[figure.dataset.problem].reference = problem.reference;
      const options = problem.references.map((index) => new Option(title(index), index, index === problem.reference, index === problem.reference));
      figure.querySelector('[data-use="reference"]').replaceChildren(...options);
      pairedTable(figure);
    }
  }

  for (const legend of document.querySelectorAll(".legend")) {
    const problem = Number(legend.closest("section").dataset.problem), state = states[problem];
    legend.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      if (button.dataset.algorithm !== undefined) {
        const index = Number(button.dataset.algorithm);
        if (!state.hidden.delete(index)) state.hidden.add(index);
      } else if (button.dataset.every !== undefined) {
        state.hidden = new Set(button.dataset.every === "true" ? [] : data.problems[problem].algorithms);
      } else {
        state[button.dataset.layer] = !state[button.dataset.layer];
        press(button, state[button.dataset.layer]);
      }
      for (const own of legend.querySelectorAll("[data-algorithm]")) press(own, !state.hidden.has(Number(own.dataset.algorithm)));
      ofProblem(problem).forEach(redraw);
    });
  }

  function sortBy(table, column, direction) {
    const body = table.tBodies[0];
    const value = (row) => {
      const cell = row.cells[column];
      return column === 0 ? cell.dataset.value : cell.dataset.value === undefined ? null : Number(cell.dataset.value);
    };
    const rows = [...body.rows].map((row) => [value(row), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // what is undefined comes last
      return direction * (column === 0 ? a.localeCompare(b) : a < b ? -1 : a > b ? 1 : 0);
    });
    body.append(...rows.map(([, row]) => row));
    [...table.tHead.rows[table.tHead.rows.length - 1].cells].forEach((cell, i) => cell.setAttribute("aria-sort", i !== column ? "none" : direction > 0 ? "ascending" : "descending"));
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    table.tHead.addEventListener("click", (event) => {
      const cell = event.target.closest("th[aria-sort]");
      if (cell) sortBy(table, cell.cellIndex, cell.getAttribute("aria-sort") === "ascending" ? -1 : 1);
    });
  }

  function drawOnce(figure) {
    if (drawn.has(figure)) return;
    drawn.add(figure);
    charts[figure.dataset.kind](figure);
  }

  // A chart is drawn when it comes near: a page may have many.
  const watcher = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => { watcher.unobserve(entry.target); drawOnce(entry.target); }),
    { rootMargin: "700px" },
  );
  figures.forEach((figure) => watcher.observe(figure));

  const links = [...document.querySelectorAll("nav a")];
  const reader = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => links.forEach((link) => {
      if (link.hash === "#" + entry.target.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    })),
    { rootMargin: "-20% 0px -75% 0px" },
  );
  document.querySelectorAll("main > section").forEach((section) => reader.observe(section));

  dark.addEventListener("change", () => drawn.forEach(redraw));

  let opened = [];
  window.addEventListener("beforeprint", () => {
    printing = true;
    opened = [...document.querySelectorAll("details:not([open]):not(.values)")];
    opened.forEach((details) => { details.open = true; });
    figures.forEach((figure) => { drawn.add(figure); redraw(figure); });
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    opened.forEach((details) => { details.open = false; });
    drawn.forEach(redraw);
  });
})();
