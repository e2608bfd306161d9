// The same run as one would write it first: the softmax as a quotient, and the mean score less the
// score of a token by subtraction. Once a softmax is stored as 1 nothing pulls the optimal token.
(function (lab) {
  "use strict";
  const { dot } = lab;

  lab.NaiveRun = class extends lab.Run {
    constructor(setup, problem) {
      super(setup, problem);
      this.tokens = setup.X;
      this.look();
    }

    look() {
      if (!this.tokens) return; // within super
      const { W, u, tokens, problem: { sequences, scores }, joint } = this;
      for (const part of [W, u]) {
        part.low.fill(0); // plain sums keep no rounding
        part.gradient.fill(0);
        part.shift = 0;
      }
      this.losses = tokens.map((x, i) => {
        const { query, label } = sequences[i], d = query.length;
        const image = query.map((_, a) => dot(W.x.subarray(a * d, a * d + d), query));
        const logits = x.map((token) => dot(token, image)), top = Math.max(...logits);
        const powers = logits.map((logit) => Math.exp(logit - top));
        const total = powers.reduce((sum, each) => sum + each, 0);
        const own = joint ? x.map((token) => label * dot(token, u.x)) : scores[i];
        const mean = powers.reduce((sum, each, t) => sum + (each / total) * own[t], 0);
        const loss = Math.exp(-mean);
        x.forEach((token, t) => {
          const share = (loss * powers[t]) / total / tokens.length;
          for (let a = 0; a < d; a++) {
            u.gradient[a] += share * label * token[a];
            for (let b = 0; b < d; b++) W.gradient[a * d + b] += share * (own[t] - mean) * token[a] * query[b];
          }
        });
        return loss;
      });
      for (const part of [W, u]) part.logNorm = Math.log(Math.sqrt(dot(part.gradient, part.gradient)));
    }

    get logLoss() {
      return Math.log(this.losses.reduce((sum, each) => sum + each, 0) / this.losses.length);
    }

    get logGap() {
      if (this.joint) return this.logLoss;
      const least = this.problem.sequences.map(({ top }) => Math.exp(-top));
      const lost = this.losses.reduce((sum, loss, i) => sum + loss - least[i], 0);
      return Math.log(Math.max(0, lost) / this.losses.length);
    }

    // 1 - cosine by subtraction, too
    record() {
      const { x, target } = this.W, norm = Math.sqrt(dot(x, x));
      return { step: this.step, W: Array.from(x), norm, logLoss: this.logLoss, error: target ? 1 - dot(x, target) / norm : NaN };
    }
  };

  const WALL = -53 * Math.LN2; // of the log of the attention that is not on optimal tokens

  // The first record at which a softmax that stores 53 bits calls the optimal tokens' attention 1.
  lab.wallOf = ({ records }, { opt }) => records.find(({ logAttention }) => {
    const lost = logAttention.flatMap((logs, i) => logs.filter((_, t) => t !== opt[i]));
    return Math.log(lost.reduce((sum, log) => sum + Math.exp(log), 0) / opt.length) < WALL;
  })?.step;

  // The first step from which on the naive run is off by a tenth, and by which factor it is off at the end.
  lab.leaves = ({ records }, naive) => {
    const pairs = naive.records.map((each) => [lab.recordAt(records, each.step), each]).filter(([each]) => each.error > 0);
    const off = ([own, each]) => Math.max(each.error / own.error, own.error / each.error);
    const last = pairs.findLastIndex((pair) => off(pair) < 1.1);
    return last < pairs.length - 1 ? { step: pairs[last + 1][1].step, factor: off(pairs[pairs.length - 1]) } : null;
  };
})((globalThis.Laboratory ??= {}));
