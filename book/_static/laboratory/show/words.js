// The laboratory's words on where a run ends: HTML from a set-up, its problem and its records.
(function (lab) {
  "use strict";

  const joined = (tokens) => {
    const names = tokens.map((t) => t + 1), end = names.pop();
    return names.length ? `tokens ${names.join(", ")} and ${end}` : `token ${end}`;
  };

  // The tokens that share a largest score, and what would part them.
  lab.tieWords = function (setup, problem) {
    const said = problem.scores.map((scores, i) => {
      const best = [...scores.keys()].filter((t) => scores[t] === Math.max(...scores));
      const apart = best.some((t) => String(setup.X[i][t]) !== String(setup.X[i][best[0]]));
      const how = setup.scores ? "type another score for one of them" : setup.u.every((value) => !value) ? "move u"
        : apart ? "move u or one of them" : "move one of them";
      return best.length > 1 ? `<li>Sequence ${i + 1}: ${joined(best)} share its largest score, so that none is optimal: ${how}.</li>` : "";
    });
    return `<ul>${said.join("")}</ul>`;
  };

  // Where each sequence ends and why, what supports W_mm, and what ended the run.
  lab.endWords = function (setup, problem, records, status) {
    const { svm } = problem;
    const said = lab.endings(setup, problem, records, status).map(({ token, tokens, share, locked, draws, since }, i) => {
      const opt = problem.opt[i], even = tokens.length > 1;
      const each = Math.round(100 * share), rest = 1 - tokens.length * share;
      const where = `Sequence ${i + 1}: attention is ` + (share > 0.95 ? `on ${joined(tokens)}`
        : even && rest < 0.01 ? `split evenly between ${joined(tokens)}` : `most on ${joined(tokens)} (${each}%${even ? " each" : ""})`);
      const how = { proved: `It has locked: by the theorem of the lock every later step draws attention to token ${draws + 1}.`,
        ended: "There it stays.", still: "There it stands still in float64.",
        seen: `It looks locked: the lead of token ${token + 1} has only grown since step ${lab.number(since)}.` }[locked];
      if (tokens.includes(opt)) return `<li>${where}${even ? "" : ", its optimal one"}.${how ? ` ${how}` : ""}</li>`;
      return `<li><span class="wrong">${where}, not on token ${opt + 1}.</span> ${how ?? "It may still turn."}</li>`;
    });
    const kinds = { support: [], touching: [], idle: [] };
    problem.rows.forEach((row, k) => {
      kinds[lab.kindOf(problem, k)].push(`${row.sequence + 1}.${problem.opt[row.sequence] + 1} over ${row.sequence + 1}.${row.token + 1}`);
    });
    const list = (words, kind) => (kinds[kind].length ? `${words} ${kinds[kind].join(", ")}. ` : "");
    const rests = svm.feasible ? list("Constraints that support W<sub>mm</sub>:", "support")
      + list("Constraints that touch without support:", "touching") + list("Idle constraints:", "idle")
      : "As far as float64 can tell, no W gives every optimal token the larger logit: W<sub>mm</sub> does not exist.";
    if (status !== "running") said.push(`<li>The run ended at step ${lab.number(records[records.length - 1].step)}: ${lab.endedBy(status)}.</li>`);
    return `<p>At the end of the run:</p><ul>${said.join("")}</ul><p>${rests.trim()}</p>`;
  };

  // Where the naive run leaves the exact one, and what happens there.
  lab.floatWords = function (race, problem) {
    const naive = race.run("naive"), left = lab.leaves(race.followed, naive), wall = lab.wallOf(race.followed, problem);
    const name = lab.nameOf(race.followed.name, race.followed.run), at = (step) => `step ${lab.number(step)}`;
    const there = wall === undefined ? "At no recorded step is the attention to other tokens below 2<sup>−53</sup>, where a softmax is stored as exactly 1."
      : `From ${at(wall)} on the attention to other tokens is below 2<sup>−53</sup>, so the softmax is stored as exactly 1 and no longer pulls the optimal tokens.`;
    const ended = naive.run.status === "running" ? "" : ` The plain run ended at ${at(naive.run.step)}: ${lab.endedBy(naive.run.status)}.`;
    const how = left ? `By a plain softmax ${name} is off by a tenth from ${at(left.step)} on, and at the end by a factor of ${lab.number(left.factor)}.`
      : `By a plain softmax ${name} is the same to a tenth at every recorded step.`;
    return `<p>${how} ${there}${ended} <a href="paper/float64_wall.html">The float64 wall</a> tells why.</p>`;
  };
  lab.endedBy = (status) => (status === "diverged" ? "a step too long for floats" : "the gradient is zero in float64");
})((globalThis.Laboratory ??= {}));
