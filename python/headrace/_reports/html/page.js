"use strict";
// The timeline: a canvas that shows the spans between two times, from and to, in microseconds.
(() => {
  const canvas = document.getElementById("lanes");
  if (!canvas) return;
  const { stages, lanes, end_us: end } = JSON.parse(document.getElementById("data").textContent).timeline;
  const shown = document.getElementById("window"), told = document.getElementById("span");
  const LANE = 30, LABEL = 15, AXIS = 20, LEAST = Math.min(20, end);
  let from = 0, to = Math.max(end, 1), colours = [];

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const get = name => style.getPropertyValue(name).trim();
    colours = stages.map((name, i) => get(name === "idle" || name === "wait" ? "--idle" : "--c" + (i % 8)));
    colours.ink = get("--ink"); colours.faint = get("--faint"); colours.line = get("--line");
  }
  const time = us => {
    const span = to - from;
    return span < 2e3 ? us.toFixed(0) + " \u00b5s" : span < 2e6 ? (us / 1e3).toFixed(span < 2e4 ? 2 : 1) + " ms" : (us / 1e6).toFixed(2) + " s";
  };

  // The first span of a lane that may reach beyond a time: outer spans begin before their inner ones, so that a
  // search by begin alone would miss them; a lane's longest span bounds how far to go back.
  for (const lane of lanes) lane.longest = lane.spans[2].reduce((a, b) => Math.max(a, b), 0);
  function firstOf(lane, at) {
    let low = 0, high = lane.spans[1].length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lane.spans[1][middle] < at) low = middle + 1; else high = middle;
    }
    return low;
  }

  function draw() {
    const width = canvas.clientWidth, height = lanes.length * LANE + AXIS, ratio = window.devicePixelRatio || 1;
    canvas.style.height = height + "px";
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d"), scale = width / (to - from);
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    lanes.forEach((lane, row) => {
      const top = row * LANE, [stage, begin, length] = lane.spans;
      pen.fillStyle = colours.faint;
      pen.fillText(lane.thread, 2, top + 11);
      for (let i = firstOf(lane, from - lane.longest); i < begin.length && begin[i] < to; i++) {
        if (begin[i] + length[i] < from) continue;
        const x = Math.max(0, (begin[i] - from) * scale), right = Math.min(width, (begin[i] + length[i] - from) * scale);
        pen.fillStyle = colours[stage[i]];
        pen.fillRect(x, top + LABEL, Math.max(0.4, right - x), LANE - LABEL - 3);
      }
      pen.fillStyle = colours.line;
      pen.fillRect(0, top + LANE - 1, width, 1);
    });
    const marks = Math.max(2, Math.floor(width / 130));
    pen.fillStyle = colours.faint;
    for (let i = 0; i <= marks; i++) {
      const x = i * width / marks;
      pen.textAlign = i === 0 ? "left" : i === marks ? "right" : "center";
      pen.fillText(time(from + i * (to - from) / marks), x, height - 5);
    }
    pen.textAlign = "left";
    shown.textContent = time(from) + " to " + time(to);
    canvas.dataset.from = from;
    canvas.dataset.to = to;
  }

  function show(begin, length) {
    length = Math.min(Math.max(length, LEAST), Math.max(end, 1));
    from = Math.min(Math.max(0, begin), Math.max(end, 1) - length);
    to = from + length;
    draw();
  }
  const zoom = (factor, at) => show(at - (at - from) * factor, (to - from) * factor);
  const timeAt = event => from + (event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth * (to - from);
  const acts = {
    in: () => zoom(0.5, (from + to) / 2), out: () => zoom(2, (from + to) / 2),
    left: () => show(from - (to - from) / 3, to - from), right: () => show(from + (to - from) / 3, to - from),
    all: () => show(0, end),
  };

  for (const button of document.querySelectorAll("[data-act]")) button.addEventListener("click", acts[button.dataset.act]);
  canvas.addEventListener("keydown", event => {
    const act = { "+": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", "0": "all" }[event.key];
    if (act) { event.preventDefault(); acts[act](); }
  });
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    zoom(Math.exp(event.deltaY / 400), timeAt(event));
  }, { passive: false });

  const pointers = new Map();
  canvas.addEventListener("pointerdown", event => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, event.clientX);
  });
  const up = event => pointers.delete(event.pointerId);
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointermove", event => {
    const before = pointers.get(event.pointerId);
    if (before === undefined) return point(event);
    const span = to - from, width = canvas.clientWidth;
    if (pointers.size === 1) show(from - (event.clientX - before) / width * span, span);
    else {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const factor = Math.max(1, Math.abs(before - other)) / Math.max(1, Math.abs(event.clientX - other));
      zoom(factor, from + ((event.clientX + other) / 2 - canvas.getBoundingClientRect().left) / width * span);
    }
    pointers.set(event.pointerId, event.clientX);
  });

  function point(event) {
    const lane = lanes[Math.floor((event.clientY - canvas.getBoundingClientRect().top) / LANE)];
    if (!lane) return;
    const at = timeAt(event), slack = (to - from) / canvas.clientWidth, [stage, begin, length] = lane.spans;
    let found = -1;  // the last one that fits is the innermost
    for (let i = firstOf(lane, at - lane.longest - slack); i < begin.length && begin[i] <= at; i++)
      if (begin[i] + length[i] + slack >= at) found = i;
    if (found >= 0)
      told.textContent = `${lane.thread}: ${stages[stage[found]]}, ${(length[found] / 1e3).toFixed(3)} ms, at ${(begin[found] / 1e3).toFixed(3)} ms`;
  }

  new ResizeObserver(draw).observe(canvas.parentElement);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); draw(); });
  readColours();
  draw();
})();
