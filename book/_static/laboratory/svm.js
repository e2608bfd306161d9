// The hard-margin SVM of a few rows: the least w with <z_k, w> >= 1, by an active set.
//
// Lawson and Hanson's least distance programming: the dual weights solve a non-negative least
// squares problem, whose residual is zero just where no w is feasible. A row enters only where the
// rows in use do not explain it already, so dependent rows and constraints that touch without a
// weight of their own do no harm. The weights are then refined on the rows themselves.
(function (lab) {
  "use strict";
  const FEASIBLE = 1e-13; // squared residual under which float64 has no feasible w
  const ENTERS = 1e-12; // least gain of a row that enters
  const DEPENDENT = 1e-13; // squared distance of a unit row from others that counts as none
  const ROUNDING = 1e-9; // share of |z||w| by which a margin may miss 1

  const dot = (a, b) => {
    let total = 0;
    for (let k = 0; k < a.length; k++) total += a[k] * b[k];
    return total;
  };

  // sum_k weights_k rows_k
  const combine = (rows, weights) => {
    const total = new Float64Array(rows[0].length);
    rows.forEach((row, k) => {
      for (let j = 0; j < total.length; j++) total[j] += weights[k] * row[j];
    });
    return total;
  };

  // x with A x = b for the symmetric positive A by Cholesky, or null where A is singular.
  function solve(A, b) {
    const n = b.length;
    const L = A.map((row) => Float64Array.from(row));
    const x = Float64Array.from(b);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j <= i; j++) {
        let rest = L[i][j];
        for (let k = 0; k < j; k++) rest -= L[i][k] * L[j][k];
        if (i > j) L[i][j] = rest / L[j][j];
        else if (rest > DEPENDENT * A[i][i]) L[i][i] = Math.sqrt(rest);
        else return null;
      }
    }
    for (let i = 0; i < n; i++) {
      for (let k = 0; k < i; k++) x[i] -= L[i][k] * x[k];
      x[i] /= L[i][i];
    }
    for (let i = n - 1; i >= 0; i--) {
      for (let k = i + 1; k < n; k++) x[i] -= L[k][i] * x[k];
      x[i] /= L[i][i];
    }
    return x;
  }

  const part = (H, used) => used.map((i) => used.map((j) => H[i][j]));

  // Weights a >= 0 that minimise |Z'a|^2 + (1 - b'a)^2, and the rows in use.
  function leastDistance(H, b) {
    const a = new Float64Array(b.length);
    const refused = new Set();
    let used = [];
    for (let round = 0; round < 30 * b.length; round++) {
      let entering = -1, most = ENTERS;
      for (let k = 0; k < b.length; k++) {
        const gain = b[k] - dot(H[k], a);
        if (gain > most && !used.includes(k) && !refused.has(k)) [entering, most] = [k, gain];
      }
      if (entering < 0) break;
      used.push(entering);
      for (;;) {
        const best = solve(part(H, used), used.map((k) => b[k]));
        if (!best) {
          refused.add(entering);
          used = used.filter((k) => k !== entering);
          break;
        }
        let share = 1, leaving = -1;
        used.forEach((k, at) => {
          const ratio = best[at] > 0 ? 1 : a[k] / (a[k] - best[at]);
          if (ratio < share) [share, leaving] = [ratio, k];
        });
        used.forEach((k, at) => { a[k] += share * (best[at] - a[k]); });
        if (leaving < 0) break;
        if (leaving === entering) refused.add(entering); // rounding alone let it in
        a[leaving] = 0;
        used = used.filter((k) => a[k] > 0);
      }
    }
    return { a, used };
  }

  // {feasible, weights, norm, dual, margins, active, support} of rows, arrays of one length.
  // active: the margin is 1; support: the constraint pushes, its dual weight is positive.
  lab.svm = function (rows) {
    const sizes = rows.map((row) => Math.sqrt(dot(row, row)));
    if (!sizes.every((size) => size > 0)) return { feasible: false };
    const unit = rows.map((row, k) => row.map((value) => value / sizes[k]));
    const least = Math.min(...sizes);
    const b = sizes.map((size) => least / size);
    const K = unit.map((row) => unit.map((other) => dot(row, other)));
    const { a, used } = leastDistance(K.map((row, i) => row.map((k, j) => k + b[i] * b[j])), b);
    if (!(1 - dot(a, b) > FEASIBLE) || !used.length) return { feasible: false };
    const chosen = used.map((k) => rows[k]), gram = part(K, used), scale = used.map((k) => sizes[k]);
    let dual = new Float64Array(used.length);
    let weights = new Float64Array(rows[0].length);
    for (let round = 0; round < 3; round++) {
      const change = solve(gram, chosen.map((row, at) => (1 - dot(row, weights)) / scale[at]));
      if (!change) return { feasible: false };
      dual = dual.map((value, at) => value + change[at] / scale[at]);
      weights = combine(chosen, dual);
    }
    const norm = Math.sqrt(dot(weights, weights));
    const margins = rows.map((row) => dot(row, weights));
    const doubt = sizes.map((size) => ROUNDING * Math.max(1, size * norm));
    if (!margins.every((margin, k) => margin > 1 - doubt[k])) return { feasible: false };
    const all = new Float64Array(rows.length);
    used.forEach((k, at) => { all[k] = Math.max(0, dual[at]); });
    return {
      feasible: true, weights, norm, dual: all, margins,
      active: margins.map((margin, k) => margin < 1 + doubt[k]),
      support: rows.map((_, k) => all[k] * sizes[k] > ROUNDING * norm),
    };
  };
  Object.assign(lab, { dot, combine });
})((globalThis.Laboratory ??= {}));
