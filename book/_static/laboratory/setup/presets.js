// Eight set-ups that answer questions of the text.
//
// name: what to look for, said after its title, what to try, whether that was `done` ({setup, ends,
// problem}), what comes next, and the parts (`told`) that differ when it is followed; steps may
// differ too. Their titles stand in the menu of the markup.
(function (lab) {
  "use strict";
  const zero = [[0, 0], [0, 0]], half = Math.SQRT1_2;
  const plain = { W0: zero, rule: "NGD", step: 0.1, momentum: 0, joint: false, steps: 10000, race: true, float64: false, at: 0 };
  lab.PLAIN = plain;
  const three = [[[1.2, 0.7], [-0.5, 1.5], [0.2, -0.6]], [[-0.2, -1.6], [1.6, -0.5], [-0.7, 0.5]],
    [[-1.5, 1], [0.6, -1.2], [-0.4, -0.7]]];
  const right = ({ ends }) => ends.every(({ optimal, tokens }) => optimal && tokens.length === 1);
  const link = (name, words) => `<a href="#${name}">${words}</a>`;

  lab.PRESETS = {
    "first-picture": {
      look: "NGD's error falls like 1/t², and its slope settles at −2; so do those of momentum and Polyak. GD creeps.",
      todo: "choose GD, and look for the step at which its error is what NGD's is at step 100.",
      done: ({ setup }) => setup.rule === "GD",
      next: `GD's error is not so small within a hundred thousand steps. Next: ${link("plain-float64", "what does a plain loop make of this?")}`,
      told: "rule",
      setup: { ...plain, y: [1, 1, -1], u: [1, 0], X: three },
    },
    "plain-float64": {
      look: "The crosses are the same run by a plain softmax: near step 370, where the softmax is stored as 1, it turns away, and no NaN warns.",
      todo: "choose GD, whose steps are as small as its gradient.",
      done: ({ setup }) => setup.rule === "GD",
      next: `GD is not harmed, as it does not get that far. Next: ${link("clash", "can training fail in exact arithmetic, too?")}`,
      told: "rule",
      setup: { ...plain, y: [1, 1, -1], u: [1, 0], X: three, steps: 1000, race: false, float64: true },
    },
    clash: {
      look: "Token (2, 0) is wrong in sequence 1 and right in sequence 2. Sequence 1 is lost for good, whatever the rule.",
      todo: "drag u down to half of its length.",
      done: (end) => Math.hypot(...end.setup.u) < 1.1 && right(end),
      told: "u",
      next: `with half the score gap both sequences arrive. Next: ${link("score-trap", "one sequence can fail as well.")}`,
      setup: { ...plain, y: [1, -1], u: [0, 2], X: [[[2, 0], [0, 1]], [[2, 0], [1, 1]]] },
    },
    "score-trap": {
      look: "The second token scores 0.99, the first 1, and the second wins.",
      todo: "drag u down until the second token scores less than 0.95.",
      done: (end) => end.problem.scores[0][1] < 0.95 && right(end),
      told: "u",
      next: `with a larger gap the best token wins. Next: ${link("lock-challenge", "how large a gap can you make lock?")}`,
      setup: { ...plain, y: [1], u: [1, 1.19 / 0.97], X: [[[1, 0], [-0.2, 0.97], [0.1, -0.1]]] },
    },
    "lock-challenge": {
      look: "The second token is behind by 8% of the range of scores, and wins. The line below the pictures says up to which gap these tokens lock.",
      todo: "move tokens and u so that a gap of 30% locks.",
      done: ({ problem, setup, ends }) => ends[0].locked === "proved" && lab.lockRegion(setup, problem).gap >= 0.3,
      told: "X u",
      next: `no gap of 50% locks, but each below it does for some tokens. Next: ${link("degenerate", "is the rate of those that arrive always 1/t²?")}`,
      setup: { ...plain, y: [1], u: [1, 2], X: [[[1.5, 0], [-1, 1.2], [0.6, -0.2]]] },
    },
    degenerate: {
      look: "The constraint of the third token touches without supporting, so the slope stays short of −2.",
      todo: "move that token left or right.",
      done: ({ problem }) => !problem.tied && problem.svm.feasible && problem.rows.every((_, k) => lab.kindOf(problem, k) !== "touching"),
      told: "X",
      next: `any tilt brings −2 back, after a time of about one over the tilt. Next: ${link("figure-8", "what if the start is bad?")}`,
      setup: { ...plain, y: [1], u: [1, 0], X: [[[1, 0], [0, 0], [0, -1]]], steps: 100000 },
    },
    "figure-8": {
      look: "The start attends to the wrong token of sequence 1, and gradient descent still finds its way.",
      todo: "type 12 in place of both 2.83 of the start W<sub>0</sub>, under Numbers.",
      done: ({ setup }) => setup.W0[1].every((each) => each === 12),
      next: `the attention of GD does not come back in ten thousand steps, and that of NGD in a dozen. Next: ${link("both", "and if u is trained too?")}`,
      told: "W0",
      setup: { ...plain, y: [1, -1], u: [1, -1], X: [[[1, 0], [0, 1]], [[0.2, 1], [1, -0.2]]],
        W0: [[0, 0], [4 * half, 4 * half]], rule: "GD", step: 1 },
    },
    both: {
      look: "From u = 0 both directions are learned at once, and the loss of NGD falls exponentially.",
      todo: "choose joint NGD, which divides both steps by one norm.",
      done: ({ setup }) => setup.normalise === "shared",
      next: `that is all. Now a set-up of your own: drag any token, or ${link("first-picture", "begin again.")}`,
      told: "normalise",
      setup: { ...plain, y: [1, -1], u: [1, 0], joint: true,
        X: [[[1.2, 0.3], [0.1, 0.9]], [[-1, 0.6], [0.1, -0.8]]] },
    },
  };

  // Whether a set-up differs from a preset in no more than its steps, what is shown of it and what
  // its words tell to change; no token comes or goes.
  lab.asTold = function (name, setup) {
    const { told, setup: preset } = lab.PRESETS[name], free = Object.fromEntries(told.split(" ").map((part) => [part, 0])), count = ({ X }) => X.map((tokens) => tokens.length).join();
    const kept = (each) => JSON.stringify({ ...lab.filled(each), steps: 0, race: 0, float64: 0, at: 0, ...free });
    return kept(setup) === kept(preset) && count(setup) === count(preset);
  };
})((globalThis.Laboratory ??= {}));
