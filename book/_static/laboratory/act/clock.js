// Play: a run shown in four seconds of logarithmic time, stopped and gone on with by one button.
// Who asks for less motion sees a still picture for each factor of ten.
(function (lab) {
  "use strict";
  const SECONDS = 4, STILL = matchMedia("(prefers-reduced-motion: reduce)");

  // `show(step)` draws a step, `now()` says which is shown, `last()` where the run ends; a `readout` of
  // steps is not read aloud while they run by.
  lab.Clock = class {
    constructor(button, { show, now, last, stopped, readout = null }) {
      Object.assign(this, { button, show, now, last, stopped, readout, frame: 0 });
      button.addEventListener("click", () => (this.frame ? this.stop() : this.start()));
    }

    start() {
      const last = this.last(), from = this.now() >= last ? 0 : lab.shareOf(this.now(), last), begun = performance.now();
      const tick = () => {
        const share = Math.min(1, from + (performance.now() - begun) / 1000 / SECONDS), step = lab.stepAt(share, last);
        this.show(share === 1 ? last : STILL.matches ? 10 ** Math.floor(Math.log10(Math.max(step, 1))) : step);
        if (share === 1) this.stop();
        else this.frame = requestAnimationFrame(tick);
      };
      this.frame = requestAnimationFrame(tick);
      this.say("Pause");
    }

    stop() {
      if (!this.frame) return;
      cancelAnimationFrame(this.frame);
      this.frame = 0;
      this.say("Play");
      this.stopped();
    }

    say(word) {
      this.button.textContent = word; // its sign is drawn by the sheet
      this.button.classList.toggle("playing", word === "Pause");
      if (this.readout) this.readout.ariaLive = word === "Pause" ? "off" : "polite";
    }
  };
})((globalThis.Laboratory ??= {}));
