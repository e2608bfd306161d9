// Where attention is at the end of a run, and whether it has settled on a token that is not optimal.
//
// Proved: the region F < theta of one sequence of three tokens with three scores, which no step
// leaves where the angle at the third is obtuse (the theorem of the lock, of GD, NGD and Polyak
// with u fixed). Seen: at the last record a wrong token leads by a factor of e^3 at least, and since
// a tenth of the steps its lead has risen by more than rounding, and never fallen by more.
(function (lab) {
  "use strict";
  const LEAD = 3; // of the logit, and of the log of the attention
  const ROUNDING = 2 ** -48; // of a logit, relative to |W| and its row: 16 units in the last place

  // {order: [o, a, 3], gap, theta and the products v_o, v, v_3} of the region, or null where the theorem says nothing
  lab.lockRegion = function ({ X, rule, momentum, joint }, problem) {
    const scores = problem.scores[0];
    if (X.length > 1 || X[0].length !== 3 || joint || (rule === "NGD" && momentum)) return null;
    const order = [0, 1, 2].sort((a, b) => scores[b] - scores[a]);
    const [top, second, last] = order.map((token) => scores[token]);
    if (problem.tied || second === last || X[0][0].every((value) => value === 0)) return null;
    const [best, middle, third] = order.map((token) => X[0][token]);
    const first = middle.map((value, j) => value - best[j]);
    const other = middle.map((value, j) => value - third[j]);
    const own = lab.dot(first, first), cross = lab.dot(first, other), least = lab.dot(other, other);
    if (!(cross > least)) return null;
    return { order, own, cross, least, gap: (top - second) / (top - last), theta: (cross - least) / (own - cross) };
  };

  // F = phi_o / mean + (phi_o / phi_3) gap / (1 - gap), scores mapped to 1, 1 - gap, 0
  lab.lockLevel = function ({ order, gap }, logAttention) {
    const [best, second, third] = order.map((token) => logAttention[0][token]);
    const share = 1 / (1 + (1 - gap) * Math.exp(second - best));
    return share + (Math.exp(best - third) * gap) / (1 - gap);
  };

  // For each sequence what it ends on: {token, tokens that share the lead, share, optimal, since} and
  // locked, "proved" (on the token `draws`) | "ended" | "still" | "seen" since a step | ""
  lab.endings = function (setup, problem, records, status = "running") {
    const last = records[records.length - 1];
    const late = records.filter((each) => each.step >= last.step / 10), since = late[0].step;
    const region = lab.lockRegion(setup, problem);
    const proved = region && lab.lockLevel(region, last.logAttention) < region.theta;
    return problem.opt.map((opt, i) => {
      const logs = last.logAttention[i], most = Math.max(...logs), token = logs.indexOf(most);
      const percent = (log) => Math.round(100 * Math.exp(log)); // as it is said
      const tokens = [...logs.keys()].filter((t) => percent(logs[t]) === percent(most));
      const where = { token, tokens, share: Math.exp(most), optimal: token === opt, since };
      if (proved) return { ...where, locked: "proved", draws: region.order[1] };
      if (tokens.includes(opt)) return { ...where, locked: "" };
      if (status !== "running") return { ...where, locked: "ended" };
      const rows = problem.rows.filter(({ sequence }) => sequence === i);
      const noise = ROUNDING * (1 + last.norm * Math.max(...rows.map(({ z }) => Math.hypot(...z))));
      const leads = late.map((record) => record.logAttention[i][token] - record.logAttention[i][opt]);
      const rises = leads.slice(1).map((lead, k) => lead - leads[k]);
      const rise = leads[leads.length - 1] - leads[0];
      if (rises.length > 1 && Math.max(...leads) - Math.min(...leads) <= noise) return { ...where, locked: "still" };
      const seen = rises.length > 1 && rise > noise && rises.every((each) => each >= -noise);
      return { ...where, locked: seen && leads[leads.length - 1] > LEAD ? "seen" : "" };
    });
  };
})((globalThis.Laboratory ??= {}));
