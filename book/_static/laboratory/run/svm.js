// The hard-margin SVM of a few rows: the least w with <z_k, w> >= 1, by an active set.
//
// Goldfarb and Idnani's dual method on rows of length 1: w starts at 0, and the row that it fails
// most enters, for which others may leave. What a row has in common with those in use comes from
// an orthogonal basis of them, not from their products: so rows that all but cancel, whose w is
// long, are told from those that do. A row that w does not fail stays out, so dependent rows and
// constraints that touch without a weight of their own do no harm.
(function (lab) {
  "use strict";
  const MISSES = 1e-12, TOUCHES = 1e-9; // a margin is below 1 if by more, and is 1 if it misses it by less
  const NOISE = 2 ** -50; // of <z, w>, relative to |z||w|, and of a row left by others: four roundings

  const dot = (a, b) => {
    let total = 0;
    for (let k = 0; k < a.length; k++) total += a[k] * b[k];
    return total;
  };

  // to + factor * row, in place
  const add = (to, factor, row) => {
    for (let j = 0; j < to.length; j++) to[j] += factor * row[j];
    return to;
  };

  // What is left of a row across orthonormal ones, and its share along each.
  function across(row, basis) {
    const rest = Float64Array.from(row), along = new Float64Array(basis.length);
    for (let round = 0; round < 2; round++)
      basis.forEach((unit, k) => {
        const share = dot(unit, rest);
        along[k] += share;
        add(rest, -share, unit);
      });
    return { rest, along };
  }

  // An orthonormal basis of independent rows, and their shares along it: rows = R' basis.
  function factor(rows) {
    const basis = [], R = [];
    for (const row of rows) {
      const { rest, along } = across(row, basis), size = Math.hypot(...rest);
      R.push([...along, size]);
      basis.push(rest.map((value) => value / size));
    }
    return { basis, R };
  }

  // x with sum_k x_k rows_k = sum_k y_k basis_k
  function back(R, y) {
    const x = Float64Array.from(y);
    for (let k = x.length - 1; k >= 0; k--) {
      x[k] /= R[k][k];
      for (let j = 0; j < k; j++) x[j] -= R[k][j] * x[k];
    }
    return x;
  }

  // The least w with <row_k, w> = b_k, and the weights a of the rows of which it is the sum.
  function least(rows, b) {
    const { basis, R } = factor(rows);
    const w = new Float64Array(rows[0].length), a = new Float64Array(rows.length);
    for (let round = 0; round < 3; round++) {
      const y = rows.map((row, k) => b[k] - dot(row, w));
      for (let k = 0; k < y.length; k++) {
        for (let j = 0; j < k; j++) y[k] -= R[k][j] * y[j];
        y[k] /= R[k][k];
      }
      basis.forEach((unit, k) => add(w, y[k], unit));
      add(a, 1, back(R, y));
    }
    return { w, a };
  }

  // The weights a of rows of length 1 whose sum w is the least with <row_k, w> >= b_k, or null.
  function leastDistance(rows, b) {
    const a = new Float64Array(b.length);
    let used = [], w = new Float64Array(rows[0].length);
    for (let round = 0; round < 30 * b.length; round++) {
      const long = Math.hypot(...w);
      let entering = -1, most = 0;
      rows.forEach((row, k) => {
        const missed = b[k] - dot(row, w) - Math.max(MISSES * b[k], NOISE * long);
        if (missed > most && !used.includes(k)) [entering, most] = [k, missed];
      });
      if (entering < 0) return { w, a };
      for (;;) {
        const row = rows[entering], { basis, R } = factor(used.map((k) => rows[k]));
        const { rest, along } = across(row, basis), gives = back(R, along), size = dot(rest, rest);
        const total = gives.reduce((sum, value) => sum + Math.abs(value), 1);
        let step = Math.sqrt(size) > NOISE * total ? (b[entering] - dot(row, w)) / size : Infinity, leaving = -1;
        used.forEach((k, at) => {
          if (gives[at] > 0 && a[k] / gives[at] < step) [step, leaving] = [a[k] / gives[at], k];
        });
        if (step === Infinity) return null; // the rows in use and this one cancel
        used.forEach((k, at) => { a[k] -= step * gives[at]; });
        a[entering] += step;
        if (size > 0) add(w, step, rest);
        if (leaving < 0) break;
        a[leaving] = 0;
        used = used.filter((k) => k !== leaving);
      }
      used.push(entering);
      const found = least(used.map((k) => rows[k]), used.map((k) => b[k]));
      w = found.w;
      used.forEach((k, at) => { a[k] = Math.max(0, found.a[at]); });
    }
    return null;
  }

  // {feasible, weights, norm, dual, margins, active, support} of rows, arrays of one length.
  // active: the margin is 1; support: the constraint pushes, its dual weight is positive.
  lab.svm = function (rows) {
    const sizes = rows.map((row) => Math.hypot(...row));
    if (!sizes.every((size) => size > 0)) return { feasible: false };
    const unit = rows.map((row, k) => Float64Array.from(row, (value) => value / sizes[k]));
    const found = leastDistance(unit, sizes.map((size) => 1 / size));
    if (!found) return { feasible: false };
    const { w: weights, a } = found, norm = Math.hypot(...weights);
    const margins = rows.map((row) => dot(row, weights));
    return {
      feasible: true, weights, norm, dual: a.map((value, k) => value / sizes[k]), margins,
      active: margins.map((margin, k) => margin - 1 < Math.max(TOUCHES, NOISE * sizes[k] * norm)),
      support: rows.map((_, k) => a[k] > TOUCHES * norm),
    };
  };
  Object.assign(lab, { dot });
})((globalThis.Laboratory ??= {}));
