// The four pictures of the page, as the inside of SVG elements; colours are left to its sheet.
(function (lab) {
  "use strict";
  const UNIT = 64, MIDDLE = 180; // of the plane: pixels a unit, and where its origin is
  const DASHES = ["", "6 3", "2 3", "9 3 2 3", "1 2"];
  const LEAST_STEP = 0.5; // where step 0 stands on a log axis

  const tag = (name, parts, text = "") => {
    const all = Object.entries(parts).map(([key, value]) => ` ${key}="${value}"`);
    return `<${name}${all.join("")}>${text}</${name}>`;
  };
  const round = (value) => Math.round(value * 10) / 10;
  const line = (x1, y1, x2, y2, kind) =>
    tag("path", { d: `M${round(x1)} ${round(y1)}L${round(x2)} ${round(y2)}`, class: kind });
  const text = (x, y, words, kind = "") => tag("text", { x: round(x), y: round(y), class: kind }, words);
  const path = (points, kind, dash = "") => {
    const kept = points.filter((point) => point.every(Number.isFinite)).map((p) => p.map(round).join(" "));
    return kept.length ? tag("path", { d: "M" + kept.join("L"), class: kind, "stroke-dasharray": dash || "none" }) : "";
  };
  const minus = (value) => String(value).replace("-", "−"); // as wide as a plus
  // Exponents are raised by the page: few fonts have a raised minus.
  const power = (k) => (k === 0 ? "1" : k === 1 ? "10" : `10<tspan dy="-4" class="sub">${minus(k)}</tspan>`);
  // 12,345 or 3.7 · 10 to a power, as HTML
  lab.number = (value) => {
    const size = Math.abs(value), [digits, k] = value.toExponential(1).split("e");
    return minus(size > 1e5 || (size < 0.001 && size) ? `${digits} · 10<sup>${minus(Number(k))}</sup>`
      : value.toLocaleString("en", { maximumSignificantDigits: size < 100 ? 3 : 5 }));
  };

  // Sequences differ by colour and by shape: a disc, a square, a triangle.
  const shape = (i, r, parts = {}) =>
    i === 0 ? tag("circle", { r, ...parts })
    : i === 1 ? tag("rect", { x: -r * 0.9, y: -r * 0.9, width: r * 1.8, height: r * 1.8, ...parts })
    : tag("path", { d: `M0 ${round(-r * 1.2)}L${round(r * 1.1)} ${round(r * 0.8)}H${round(-r * 1.1)}Z`, ...parts });
  const arrow = (x, y, kind) => {
    const size = Math.hypot(x, y), [a, b] = [x / size, y / size];
    const head = [[x, y], [x - 9 * a + 4 * b, y - 9 * b - 4 * a], [x - 9 * a - 4 * b, y - 9 * b + 4 * a]];
    return line(0, 0, x, y, kind) + tag("path", { d: `M${head.map((p) => p.map(round).join(" ")).join("L")}Z`, class: kind + " head" });
  };

  lab.toPlane = ([x, y]) => [MIDDLE + UNIT * x, MIDDLE - UNIT * y];
  lab.fromPlane = ([x, y]) => [(x - MIDDLE) / UNIT, (MIDDLE - y) / UNIT];

  // What a constraint is to W_mm: it supports it, touches without a weight of its own, or is idle.
  lab.kindOf = ({ svm }, k) =>
    !svm.feasible || !svm.active[k] ? "idle" : svm.support[k] ? "support" : "touching";

  // What lies below the tokens: a grid, a line for each constraint, arrows along W x_1 and u, and
  // discs as large as attention.
  lab.drawPlane = function (setup, problem, record) {
    const parts = [];
    for (let k = -2; k <= 2; k++) {
      const at = MIDDLE + UNIT * k, kind = k ? "grid" : "axis";
      parts.push(line(at, 0, at, 360, kind), line(0, at, 360, at, kind));
      if (k) parts.push(text(at, MIDDLE + 13, minus(k), "small middle"), text(MIDDLE - 5, MIDDLE - UNIT * k + 4, minus(k), "small end"));
    }
    problem.rows.forEach(({ sequence, token }, k) => {
      const ends = [problem.opt[sequence], token].flatMap((t) => lab.toPlane(setup.X[sequence][t]));
      parts.push(line(...ends, `pair s${sequence} ${lab.kindOf(problem, k)}`));
    });
    setup.X.forEach((tokens, i) => {
      const [x, y] = tokens[0], W = record.W, v = [W[0] * x + W[1] * y, W[2] * x + W[3] * y];
      tokens.forEach((token, t) => {
        const [a, b] = lab.toPlane(token), size = 30 * Math.sqrt(Math.exp(record.logAttention[i][t]));
        parts.push(tag("circle", { cx: round(a), cy: round(b), r: round(size), class: `halo s${i}` }));
      });
      const size = Math.hypot(...v);
      if (size) parts.push(tag("g", { transform: `translate(${MIDDLE} ${MIDDLE})` },
        arrow((150 * v[0]) / size, (-150 * v[1]) / size, `along s${i}`)));
    });
    const u = setup.joint ? record.u : setup.u, size = Math.hypot(...u);
    const long = setup.joint ? 110 / (size || 1) : UNIT;
    if (size && !setup.scores) parts.push(tag("g", { transform: `translate(${MIDDLE} ${MIDDLE})` }, arrow(long * u[0], -long * u[1], "decoder")));
    return parts.join("");
  };

  // A token: its shape, filled where it is optimal, with a ring where it is the query.
  lab.drawToken = (i, t, optimal) =>
    tag("circle", { r: 14, class: "hit" }) +
    (t ? "" : shape(i, 12, { class: `query s${i}` })) +
    shape(i, 7.5, { class: `token s${i}${optimal ? " optimal" : ""}` }) +
    text(...[[11, -9], [11, 18], [-11, -9]][i], `${i + 1}.${t + 1}`, i === 2 ? "name end" : "name");
  lab.drawDecoder = () =>
    tag("circle", { r: 24, class: "hit" }) + tag("path", { d: "M0-15L15 0L0 15L-15 0Z", class: "decoder handle" }) +
    text(-13, 18, "u", "name end"); // around a token that stands there, which stays free to be taken

  // W as a hand of a compass: its angle to W_mm, and its length by the log of its norm.
  lab.drawCompass = function (problem, records, at) {
    const feasible = problem.svm.feasible, last = records[records.length - 1];
    const [x0, y0, radius] = [180, 186, 146];
    const target = feasible ? problem.svm.weights : Float64Array.from(last.W);
    const size = Math.sqrt(lab.dot(target, target)) || 1;
    const split = (W) => {
      const along = lab.dot(W, target) / size;
      return [along, W.map((value, k) => value - (along * target[k]) / size)];
    };
    const sides = records.map(({ W }) => split(W)[1]);
    const widest = sides.reduce((a, b) => (lab.dot(b, b) > lab.dot(a, a) ? b : a));
    const longest = records.reduce((most, { norm }) => Math.max(most, norm), 9);
    const far = (norm) => (radius * Math.log10(1 + norm)) / Math.log10(1 + 1.6 * longest);
    const place = ({ W, norm }) => {
      const [along, across] = split(W);
      const angle = Math.atan2(Math.sqrt(lab.dot(across, across)) * (lab.dot(across, widest) < 0 ? -1 : 1), along);
      return [x0 + far(norm) * Math.sin(angle), y0 - far(norm) * Math.cos(angle)];
    };
    const parts = [];
    for (let k = 0; far(10 ** k) <= radius; k++) {
      const r = round(far(10 ** k));
      parts.push(tag("circle", { cx: x0, cy: y0, r, class: "grid ring" }));
      parts.push(text(x0 + r * 0.71 + 3, y0 + r * 0.71 + 9, power(k), "small"));
    }
    parts.push(line(x0, y0, x0, y0 - radius - 8, "target"));
    parts.push(text(x0, 18, feasible ? 'W<tspan dy="4" class="sub">mm</tspan>' : "last W (there is no W<tspan dy=\"4\" class=\"sub\">mm</tspan>)", "middle strong"));
    const points = records.map(place);
    parts.push(line(x0, y0, ...points[at], "hand"), path(points, "way"));
    records.forEach(({ step }, k) => {
      const tens = step > 0 && Number.isInteger(Math.round(Math.log10(step) * 1e9) / 1e9);
      if (tens || !step) parts.push(tag("circle", { cx: round(points[k][0]), cy: round(points[k][1]), r: step ? 2.5 : 4, class: step ? "tick" : "start" }));
    });
    parts.push(tag("circle", { cx: round(points[at][0]), cy: round(points[at][1]), r: 6, class: "now" }));
    return parts.join("");
  };

  const LEFT = 42, RIGHT = 338;
  function steps(last) {
    const low = Math.log10(LEAST_STEP), share = (t) => (Math.log10(Math.max(t, LEAST_STEP)) - low) / (Math.log10(last) - low);
    const x = (t) => LEFT + (RIGHT - LEFT) * share(t);
    const axis = (top, bottom, named) => {
      const parts = [];
      for (let k = 0; 10 ** k <= last; k++) {
        parts.push(line(x(10 ** k), top, x(10 ** k), bottom, "grid"));
        if (named) parts.push(text(x(10 ** k), bottom + 20, power(k), "small middle"));
      }
      return parts.join("");
    };
    return { x, axis };
  }

  // Attention of every token, a strip for each sequence.
  lab.drawAttention = function (setup, problem, records, at) {
    const { x, axis } = steps(setup.steps), n = setup.X.length, parts = [];
    const room = 256 / n, high = room - 26;
    setup.X.forEach((tokens, i) => {
      const top = 22 + i * room, y = (share) => top + high * (1 - share);
      parts.push(axis(top, top + high, i === n - 1));
      for (const share of [0, 1]) parts.push(line(LEFT, y(share), RIGHT, y(share), "grid"), text(LEFT - 5, y(share) + 4, share, "small end"));
      parts.push(text(LEFT, top - 6, `sequence ${i + 1}, token ${problem.opt[i] + 1} is optimal`, "small"));
      tokens.forEach((_, t) => {
        const optimal = t === problem.opt[i];
        const share = (record) => Math.exp(record.logAttention[i][t]);
        parts.push(path(records.map((record) => [x(record.step), y(share(record))]), `curve s${i}${optimal ? " optimal" : ""}`, optimal ? "" : DASHES[1 + (t % 4)]));
        const now = records[at];
        parts.push(tag("g", { transform: `translate(${round(x(now.step))} ${round(y(share(now)))})` }, shape(i, 4, { class: `token s${i}${optimal ? " optimal" : ""}` })));
        const end = share(records[records.length - 1]);
        if (end > 0.25) parts.push(text(RIGHT + 8, y(end) + 4, t + 1, "small"));
      });
    });
    parts.push(text((LEFT + RIGHT) / 2, 298, "step", "small middle"));
    return parts.join("");
  };

  // 1 - cosine on log axes, and below it the slope of that curve.
  lab.drawError = function (setup, records, at) {
    const { x, axis } = steps(setup.steps), parts = [];
    const curves = [["error", "curve main"], ...(setup.joint ? [["uError", "curve decoder"]] : [])];
    const known = records.filter(({ step }) => step > 0);
    const all = curves.flatMap(([key]) => known.map((record) => record[key])).filter((value) => value > 1e-30);
    const low = Math.min(-1, Math.floor(Math.log10(Math.min(1, ...all)))), [top, bottom] = [14, 178];
    const y = (value) => top + ((bottom - top) * (Math.log10(2) - Math.log10(Math.max(value, 10 ** low)))) / (Math.log10(2) - low);
    parts.push(axis(top, bottom, false));
    for (let k = 0; k >= low; k -= low < -6 ? 2 : 1)
      parts.push(line(LEFT, y(10 ** k), RIGHT, y(10 ** k), "grid"), text(LEFT - 5, y(10 ** k) + 4, power(k), "small end"));
    const [up, down] = [197, 261], z = (slope) => up + ((down - up) * -Math.max(-3, Math.min(0.3, slope))) / 3;
    parts.push(axis(up, down, true));
    for (const slope of [0, -1, -2, -3])
      parts.push(line(LEFT, z(slope), RIGHT, z(slope), slope === -2 ? "grid two" : "grid"), text(LEFT - 5, z(slope) + 4, minus(slope), "small end"));
    parts.push(text(RIGHT, up - 5, "its slope", "small end"), text((LEFT + RIGHT) / 2, 298, "step", "small middle"));
    for (const [key, kind] of curves) {
      const seen = known.filter((record) => record[key] > 1e-30), dash = key === "error" ? "" : DASHES[1];
      parts.push(path(seen.map((record) => [x(record.step), y(record[key])]), kind, dash));
      parts.push(path(seen.map((record) => [x(record.step), z(lab.slope(records, records.indexOf(record), key))]), kind, dash));
      const now = records[at], slope = lab.slope(records, at, key);
      if (setup.joint && seen.length) parts.push(text(RIGHT + 8, y(seen[seen.length - 1][key]) + 4, key === "error" ? "W" : "u", "small"));
      if (now[key] > 1e-30 && now.step) parts.push(tag("circle", { cx: round(x(now.step)), cy: round(y(now[key])), r: 4, class: "now" }));
      if (Number.isFinite(slope)) parts.push(tag("circle", { cx: round(x(now.step)), cy: round(z(slope)), r: 4, class: "now" }));
    }
    return parts.join("");
  };

  // d log(1 - cosine) / d log t about a record, over a factor of about two in t.
  lab.slope = function (records, at, key = "error") {
    const now = records[at].step;
    const near = records.filter((each) => each.step > 0 && each.step >= now / 1.5 && each.step <= now * 1.5 && each[key] > 1e-30);
    const [a, b] = [near[0], near[near.length - 1]];
    return near.length > 1 ? Math.log(b[key] / a[key]) / Math.log(b.step / a.step) : NaN;
  };
})((globalThis.Laboratory ??= {}));
