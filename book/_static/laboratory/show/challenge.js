// The challenge: three tokens that lock from W_0 = 0 with the largest score gap. The best is kept
// in the reader's browser, with its address.
(function (lab) {
  "use strict";
  const KEY = "attnbias-lock", LIMIT = 0.5; // no gap as large locks, since the first step returns
  const { tag, line, text, at } = lab.svgWords;
  const STAR = "M0-8L2-2.5H8L3 1L5 7L0 3.5L-5 7L-3 1L-8-2.5H-2Z";
  const digits = (gap) => gap.toFixed(4);

  function best() {
    let found = null;
    try {
      found = JSON.parse(localStorage.getItem(KEY));
    } catch {} // no JSON
    return found?.gap > 0 && found.gap < LIMIT && typeof found.address === "string" && /^#[\w=&.,+-]+$/.test(found.address) ? found : null;
  }
  function keep(found) {
    try {
      localStorage.setItem(KEY, JSON.stringify(found));
    } catch {} // a browser that is full
  }

  // A scale from 0 to the limit, with the border of these tokens, their gap and the best.
  function scale(border, gap, record) {
    const x = (value) => 10 + (340 * Math.min(value, LIMIT)) / LIMIT, parts = [tag("rect", { x: 10, y: 22, width: x(border) - 10, height: 10, class: "locks" })];
    for (let k = 0; k <= 5; k++) parts.push(line(x(k / 10), 20, x(k / 10), 34, "axis"), text(x(k / 10), 49, k / 10, "small middle"));
    if (record) parts.push(at([x(record), 11], tag("path", { d: STAR, class: "best" })));
    parts.push(tag("circle", { cx: x(gap), cy: 27, r: 6, class: "gap" }));
    return `<svg viewBox="0 0 360 54" role="img" aria-label="Score gaps from 0 to ${LIMIT}: these tokens lock up to ${digits(border)}; their own gap is ${digits(gap)}.">${parts.join("")}</svg>`;
  }

  // What is said of a set-up of one sequence of three tokens whose run has ended; "" of others.
  lab.challenge = function (setup, problem, ends) {
    if (setup.X.length !== 1 || setup.X[0].length !== 3 || setup.joint || problem.tied) return "";
    const begin = '<p class="lab-title">Challenge: the largest score gap that locks</p>', border = '<a href="paper/unequal_scores.html#lock-border">';
    const region = lab.lockRegion({ ...setup, momentum: 0 }, problem), edge = region ? lab.lockBorder(region) : 0;
    const zero = setup.W0.flat().every((value) => value === 0), locked = region && zero && ends[0].locked === "proved";
    if (locked && !lab.presetOf(setup) && region.gap < LIMIT && !(best()?.gap >= region.gap)) keep({ gap: region.gap, address: lab.toHash({ ...setup, at: 0 }) });
    const record = best(), yours = record ? ` Your best: <a href="${record.address.replaceAll("&", "&amp;")}">${digits(record.gap)}</a>, the star.` : "";
    const rest = ` <a href="one_sequence.html#sec-one-half">No three tokens lock</a> at a gap of ${LIMIT}.${yours}`;
    if (!edge) return `${begin}<p>From W<sub>0</sub> = 0 these tokens lock at no gap: by ${border}the border of the lock</a> ` +
      `the worst token must see the two others at an obtuse angle, and be nearer to the optimal one.${rest}</p>`;
    const how = !zero ? "does not count, as the start is not 0" : setup.momentum ? "does not count, as the theorem is on rules without momentum"
      : locked ? "locks" : "does not lock in this run";
    return `${begin}<p>The gap is what the second token lacks of the best score, in units of the range of scores. From W<sub>0</sub> = 0 and by short steps these tokens lock up to ` +
      `${border}the border</a> ${digits(edge)}; theirs is ${digits(region.gap)}, and it ${how}.${rest}</p>${scale(edge, region.gap, record?.gap)}`;
  };
})((globalThis.Laboratory ??= {}));
