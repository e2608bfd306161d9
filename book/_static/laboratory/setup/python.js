// A set-up as lines of Python that reproduce its run with the library.
(function (lab) {
  "use strict";
  const ruleText = ({ rule, step, momentum, cap, normalise }) => {
    if (rule === "Polyak") return `Polyak(${cap ? `max_step=${cap}` : ""})`;
    const more = momentum ? `, momentum=${momentum}` : normalise === "shared" ? ', normalise="shared"' : "";
    return `${rule}(${step}${more})`;
  };

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
