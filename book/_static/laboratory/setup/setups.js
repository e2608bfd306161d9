// A set-up as an address: what it may hold, what stands for what cannot be used, and how it is said.
(function (lab) {
  "use strict";
  const LARGEST = 1000; // of tokens, u, W0 and scores
  const plain = lab.PLAIN, VIEW = ["race", "float64", "at"]; // what is shown, whatever is trained

  lab.MOST_TOKENS = 5;
  lab.RULES = ["GD", "NGD", "Polyak"];
  const SPAN = `from -${LARGEST} to ${LARGEST}`; // with the sign that one types
  const LIMITS = { step: [1e-6, 100], steps: [10, 1e5], momentum: [0, 0.99], cap: [0, 1e9], at: [0, 1e5] };
  const ALLOWED = {
    X: `two numbers ${SPAN} for each token, and 2 to ${lab.MOST_TOKENS} tokens for each label y`,
    y: "1 or -1 for each of 1 to 3 sequences",
    u: `two numbers ${SPAN}`,
    W0: `four numbers ${SPAN}`,
    rule: lab.RULES.join(", "),
    step: "from 0.000001 to 100, with GD and NGD",
    steps: "a whole number from 10 to 100000",
    momentum: "from 0 to 0.99, with NGD and W alone",
    cap: "from 0 (none) to 1000000000, with Polyak",
    scores: `a number ${SPAN} for each token, with W alone`,
    joint: "separate, or with NGD shared",
    race: "on or off",
    float64: "on or off",
    at: "a step from 0 to the last",
    number: `a number ${SPAN}`,
    preset: `${Object.keys(lab.PRESETS).join(", ")}, or X=…&y=…&u=…`,
  };

  // The allowed number that is nearest to what a text says, or another where it says none.
  lab.nearest = function (key, text, other) {
    const [low, high] = LIMITS[key] ?? [-LARGEST, LARGEST], value = Number(text);
    return text.trim() === "" || Number.isNaN(value) ? other : Math.max(low, Math.min(high, value));
  };

  const short = (value) => (String(value).length > 60 ? `${String(value).slice(0, 60)}…` : value);
  const differ = (came, used) => came !== used && (came.trim() === "" || Number(came) !== Number(used));

  // A sentence for what came and is not used as it is, or nothing where it is.
  lab.note = function (name, came, used, key = name) {
    let [a, b] = [came, String(used)].map((value) => value.split(","));
    if (a.length === b.length) [a, b] = [a, b].map((list) => list.filter((_, k) => differ(a[k], b[k])));
    return a.length ? [`${name}: ${short(a.join()) || "no number"} came, ${short(b.join())} is used; allowed: ${ALLOWED[key]}.`] : [];
  };

  const numbers = (values) => values?.flat(3).join(",");
  const folded = (values, size) =>
    Array.from({ length: values.length / size }, (_, k) => values.slice(k * size, (k + 1) * size));
  const switched = (on) => (on ? "on" : "off");
  const partsOf = ({ X, y, u, W0, rule, step, momentum, cap, normalise, joint, steps, scores, race, float64, at }) => ({
    X: numbers(X), y: numbers(y), u: numbers(u), W0: numbers(W0), rule, step: rule === "Polyak" ? "" : step, steps, momentum, cap,
    scores: numbers(scores ?? []), joint: joint ? normalise : "", race: switched(race), float64: switched(float64), at,
  });
  const trained = (setup) => JSON.stringify({ ...lab.filled(setup), race: 0, float64: 0, at: 0 });
  lab.presetOf = (setup) => Object.keys(lab.PRESETS).find((name) => trained(lab.PRESETS[name].setup) === trained(setup)) ?? "";

  // #X=..&y=..&.., or the name of a preset whose run is unchanged; with what is shown of it, if
  // that differs
  lab.toHash = function (setup) {
    const name = lab.presetOf(setup), parts = partsOf(lab.filled(setup)), usual = partsOf(lab.filled(lab.PRESETS[name]?.setup ?? { ...setup, ...plain }));
    const said = Object.entries(parts).filter(([key, value]) => (VIEW.includes(key) ? value !== usual[key] : value && !name));
    return "#" + [...(name ? [name] : []), ...said.map((pair) => pair.join("="))].join("&");
  };

  // The set-up of an address, or null where its tokens, labels, u or scores cannot be used; what
  // else cannot be is replaced. The notes say what came, what is used and what is allowed.
  lab.fromHash = function (hash, notes = []) {
    let text = hash.replace(/^#/, "");
    try { text = decodeURIComponent(text); } catch { /* it stays as it is */ }
    const refuse = (name, came, key) => (notes.push(...lab.note(name, came, "nothing of this address", key), "The page keeps the set-up that it shows."), null);
    const [name, ...rest] = text.split("&"), preset = Object.hasOwn(lab.PRESETS, name) ? lab.filled(lab.PRESETS[name].setup) : null;
    if (!preset && !text.includes("=")) return refuse("set-up", text, "preset");
    const came = new Map(), usual = partsOf(preset ?? {});
    for (const part of preset ? rest : [name, ...rest]) {
      const [key, ...value] = part.split("=");
      if (came.has(key)) notes.push(`${short(key)} came twice: the last one is used.`);
      came.set(key, value.join("="));
    }
    const said = (key) => came.get(key) ?? String(preset ? usual[key] : ""), list = (key) => said(key).split(",").map((each) => lab.nearest(key, each, NaN));
    const X = list("X"), y = list("y"), u = list("u"), W0 = list("W0"), T = X.length / y.length / 2;
    const joint = ["separate", "shared"].includes(said("joint")), scores = said("scores") !== "" && !joint && list("scores");
    const held = (values, count) => values.length === count && !values.some(Number.isNaN);
    const fit = {
      y: y.length <= 3 && y.every((label) => Math.abs(label) === 1),
      X: Number.isInteger(T) && T >= 2 && T <= lab.MOST_TOKENS && held(X, X.length),
      u: held(u, 2),
      scores: !scores || held(scores, X.length / 2),
    };
    for (const key in fit) if (!fit[key]) return refuse(key, said(key));
    const number = (key) => lab.nearest(key, said(key), plain[key] ?? 0), steps = Math.round(number("steps"));
    const on = (key) => ({ on: true, off: false })[said(key)] ?? plain[key];
    const used = lab.filled({
      X: folded(folded(X, 2), T), y, u, scores: scores && folded(scores, T),
      W0: held(W0, 4) ? folded(W0, 2) : plain.W0, rule: lab.RULES.includes(said("rule")) ? said("rule") : plain.rule,
      step: number("step"), steps, momentum: number("momentum"), cap: number("cap"), joint, normalise: said("joint"),
      race: on("race"), float64: on("float64"), at: Math.min(steps, Math.round(number("at"))),
    });
    const parts = partsOf(used);
    for (const [key, value] of came)
      notes.push(...(Object.hasOwn(parts, key) ? lab.note(key, value, String(parts[key]) || "none") : [`${short(key)} is not a part of a set-up, and is left out; parts are ${Object.keys(parts).join(", ")}.`]));
    return used;
  };

  // A copy with every part, as the page keeps it: what the rule does not take is left out.
  lab.filled = function (setup) {
    const { X, y, u, W0, rule, step, momentum, cap, normalise, joint, steps, scores, race = true, float64 = false, at = 0 } = setup;
    const fit = scores && !joint && scores.flat().length === X.flat().length;
    return {
      X: X.map((tokens) => tokens.map((x) => [...x])), y: [...y], u: [...u],
      scores: fit ? scores.map((row) => [...row]) : null, W0: W0.map((row) => [...row]), rule, step, steps, joint: Boolean(joint),
      momentum: rule === "NGD" && !joint ? momentum ?? 0 : 0,
      cap: rule === "Polyak" && cap ? cap : 0,
      normalise: rule === "NGD" && joint ? normalise || "separate" : "separate", race, float64, at,
    };
  };

  // What the engine takes: no cap is an infinite one.
  lab.runnable = (setup) => ({ ...setup, cap: setup.cap || Infinity });
})((globalThis.Laboratory ??= {}));
