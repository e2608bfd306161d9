// Set-ups of the page: its presets, a set-up as an address, and as lines of Python.
(function (lab) {
  "use strict";
  const LARGEST = 1000; // of all numbers that a reader gives
  const zero = [[0, 0], [0, 0]];
  const plain = { W0: zero, rule: "NGD", step: 0.1, momentum: 0, joint: false, steps: 10000 };
  const half = Math.SQRT1_2;

  // name: what to look for, and the set-up; the menu stands in the markup
  lab.PRESETS = {
    "first-picture": {
      look: "The error falls like 1/t²: its slope settles at −2. Choose GD and see it creep.",
      setup: { ...plain, y: [1, 1, -1], u: [1, 0], X: [
        [[1.2, 0.7], [-0.5, 1.5], [0.2, -0.6]], [[-0.2, -1.6], [1.6, -0.5], [-0.7, 0.5]],
        [[-1.5, 1], [0.6, -1.2], [-0.4, -0.7]]] },
    },
    clash: {
      look: "Token (2, 0) is wrong in sequence 1 and right in sequence 2. Sequence 1 is lost for good; halve u, and it is not.",
      setup: { ...plain, y: [1, -1], u: [0, 2], X: [[[2, 0], [0, 1]], [[2, 0], [1, 1]]] },
    },
    "score-trap": {
      look: "The second token scores 0.99, the first 1, and the second wins. Drag u down until the second scores less than 0.95.",
      setup: { ...plain, y: [1], u: [1, 1.19 / 0.97], X: [[[1, 0], [-0.2, 0.97], [0.1, -0.1]]] },
    },
    degenerate: {
      look: "The constraint of the third token touches without supporting: the slope stays short of −2. Move that token left or right, and it is −2.",
      setup: { ...plain, y: [1], u: [1, 0], X: [[[1, 0], [0, 0], [0, -1]]], steps: 100000 },
    },
    "figure-8": {
      look: "The start attends to the wrong token of sequence 1, and gradient descent still finds its way.",
      setup: { ...plain, y: [1, -1], u: [1, -1], X: [[[1, 0], [0, 1]], [[0.2, 1], [1, -0.2]]],
        W0: [[0, 0], [4 * half, 4 * half]], rule: "GD", step: 1 },
    },
    both: {
      look: "From u = 0 both directions are learned at once, and the loss of NGD falls exponentially.",
      setup: { ...plain, y: [1, -1], u: [1, 0], joint: true,
        X: [[[1.2, 0.3], [0.1, 0.9]], [[-1, 0.6], [0.1, -0.8]]] },
    },
  };

  const numbers = (values) => values.flat(3).join(",");
  const folded = (values, size) =>
    Array.from({ length: values.length / size }, (_, k) => values.slice(k * size, (k + 1) * size));

  // #n=2&X=..&y=..&.., or the name of a preset that is unchanged
  lab.toHash = function (setup) {
    const own = JSON.stringify(lab.filled(setup));
    for (const [name, preset] of Object.entries(lab.PRESETS))
      if (JSON.stringify(lab.filled(preset.setup)) === own) return "#" + name;
    const { X, y, u, W0, rule, step, momentum, cap, normalise, joint, steps, scores } = setup;
    const parts = { X: numbers(X), y: numbers(y), u: numbers(u), W0: numbers(W0), rule, step, steps };
    if (momentum) parts.momentum = momentum;
    if (cap) parts.cap = cap;
    if (scores) parts.scores = numbers(scores);
    if (joint) parts.joint = normalise ?? "separate";
    return "#" + Object.entries(parts).map((pair) => pair.join("=")).join("&");
  };

  // The set-up of an address, or null where it holds none that can be run.
  lab.fromHash = function (hash) {
    const name = hash.replace(/^#/, "").replaceAll("%2C", ",");
    if (Object.hasOwn(lab.PRESETS, name)) return lab.filled(lab.PRESETS[name].setup);
    const parts = new Map(name.split("&").map((part) => part.split("=")));
    const list = (key) => (parts.get(key) ?? "").split(",").map(Number);
    const y = list("y"), tokens = folded(list("X"), 2), u = list("u"), W0 = list("W0");
    const T = tokens.length / y.length, joint = parts.get("joint");
    const all = [...y, ...tokens.flat(), ...u, ...W0];
    const held = (value) => Math.abs(value) <= LARGEST; // NaN is not
    const fits = Number.isInteger(T) && T >= 2 && T <= lab.MOST_TOKENS && y.length <= 3;
    if (!fits || u.length !== 2 || W0.length !== 4 || !all.every(held)) return null;
    if (!y.every((label) => Math.abs(label) === 1) || !lab.RULES.includes(parts.get("rule"))) return null;
    const number = (key, low, high, other) => {
      const value = Number(parts.get(key));
      return value > low && value <= high ? value : other;
    };
    const scores = parts.has("scores") && !joint ? list("scores") : null;
    if (scores && !(scores.length === tokens.length && scores.every(held))) return null;
    return lab.filled({
      scores: scores && folded(scores, T), X: folded(tokens, T), y, u, W0: folded(W0, 2), rule: parts.get("rule"),
      step: number("step", 0, 100, 0.1), momentum: number("momentum", 0, 0.99, 0),
      cap: number("cap", 0, 1e9, 0), joint: Boolean(joint),
      normalise: joint === "shared" ? "shared" : "separate",
      steps: Math.round(number("steps", 9, 1e5, 10000)),
    });
  };
  lab.LARGEST = LARGEST;
  lab.MOST_TOKENS = 5;
  lab.RULES = ["GD", "NGD", "Polyak"];

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
