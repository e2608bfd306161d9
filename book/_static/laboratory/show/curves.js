// The pictures over the step: attention of each token, and the error with its slope.
(function (lab) {
  "use strict";
  const { tag, line, text, at, minus, power, stepAxis, curve, LEFT, RIGHT } = lab.svgWords;
  const DASHES = ["6 3", "2 3", "9 3 2 3", "1 2"]; // of tokens that are not optimal
  const LEAST = 1e-30; // a smaller error is not drawn

  // Attention of every token of a sequence.
  lab.drawAttention = function (setup, problem, records, step, i) {
    const { x, axis } = stepAxis(setup.steps), [top, bottom] = [24, 104], opt = problem.opt[i];
    const y = (share) => bottom - (bottom - top) * share, now = lab.recordAt(records, step), parts = [axis(top, bottom, true)];
    for (const share of [0, 1]) parts.push(line(LEFT, y(share), RIGHT, y(share), "grid"), text(LEFT - 6, y(share) + 4, share, "small end"));
    parts.push(text(LEFT, 15, `sequence ${i + 1}: token ${opt + 1} is optimal`, "small"));
    setup.X[i].forEach((_, t) => {
      const optimal = t === opt, share = (record) => Math.exp(record.logAttention[i][t]);
      const kind = `curve s${i}${optimal ? " optimal" : ""}`;
      parts.push(curve(records, step, (record) => [x(record.step), y(share(record))], kind, optimal ? "" : DASHES[t % 4]));
      parts.push(at([x(now.step), y(share(now))], lab.tokenShape(i, 4, { class: `token s${i}${optimal ? " optimal" : ""}` })));
      const end = share(records[records.length - 1]);
      if (end > 0.25) parts.push(text(RIGHT + 8, y(end) + 4, t + 1, "small"));
    });
    return parts.join("");
  };

  // What is drawn of the error: the ghost of the last run, the rules that race, and of the one that
  // is followed also the naive run and the direction of u.
  function curvesOf(setup, race, ghost) {
    const followed = race.followed, curves = race.runs.map(({ name, records }) => ({ name, records, key: "error", kind: `curve r-${name}`, ...lab.lookOf(name) }));
    if (setup.joint) curves.push({ name: followed.name, records: followed.records, key: "uError", kind: "curve decoder", ...lab.lookOf(followed.name), dash: "6 3" });
    if (ghost) curves.push({ ...ghost, name: "ghost", key: "error", kind: "curve r-ghost", dash: "" });
    curves[0].kind += " followed";
    return curves.toReversed(); // the followed one over the others
  }

  lab.drawError = function (setup, problem, race, step, ghost) {
    const { x, axis } = stepAxis(setup.steps), parts = [], curves = curvesOf(setup, race, ghost).map((each) => ({ ...each,
      records: each.records.filter((record) => record.step > 0 && record.step <= setup.steps && record[each.key] > LEAST) }));
    const least = curves.reduce((low, { records, key }) => records.reduce((a, record) => Math.min(a, record[key]), low), 1);
    const low = Math.min(-1, Math.floor(Math.log10(least))), [top, bottom] = [12, 218];
    const y = (value) => top + ((bottom - top) * (Math.log10(2) - Math.log10(Math.max(value, 10 ** low)))) / (Math.log10(2) - low);
    parts.push(axis(top, bottom, false));
    const apart = Math.ceil(-low / 8);
    for (let k = 0; k >= low; k -= apart)
      parts.push(line(LEFT, y(10 ** k), RIGHT, y(10 ** k), "grid"), text(LEFT - 6, y(10 ** k) + 4, power(k), "small end"));
    const [up, down] = [246, 316], z = (slope) => up + ((down - up) * -Math.max(-3, Math.min(0.3, slope))) / 3;
    parts.push(axis(up, down, true));
    for (const slope of [0, -1, -2, -3])
      parts.push(line(LEFT, z(slope), RIGHT, z(slope), slope === -2 ? "grid two" : "grid"), text(LEFT - 6, z(slope) + 4, minus(slope), "small end"));
    parts.push(text(RIGHT, up - 6, "slope of the curve", "small end"), text((LEFT + RIGHT) / 2, 354, "step", "small middle"));
    if (!problem.svm.feasible) parts.push(text((LEFT + RIGHT) / 2, 110, 'There is no W<tspan dy="4" class="sub">mm</tspan><tspan dy="-4">, and so no error.</tspan>', "middle"));
    const wall = setup.float64 && lab.wallOf(race.followed, problem);
    if (wall) parts.push(line(x(wall), top, x(wall), bottom, "wall"), text(x(wall) + (wall < 100 ? 5 : -5), bottom - 7, `1 − φ < 2<tspan dy="-5" class="sub">−53</tspan>`, wall < 100 ? "small" : "small end"));
    for (const { name, records, key, kind, dash, marker } of curves) {
      const now = name === "ghost" ? Infinity : step, level = (record) => [x(record.step), y(record[key])];
      parts.push(curve(records, now, level, kind, dash));
      if (name !== "naive") parts.push(curve(records, now, (record) => [x(record.step), z(lab.slope(records, record.step, key))], `${kind} slope`, dash));
      const here = records.findLast((record) => record.step <= step), sign = tag("g", { class: `marker r-${name}` }, marker);
      if (here && name !== "ghost") {
        const slope = lab.slope(records, here.step, key);
        parts.push(at(level(here), sign));
        if (Number.isFinite(slope) && name !== "naive") parts.push(at([x(here.step), z(slope)], sign));
      }
      if (setup.joint && kind.includes("followed") && records.length) parts.push(text(RIGHT + 6, level(records[records.length - 1])[1] + 4, "W", "small"));
      if (key === "uError" && records.length) parts.push(text(RIGHT + 6, level(records[records.length - 1])[1] + 4, "u", "small"));
    }
    return parts.join("");
  };

  // d log(1 - cosine) / d log t about a step, over a factor of about two in t.
  lab.slope = function (records, step, key = "error") {
    const near = records.filter((each) => each.step > 0 && each.step >= step / 1.5 && each.step <= step * 1.5 && each[key] > LEAST);
    const [a, b] = [near[0], near[near.length - 1]];
    return near.length > 1 ? Math.log(b[key] / a[key]) / Math.log(b.step / a.step) : NaN;
  };
})((globalThis.Laboratory ??= {}));
