// Whether a run has settled on a token that is not optimal.
//
// Proved: the region F < theta of one sequence of three tokens with three scores, which no step
// leaves where the angle at the third is obtuse (the theorem of the lock, of GD, NGD and Polyak
// with u fixed). Seen: at the last record a wrong token leads by a factor of e^3 at least, and its
// lead has not fallen from one record to the next since a tenth of the steps.
(function (lab) {
  "use strict";
  const LEAD = 3; // of the logit, and of the log of the attention

  // {order: [o, a, 3], gap, theta} of the region, or null where the theorem says nothing
  lab.lockRegion = function ({ X, rule, momentum, joint }, problem) {
    const scores = problem.scores[0];
    if (X.length > 1 || X[0].length !== 3 || joint || (rule === "NGD" && momentum)) return null;
    const order = [0, 1, 2].sort((a, b) => scores[b] - scores[a]);
    const [top, second, last] = order.map((token) => scores[token]);
    if (problem.tied || second === last) return null;
    const [best, middle, third] = order.map((token) => X[0][token]);
    const first = middle.map((value, j) => value - best[j]);
    const other = middle.map((value, j) => value - third[j]);
    const own = lab.dot(first, first), cross = lab.dot(first, other), least = lab.dot(other, other);
    if (!(cross > least)) return null;
    return { order, gap: (top - second) / (top - last), theta: (cross - least) / (own - cross) };
  };

  // F = phi_o / mean + (phi_o / phi_3) gap / (1 - gap), scores mapped to 1, 1 - gap, 0
  lab.lockLevel = function ({ order, gap }, logAttention) {
    const [best, second, third] = order.map((token) => logAttention[0][token]);
    const share = 1 / (1 + (1 - gap) * Math.exp(second - best));
    return share + (Math.exp(best - third) * gap) / (1 - gap);
  };

  // For each sequence what it ends on: {token, optimal, locked: "proved" | "seen" | ""}
  lab.endings = function (setup, problem, records) {
    const last = records[records.length - 1];
    const late = records.filter((each) => each.step >= last.step / 10);
    const region = lab.lockRegion(setup, problem);
    const proved = region && lab.lockLevel(region, last.logAttention) < region.theta;
    return problem.opt.map((opt, i) => {
      const lead = (record, token) => record.logAttention[i][token] - record.logAttention[i][opt];
      const logs = last.logAttention[i], token = logs.indexOf(Math.max(...logs));
      if (token === opt) return { token, optimal: true, locked: "" };
      const rises = late.every((each, k) => !k || lead(each, token) >= lead(late[k - 1], token));
      const seen = late.length > 2 && rises && lead(last, token) > LEAD;
      return { token, optimal: false, locked: proved ? "proved" : seen ? "seen" : "" };
    });
  };
})((globalThis.Laboratory ??= {}));
