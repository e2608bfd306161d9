// W of every run as a hand of a compass: its angle to W_mm, and its length by the log of its norm.
(function (lab) {
  "use strict";
  const { tag, round, line, text, at, power, curve } = lab.svgWords;
  const [X0, Y0, RADIUS] = [180, 192, 148];
  const WMM = 'W<tspan dy="4" class="sub">mm</tspan>';

  // The part of W along the direction of W_mm, or of the last W where there is none, and across it.
  function sight(problem, records) {
    const target = problem.svm.feasible ? problem.svm.weights : records[records.length - 1].W;
    const size = Math.sqrt(lab.dot(target, target)) || 1;
    const split = (W) => {
      const along = lab.dot(W, target) / size;
      return [along, W.map((value, k) => value - (along * target[k]) / size)];
    };
    const sides = records.map(({ W }) => split(W)[1]);
    const widest = sides.reduce((a, b) => (lab.dot(b, b) > lab.dot(a, a) ? b : a));
    return ({ W }) => { // the angle, positive on the side on which the run strays farthest
      const [along, across] = split(W);
      return Math.atan2(Math.sqrt(lab.dot(across, across)) * (lab.dot(across, widest) < 0 ? -1 : 1), along);
    };
  }

  lab.drawCompass = function (problem, race, step, ghost) {
    const runs = race.runs.filter(({ name }) => name !== "naive"), followed = race.followed.records;
    const angle = sight(problem, followed), own = ghost && sight(ghost.problem, ghost.records);
    // a W that is ten times as long as that of the chosen rule stands at the rim
    const longest = 10 * followed.reduce((most, { norm }) => Math.max(most, norm), 0.9);
    const far = (norm) => RADIUS * Math.min(1, Math.log10(1 + norm) / Math.log10(1 + longest));
    const placed = (look) => (record) => [X0 + far(record.norm) * Math.sin(look(record)), Y0 - far(record.norm) * Math.cos(look(record))];
    const parts = [], place = placed(angle), hidden = Math.ceil(Math.log10(longest) / 5);
    for (let k = 0; 10 ** k <= longest; k++) {
      const r = round(far(10 ** k));
      parts.push(tag("circle", { cx: X0, cy: Y0, r, class: "grid ring" }));
      if (k % hidden === 0) parts.push(text(X0 + r * 0.71 + 3, Y0 + r * 0.71 + 9, power(k), "small"));
    }
    parts.push(line(X0, Y0, X0, Y0 - RADIUS - 8, "target"));
    parts.push(text(X0, 20, problem.svm.feasible ? WMM : `last W (there is no ${WMM})`, "middle strong"));
    if (ghost) parts.push(curve(ghost.records, Infinity, placed(own), "way r-ghost"));
    for (const { name, records } of runs.toReversed()) {
      const look = lab.lookOf(name), now = place(lab.recordAt(records, step));
      parts.push(curve(records, step, place, `way r-${name}${name === runs[0].name ? " followed" : ""}`, look.dash));
      if (name === runs[0].name) parts.push(line(X0, Y0, ...now, `hand r-${name}`), ticks(followed, place, name));
      parts.push(at(now, tag("g", { class: `marker r-${name}` }, look.marker)));
    }
    return parts.join("");
  };

  // Where the run starts, and its steps 1, 10, 100 and so on.
  function ticks(records, place, name) {
    return records.map((record) => {
      const tens = record.step > 0 && Number.isInteger(Math.round(Math.log10(record.step) * 1e9) / 1e9);
      const [cx, cy] = tens || !record.step ? place(record).map(round) : [];
      return cx === undefined ? "" : tag("circle", { cx, cy, r: record.step ? 2.5 : 4, class: `${record.step ? "tick" : "start"} r-${name}` });
    }).join("");
  }
})((globalThis.Laboratory ??= {}));
