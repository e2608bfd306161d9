// The rules that race on the same tokens: who they are, their training, and their places.
(function (lab) {
  "use strict";
  const MOMENTUM = 0.9; // where none is given

  // The rule of a set-up by the name that it has in the race, and the set-up with another.
  lab.ruleOf = ({ rule, momentum, normalise }) =>
    momentum > 0 ? "momentum" : normalise === "shared" ? "shared" : rule;
  lab.withRule = (setup, name) => lab.filled({ ...setup,
    rule: { momentum: "NGD", shared: "NGD" }[name] ?? name,
    momentum: name === "momentum" ? setup.momentum || MOMENTUM : 0,
    normalise: name === "shared" ? "shared" : "separate" });
  lab.nameOf = (name, { momentum } = {}) => ({ shared: "joint NGD", momentum: `momentum ${momentum || MOMENTUM}` }[name] ?? name);
  lab.racers = ({ joint }) => ["GD", "NGD", joint ? "shared" : "momentum", "Polyak"];

  // All runs of a set-up: the rule that is followed first, then the others, if they race, and the
  // naive softmax, if it is shown.
  lab.Race = class {
    constructor(setup, problem, times) {
      const followed = lab.ruleOf(setup), one = (name, Kind = lab.Run) => {
        const own = lab.withRule(setup, name), run = new Kind(lab.runnable(own), problem);
        return { name, run, records: [run.record()], waiting: times.slice(1) };
      };
      const others = setup.race ? lab.racers(setup).filter((name) => name !== followed) : [];
      this.runs = [one(followed), ...others.map((name) => one(name))];
      Object.assign(this, { problem, done: false });
      if (setup.float64) this.runs.splice(1, 0, { ...one(followed, lab.NaiveRun), name: "naive" });
    }

    get followed() { return this.runs[0]; }
    run(name) { return this.runs.find((each) => each.name === name); }

    // Train until the clock says so; whether all is done.
    work(until) {
      for (const { run, records, waiting } of this.runs) {
        while (waiting.length && run.status === "running") {
          if (performance.now() > until) return false;
          run.advance(Math.min(waiting[0], run.step + 500));
          if (run.step < waiting[0] && run.status === "running") continue;
          if (run.step > records[records.length - 1].step) records.push(run.record());
          waiting.shift();
        }
      }
      return (this.done = true);
    }

    // Whether a run ends with less attention on some optimal token than on another.
    loses({ records }) {
      const { logAttention } = records[records.length - 1], share = (log) => Math.round(100 * Math.exp(log));
      return this.problem.opt.some((opt, i) => share(logAttention[i][opt]) < share(Math.max(...logAttention[i])));
    }
  };

  // The last record that is not after a step.
  lab.recordAt = (records, step) => records.findLast((record) => record.step <= step) ?? records[0];

  // The rules by their error at a step, the smallest first; a run that has none comes last. Who
  // `loses` has no place; when a run has ended before that step, it says where.
  lab.places = (race, step) => race.runs.filter(({ name }) => name !== "naive")
    .map((each) => ({ name: each.name, error: lab.recordAt(each.records, step).error, lost: race.loses(each),
      ended: each.run.status !== "running" && each.run.step < step ? each.run.step : null }))
    .sort((a, b) => a.lost - b.lost || (a.error >= 0 ? a.error : 9) - (b.error >= 0 ? b.error : 9));
})((globalThis.Laboratory ??= {}));
