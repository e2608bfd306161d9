// Set-ups of the page: its presets, a set-up as an address, and as lines of Python.
(function (lab) {
  "use strict";
  const LARGEST = 1000; // of tokens, u, W0 and scores
  const zero = [[0, 0], [0, 0]];
  const plain = { W0: zero, rule: "NGD", step: 0.1, momentum: 0, joint: false, steps: 10000 };
  const half = Math.SQRT1_2;

  // name: what to look for, said after its title, a choice that it tells to change, and the set-up;
  // the menu stands in the markup
  lab.PRESETS = {
    "first-picture": {
      look: "with NGD the error falls like 1/t², and its slope settles at −2. Choose GD and see it creep.",
      told: "rule",
      setup: { ...plain, y: [1, 1, -1], u: [1, 0], X: [
        [[1.2, 0.7], [-0.5, 1.5], [0.2, -0.6]], [[-0.2, -1.6], [1.6, -0.5], [-0.7, 0.5]],
        [[-1.5, 1], [0.6, -1.2], [-0.4, -0.7]]] },
    },
    clash: {
      look: "token (2, 0) is wrong in sequence 1 and right in sequence 2. Sequence 1 is lost for good; halve u, and it is not.",
      setup: { ...plain, y: [1, -1], u: [0, 2], X: [[[2, 0], [0, 1]], [[2, 0], [1, 1]]] },
    },
    "score-trap": {
      look: "the second token scores 0.99, the first 1, and the second wins. Drag u down until the second scores less than 0.95.",
      setup: { ...plain, y: [1], u: [1, 1.19 / 0.97], X: [[[1, 0], [-0.2, 0.97], [0.1, -0.1]]] },
    },
    degenerate: {
      look: "the constraint of the third token touches without supporting, so the slope stays short of −2. Move that token left or right, and it is −2.",
      setup: { ...plain, y: [1], u: [1, 0], X: [[[1, 0], [0, 0], [0, -1]]], steps: 100000 },
    },
    "figure-8": {
      look: "the start attends to the wrong token of sequence 1, and gradient descent still finds its way.",
      setup: { ...plain, y: [1, -1], u: [1, -1], X: [[[1, 0], [0, 1]], [[0.2, 1], [1, -0.2]]],
        W0: [[0, 0], [4 * half, 4 * half]], rule: "GD", step: 1 },
    },
    both: {
      look: "from u = 0 both directions are learned at once, and the loss of NGD falls exponentially.",
      told: "normalise",
      setup: { ...plain, y: [1, -1], u: [1, 0], joint: true,
        X: [[[1.2, 0.3], [0.1, 0.9]], [[-1, 0.6], [0.1, -0.8]]] },
    },
  };

  // --- addresses -------------------------------------------------------------------------------

  lab.MOST_TOKENS = 5;
  lab.RULES = ["GD", "NGD", "Polyak"];
  const SPAN = `from -${LARGEST} to ${LARGEST}`; // with the sign that one types
  const LIMITS = { step: [1e-6, 100], steps: [10, 1e5], momentum: [0, 0.99], cap: [0, 1e9] };
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
  const partsOf = ({ X, y, u, W0, rule, step, momentum, cap, normalise, joint, steps, scores }) => ({
    X: numbers(X), y: numbers(y), u: numbers(u), W0: numbers(W0), rule, step: rule === "Polyak" ? "" : step, steps, momentum, cap,
    scores: numbers(scores ?? []), joint: joint ? normalise : "",
  });

  // #X=..&y=..&.., or the name of a preset that is unchanged
  lab.toHash = function (setup) {
    const own = JSON.stringify(lab.filled(setup));
    for (const [name, preset] of Object.entries(lab.PRESETS))
      if (JSON.stringify(lab.filled(preset.setup)) === own) return "#" + name;
    const parts = Object.entries(partsOf(lab.filled(setup))).filter(([, value]) => value);
    return "#" + parts.map((pair) => pair.join("=")).join("&");
  };

  // The set-up of an address, or null where its tokens, labels, u or scores cannot be used; what
  // else cannot be is replaced. The notes say what came, what is used and what is allowed.
  lab.fromHash = function (hash, notes = []) {
    let text = hash.replace(/^#/, "");
    try { text = decodeURIComponent(text); } catch { /* it stays as it is */ }
    if (Object.hasOwn(lab.PRESETS, text)) return lab.filled(lab.PRESETS[text].setup);
    const refuse = (name, came, key) => (notes.push(...lab.note(name, came, "nothing of this address", key), "The page keeps the set-up that it shows."), null);
    if (!text.includes("=")) return refuse("set-up", text, "preset");
    const came = new Map();
    for (const part of text.split("&")) {
      const [key, ...value] = part.split("=");
      if (came.has(key)) notes.push(`${short(key)} came twice: the last one is used.`);
      came.set(key, value.join("="));
    }
    const said = (key) => came.get(key) ?? "", list = (key) => said(key).split(",").map((each) => lab.nearest(key, each, NaN));
    const X = list("X"), y = list("y"), u = list("u"), W0 = list("W0"), T = X.length / y.length / 2;
    const joint = ["separate", "shared"].includes(said("joint")), scores = came.has("scores") && !joint && list("scores");
    const held = (values, count) => values.length === count && !values.some(Number.isNaN);
    const fit = {
      y: y.length <= 3 && y.every((label) => Math.abs(label) === 1),
      X: Number.isInteger(T) && T >= 2 && T <= lab.MOST_TOKENS && held(X, X.length),
      u: held(u, 2),
      scores: !scores || held(scores, X.length / 2),
    };
    for (const key in fit) if (!fit[key]) return refuse(key, said(key));
    const number = (key) => lab.nearest(key, said(key), plain[key] ?? 0);
    const used = lab.filled({
      X: folded(folded(X, 2), T), y, u, scores: scores && folded(scores, T),
      W0: held(W0, 4) ? folded(W0, 2) : zero, rule: lab.RULES.includes(said("rule")) ? said("rule") : plain.rule,
      step: number("step"), steps: Math.round(number("steps")), momentum: number("momentum"), cap: number("cap"),
      joint, normalise: said("joint"),
    });
    const parts = partsOf(used);
    for (const [key, value] of came)
      notes.push(...(Object.hasOwn(parts, key) ? lab.note(key, value, String(parts[key]) || "none") : [`${short(key)} is not a part of a set-up, and is left out; parts are ${Object.keys(parts).join(", ")}.`]));
    return used;
  };

  // A copy with every part, as the page keeps it: what the rule does not take is left out.
  lab.filled = function (setup) {
    const { X, y, u, W0, rule, step, momentum, cap, normalise, joint, steps, scores } = setup;
    const fit = scores && !joint && scores.flat().length === X.flat().length;
    return {
      X: X.map((tokens) => tokens.map((x) => [...x])), y: [...y], u: [...u],
      scores: fit ? scores.map((row) => [...row]) : null, W0: W0.map((row) => [...row]), rule, step, steps, joint: Boolean(joint),
      momentum: rule === "NGD" && !joint ? momentum ?? 0 : 0,
      cap: rule === "Polyak" && cap ? cap : 0,
      normalise: rule === "NGD" && joint ? normalise ?? "separate" : "separate",
    };
  };

  // Whether a set-up differs from a preset in no more than where its points lie, its steps and the
  // choice that its words tell to change; no token comes or goes.
  lab.asTold = function (name, setup) {
    const { told = "steps", setup: preset } = lab.PRESETS[name], count = ({ X }) => X.map((tokens) => tokens.length).join();
    const kept = (each) => JSON.stringify({ ...lab.filled(each), X: 0, u: 0, steps: 0, [told]: 0 });
    return kept(setup) === kept(preset) && count(setup) === count(preset);
  };

  // What the engine takes: no cap is an infinite one.
  lab.runnable = (setup) => ({ ...setup, cap: setup.cap || Infinity });

  const ruleText = ({ rule, step, momentum, cap, normalise }) => {
    if (rule === "Polyak") return `Polyak(${cap ? `max_step=${cap}` : ""})`;
    const more = momentum ? `, momentum=${momentum}` : normalise === "shared" ? ', normalise="shared"' : "";
    return `${rule}(${step}${more})`;
  };

  // Lines that reproduce the run with the library.
  lab.asPython = function (setup) {
    const list = (x) => `[${x.map((value) => (Number.isInteger(value) ? `${value}.0` : value)).join(", ")}]`;
    const rows = (values) => `[${values.map(list).join(", ")}]`;
    const started = setup.W0.flat().some((value) => value !== 0);
    const more = (started ? `, W0=${rows(setup.W0)}` : "") + (setup.joint ? ", train_u=True" : "");
    // scores of one's own: u reads them off the values, and W sees the tokens as keys
    const own = setup.scores && setup.scores.map((row, i) => rows(row.map((score) => [setup.y[i] * score, 0])));
    const data = own ? "values" : "X", u = own ? [1, 0] : setup.u;
    return [
      `from attnbias import ${setup.rule}, Dataset, train`,
      "",
      "X = [",
      ...setup.X.map((tokens) => `    ${rows(tokens)},`),
      "]",
      ...(own ? ["values = [", ...own.map((row) => `    ${row},`), "]", "first = [tokens[0] for tokens in X]"] : []),
      `data = Dataset(${data}, [${setup.y.join(", ")}], u=${list(u)}${own ? ", key=X, query=first" : ""})`,
      `trace = train(data, ${ruleText(setup)}, ${setup.steps}${more})`,
      "print(trace)",
    ].join("\n");
  };
})((globalThis.Laboratory ??= {}));
