// Full-batch training of one layer of attention in the log domain, as `attnbias.train` does it.
//
// Weights of the gradient are signed logarithms taken relative to the largest, so that a step has
// a direction however small the gradient; sums of steps keep what rounding leaves of them. The
// loss is exponential, the mean of exp(-y u'X' softmax(X W x_1)).
//
// A set-up is what an address or a page can hold: X (n sequences of T tokens of d numbers),
// y, u, and optionally W0, u0, scores, rule "GD" | "NGD" | "Polyak", step, momentum, cap,
// joint, normalise "separate" | "shared", decay [p, q].
(function (lab) {
  "use strict";
  const { dot } = lab;
  const LONGEST = 1e140; // a longer step would leave the floats
  const EPS = 2 ** -52;

  function logSum(logs) {
    const top = Math.max(...logs);
    if (!Number.isFinite(top)) return top;
    let total = 0;
    for (const each of logs) total += Math.exp(each - top);
    return top + Math.log(total);
  }

  // log(1 + exp x) and log(exp(S) - 1) without cancellation
  const softplus = (x) => (x > 700 ? x : Math.log1p(Math.exp(x)));
  const logExpm1 = (logS) => {
    const S = Math.exp(logS);
    return S < 1e-8 ? logS + S / 2 : S > 40 ? S : Math.log(Math.expm1(S));
  };

  // Scores meant equal are made so: a spread of rounding would decide a run that locks.
  function equalised(scores, tolerance) {
    const order = scores.map((_, k) => k).sort((a, b) => scores[a] - scores[b]);
    const out = scores.slice();
    for (let lo = 0, hi; lo < order.length; lo = hi) {
      for (hi = lo + 1; hi < order.length; hi++)
        if (scores[order[hi]] - scores[order[hi - 1]] > tolerance) break;
      if (hi - lo < 2) continue;
      const run = order.slice(lo, hi);
      const mean = run.reduce((sum, k) => sum + scores[k], 0) / run.length;
      for (const k of run) out[k] = mean;
    }
    return out;
  }

  // (n, T) scores y u'x, or those that the set-up gives
  function scoresOf({ X, y, u, scores }) {
    if (scores) return scores;
    const size = (x) => Math.sqrt(dot(x, x));
    return X.map((tokens, i) => {
      const largest = Math.max(...tokens.map(size));
      const tolerance = 4 * EPS * Math.sqrt(u.length) * largest * size(u);
      return equalised(tokens.map((x) => y[i] * dot(x, u)), tolerance);
    });
  }

  // What the tokens decide: optimal tokens, one gap row for each other token, and both SVMs.
  lab.prepare = function (setup) {
    const { y } = setup, X = setup.X.map((tokens) => tokens.map((x) => Float64Array.from(x)));
    const scores = scoresOf({ ...setup, X });
    const tops = scores.map((each) => Math.max(...each));
    if (tops.some((top, i) => scores[i].filter((score) => score === top).length > 1))
      return { tied: true, scores };
    const opt = scores.map((each, i) => each.indexOf(tops[i]));
    const rows = [], sequences = [];
    X.forEach((tokens, i) => {
      const first = rows.length, best = tokens[opt[i]];
      tokens.forEach((x, token) => {
        if (token === opt[i]) return;
        const difference = best.map((value, j) => value - x[j]);
        const z = new Float64Array(x.length ** 2);
        for (let j = 0; j < z.length; j++)
          z[j] = difference[Math.floor(j / x.length)] * tokens[0][j % x.length];
        rows.push({ sequence: i, token, difference, z, delta: tops[i] - scores[i][token] });
      });
      sequences.push({ first, end: rows.length, query: tokens[0], label: y[i], best, top: tops[i] });
    });
    const uRows = sequences.map(({ best, label }) => best.map((value) => label * value));
    return { tied: false, scores, opt, rows, sequences, d: X[0][0].length,
      svm: lab.svm(rows.map((row) => row.z)), uSvm: lab.svm(uRows) };
  };

  // A vector that adds up steps and keeps their rounding (two-sum), with a velocity.
  class Iterate {
    constructor(start, target) {
      this.x = Float64Array.from(start);
      this.low = new Float64Array(start.length);
      this.speed = new Float64Array(start.length);
      this.gradient = new Float64Array(start.length);
      this.target = target.feasible ? target.weights.map((value) => value / target.norm) : null;
    }

    move(factor, momentum) {
      const { x, low, speed, gradient } = this;
      for (let k = 0; k < x.length; k++) {
        speed[k] = momentum * speed[k] + factor * gradient[k];
        const step = speed[k] + low[k], next = x[k] + step, part = next - x[k];
        low[k] = x[k] - (next - part) + (step - part);
        x[k] = next;
      }
    }

    // The norm, and 1 - cosine with the target from the part across it, which keeps its digits.
    measure() {
      const { x, target } = this;
      const norm = Math.hypot(...x);
      if (!target || !norm) return { norm, error: NaN };
      const along = dot(x, target);
      let across = 0;
      for (let k = 0; k < x.length; k++) across += (x[k] - along * target[k]) ** 2;
      return { norm, error: along > 0 ? across / (norm * (norm + along)) : 1 - along / norm };
    }
  }

  const logNorm = (shift, vector) => {
    const norm2 = dot(vector, vector);
    return norm2 > 0 ? shift + Math.log(norm2) / 2 : -Infinity;
  };

  // One run on its way: `advance(step)` goes there, `record()` says where it stands.
  class Run {
    constructor(setup, problem = lab.prepare(setup)) {
      const { d, rows, sequences } = problem;
      const { rule, step, momentum = 0, cap = Infinity, normalise, decay = [0, 0] } = setup;
      this.problem = problem;
      this.joint = Boolean(setup.joint);
      // log eta = logScale + powers . (log(L - L*), log |grad L|), at most the cap
      const powers = { GD: [0, 0], NGD: [0, -1], Polyak: [1, -2] }[rule];
      this.law = { powers, momentum, decay, cap: Math.log(cap),
        logScale: rule === "Polyak" ? -Math.log(2) : Math.log(step),
        common: rule !== "NGD" || normalise === "shared" };
      this.W = new Iterate(setup.W0 ? setup.W0.flat() : new Float64Array(d * d), problem.svm);
      this.u = new Iterate(setup.u0 ?? new Float64Array(d), problem.uSvm);
      this.gaps = new Float64Array(rows.length);
      this.delta = Float64Array.from(rows, (row) => row.delta);
      this.tops = Float64Array.from(sequences, (each) => each.top);
      this.logOpt = new Float64Array(sequences.length);
      this.margin = new Float64Array(sequences.length);
      this.image = new Float64Array(d);
      this.logOther = new Float64Array(rows.length);
      this.sign = new Float64Array(rows.length);
      this.logWeight = new Float64Array(rows.length);
      this.step = 0;
      this.status = "running";
      this.look();
    }

    // Gaps, scores, softmax and both gradients at the iterate.
    look() {
      const { problem: { rows, sequences, d }, W, u, gaps, delta, tops, image } = this;
      sequences.forEach(({ first, end, query, label, best }, i) => {
        for (let a = 0; a < d; a++) {
          image[a] = 0;
          for (let b = 0; b < d; b++) image[a] += W.x[a * d + b] * query[b];
        }
        for (let k = first; k < end; k++) {
          gaps[k] = dot(rows[k].difference, image);
          if (this.joint) delta[k] = label * dot(rows[k].difference, u.x);
        }
        if (this.joint) tops[i] = label * dot(best, u.x);
        this.attend(i, first, end);
      });
      this.pull();
    }

    // Softmax of sequence i in logs, and the signed logs of its rows' weights.
    attend(i, first, end) {
      const { gaps, delta, logOther, sign, logWeight } = this;
      let low = Infinity, total = 0, lost = 0;
      for (let k = first; k < end; k++) low = Math.min(low, gaps[k]);
      for (let k = first; k < end; k++) total += Math.exp(low - gaps[k]);
      const logOpt = -softplus(Math.log(total) - low);
      for (let k = first; k < end; k++) {
        logOther[k] = logOpt - gaps[k];
        lost += Math.exp(logOther[k]) * delta[k];
      }
      this.logOpt[i] = logOpt;
      this.margin[i] = this.tops[i] - lost;
      for (let k = first; k < end; k++) {
        const plain = delta[k] - lost; // the mean score less that of row k, unless it cancels
        const exact = Math.abs(plain) > Math.abs(delta[k]) / 2;
        const [c, shift] = exact ? [plain, 0] : this.excess(k, first, end, logOpt);
        sign[k] = Math.sign(c);
        logWeight[k] = c ? -this.margin[i] + logOther[k] + Math.log(Math.abs(c)) + shift : -Infinity;
      }
    }

    // The same as a signed sum over tokens, in which nothing cancels: [number, log of its factor].
    excess(k, first, end, logOpt) {
      const { delta, logOther } = this;
      let shift = delta[k] ? logOpt + Math.log(Math.abs(delta[k])) : -Infinity;
      for (let t = first; t < end; t++)
        if (delta[t] !== delta[k])
          shift = Math.max(shift, logOther[t] + Math.log(Math.abs(delta[k] - delta[t])));
      if (shift === -Infinity) return [0, 0];
      let total = delta[k] * Math.exp(logOpt - shift);
      for (let t = first; t < end; t++) // a tie would be 0 times infinity
        if (delta[t] !== delta[k]) total += (delta[k] - delta[t]) * Math.exp(logOther[t] - shift);
      return [total, shift];
    }

    // Both negative gradients, over exp of the shifts, and the logs of their norms.
    pull() {
      const { problem: { rows, sequences }, W, u, logWeight, sign, margin } = this;
      const n = sequences.length;
      W.shift = logWeight.reduce((a, b) => Math.max(a, b), -Infinity);
      if (W.shift === -Infinity) W.shift = 0;
      W.gradient.fill(0);
      for (let k = 0; k < rows.length; k++) {
        const weight = sign[k] * Math.exp(logWeight[k] - W.shift) / n;
        if (weight !== 0) for (let j = 0; j < W.x.length; j++) W.gradient[j] += weight * rows[k].z[j];
      }
      W.logNorm = logNorm(W.shift, W.gradient);
      if (!this.joint) return;
      u.shift = -Math.min(...margin);
      u.gradient.fill(0);
      sequences.forEach(({ first, end, label, best }, i) => {
        const weight = label * Math.exp(-margin[i] - u.shift) / n;
        for (let j = 0; j < u.x.length; j++) u.gradient[j] += weight * best[j];
        for (let k = first; k < end; k++) {
          const other = weight * Math.exp(this.logOther[k]);
          for (let j = 0; j < u.x.length; j++) u.gradient[j] -= other * rows[k].difference[j];
        }
      });
      u.logNorm = logNorm(u.shift, u.gradient);
    }

    get logLoss() {
      return logSum(this.margin.map((margin) => -margin)) - Math.log(this.margin.length);
    }

    // log(L - L*), L* the loss when every softmax sits on its optimal token; 0 where u is trained
    get logGap() {
      if (this.joint) return this.logLoss;
      const { problem: { sequences }, logOther, delta, tops } = this;
      const each = sequences.map(({ first, end }, i) => {
        const lost = [];
        for (let k = first; k < end; k++) lost.push(logOther[k] + Math.log(delta[k]));
        return logExpm1(logSum(lost)) - tops[i];
      });
      return logSum(each) - Math.log(each.length);
    }

    // log of the step size of a part whose gradient has this norm
    logSize(logNorms, part) {
      const { powers, logScale, common, decay, cap } = this.law;
      const own = logNorms[part];
      const norm = common ? logSum(logNorms.map((each) => 2 * each)) / 2 : own;
      if (!common && own === -Infinity) return -Infinity; // 0/0 is no step
      let size = logScale;
      if (powers[0]) size += powers[0] * this.logGap;
      if (powers[1]) size += powers[1] * norm;
      return Math.min(size - decay[part] * Math.log(this.step + 1), cap);
    }

    // Take steps up to one; false where the run has ended before it.
    advance(last) {
      const parts = this.joint ? [this.u, this.W] : [this.W];
      while (this.step < last && this.status === "running") {
        const norms = parts.map((part) => part.logNorm);
        if (norms.every((norm) => norm === -Infinity)) this.status = "zero gradient";
        const sizes = norms.map((_, part) => this.logSize(norms, part));
        const far = sizes.some((size, part) => !(size + norms[part] <= Math.log(LONGEST)));
        if (this.status === "running" && far) this.status = "diverged";
        if (this.status !== "running") return false;
        parts.forEach((part, k) => {
          part.move(norms[k] === -Infinity ? 0 : Math.exp(sizes[k] + part.shift), this.law.momentum);
        });
        this.step += 1;
        this.look();
      }
      return this.status === "running";
    }

    record() {
      const { problem: { sequences, rows, opt }, logOpt, logOther } = this;
      const logAttention = sequences.map(({ first, end }, i) => {
        const logs = Array.from(logOther.subarray(first, end));
        logs.splice(opt[i], 0, logOpt[i]);
        return logs;
      });
      const { norm, error } = this.W.measure(), ofU = this.joint ? this.u.measure() : null;
      return { step: this.step, W: Array.from(this.W.x), u: Array.from(this.u.x), norm, error,
        uNorm: ofU?.norm, uError: ofU?.error, logAttention, gaps: Array.from(this.gaps),
        delta: Array.from(this.delta), logLoss: this.logLoss, logNorm: this.W.logNorm };
    }
  }
  lab.Run = Run;

  const RECORDS = 181; // on a grid that has every power of ten

  // The steps that are recorded: 0, then about `count` on a log grid up to the last. Late ones are
  // even: NGD may swing between two points, and a slope between them would say nothing.
  lab.grid = function (steps, count = RECORDS) {
    const inner = Array.from({ length: count }, (_, k) => steps ** (k / (count - 1)));
    const whole = inner.map((t) => (t < 20 ? Math.round(t) : 2 * Math.round(t / 2)));
    return [...new Set([0, ...whole, steps])].filter((step) => step <= steps);
  };

  // All records of a set-up, at the given steps.
  lab.train = function (setup, steps) {
    const run = new Run(setup), records = [];
    for (const step of steps) {
      run.advance(step);
      if (run.step === step) records.push(run.record());
    }
    return { status: run.status === "running" ? "completed" : run.status, records };
  };
})((globalThis.Laboratory ??= {}));
