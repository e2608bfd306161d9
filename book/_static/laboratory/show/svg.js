// Words of SVG that the pictures are made of; colours are left to the sheet.
(function (lab) {
  "use strict";
  const LEAST_STEP = 0.5; // where step 0 stands on a log axis
  const LEFT = 46, RIGHT = 336; // of the pictures that have an axis of steps

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
  const at = ([x, y], inside) => tag("g", { transform: `translate(${round(x)} ${round(y)})` }, inside);
  const minus = (value) => String(value).replace("-", "−"); // as wide as a plus
  // Exponents are raised by the page: few fonts have a raised minus.
  const power = (k) => (k === 0 ? "1" : k === 1 ? "10" : `10<tspan dy="-5" class="sub">${minus(k)}</tspan>`);
  // 12,345 or 3.7 · 10 to a power, as HTML
  lab.number = (value) => {
    const size = Math.abs(value), [digits, k] = value.toExponential(1).split("e");
    return minus(size > 1e5 || (size < 0.001 && size) ? `${digits} · 10<sup>${minus(Number(k))}</sup>`
      : value.toLocaleString("en", { maximumSignificantDigits: size < 100 ? 3 : 5 }));
  };

  // The log axis of steps up to the last, and the share of the way at which a step stands on it.
  const low = Math.log10(LEAST_STEP);
  lab.shareOf = (step, last) => (Math.log10(Math.max(step, LEAST_STEP)) - low) / (Math.log10(last) - low);
  lab.stepAt = (share, last) => LEAST_STEP * (last / LEAST_STEP) ** share;
  function stepAxis(last) {
    const x = (t) => LEFT + (RIGHT - LEFT) * lab.shareOf(t, last);
    const axis = (top, bottom, named) => {
      const parts = [];
      for (let k = 0; 10 ** k <= last; k++) {
        parts.push(line(x(10 ** k), top, x(10 ** k), bottom, "grid"));
        if (named) parts.push(text(x(10 ** k), bottom + 18, power(k), "small middle"));
      }
      return parts.join("");
    };
    return { x, axis };
  }

  // A curve up to now, and what is still to come of it.
  const curve = (records, now, point, kind, dash) =>
    path(records.filter(({ step }) => step >= now).map(point), `${kind} to-come`, dash) +
    path(records.filter(({ step }) => step <= now).map(point), kind, dash);

  lab.svgWords = { tag, round, line, text, path, at, minus, power, stepAxis, curve, LEFT, RIGHT };
})((globalThis.Laboratory ??= {}));
