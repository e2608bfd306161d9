// The plane of the tokens: a line for each constraint, arrows along W x_1 and u, and discs as large
// as attention; and the tokens themselves, which are dragged.
(function (lab) {
  "use strict";
  const UNIT = 64, MIDDLE = 180; // pixels a unit, and where the origin is
  const { tag, round, line, text, at, minus } = lab.svgWords;

  // Sequences differ by colour and by shape: a disc, a square, a triangle.
  const shape = (i, r, parts = {}) =>
    i === 0 ? tag("circle", { r, ...parts })
    : i === 1 ? tag("rect", { x: -r * 0.9, y: -r * 0.9, width: r * 1.8, height: r * 1.8, ...parts })
    : tag("path", { d: `M0 ${round(-r * 1.2)}L${round(r * 1.1)} ${round(r * 0.8)}H${round(-r * 1.1)}Z`, ...parts });
  lab.tokenShape = shape;
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

  lab.drawPlane = function (setup, problem, record) {
    const parts = [], origin = [MIDDLE, MIDDLE];
    for (let k = -2; k <= 2; k++) {
      const place = MIDDLE + UNIT * k, kind = k ? "grid" : "axis";
      parts.push(line(place, 0, place, 360, kind), line(0, place, 360, place, kind));
      if (k) parts.push(text(place, MIDDLE + 14, minus(k), "small middle"), text(MIDDLE - 5, MIDDLE - UNIT * k - 4, minus(k), "small end"));
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
      if (size) parts.push(at(origin, arrow((150 * v[0]) / size, (-150 * v[1]) / size, `along s${i}`)));
    });
    const u = setup.joint ? record.u : setup.u, size = Math.hypot(...u);
    const long = setup.joint ? 110 / (size || 1) : UNIT;
    if (size && !setup.scores) parts.push(at(origin, arrow(long * u[0], -long * u[1], "decoder")));
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
})((globalThis.Laboratory ??= {}));
