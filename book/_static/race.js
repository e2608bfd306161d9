// The first page: the laboratory's first set-up races where the still picture stood.
//
// It trains when the page is there, and plays once it is seen. Who asks for less motion keeps the still picture.
(function (lab) {
  "use strict";
  const SLICE = 14; // milliseconds of training between two pictures

  const figure = document.querySelector(".opening figure");
  if (!figure || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  figure.querySelector("img").insertAdjacentHTML("afterend", `<div class="lab race"><b>Error: 1 − cosine with W<sub>mm</sub></b>
    <svg viewBox="0 0 360 360" role="img" aria-label="Error of each method against the step, and below it the slope of that curve."></svg>
    <div><div class="lab-legend"><div data-lab="racers"></div></div>
    <div class="lab-time"><button type="button" class="play">Play</button><span class="step"></span></div></div></div>`);
  const root = figure.querySelector(".race"), link = document.querySelector('.opening a[href*="laboratory.html"]'), get = (name) => root.querySelector(name);
  lab.buildLegend(get(".lab-legend"), false);

  const setup = lab.filled(Object.values(lab.PRESETS)[0].setup), problem = lab.prepare(setup);
  lab.showLegend(get(".lab-legend"), setup, null, null); // as high as it will be
  const race = new lab.Race(setup, problem, lab.grid(setup.steps));

  function show(step) {
    setup.at = step;
    get("svg").innerHTML = lab.drawError(setup, problem, race, step, null);
    lab.showLegend(get(".lab-legend"), setup, race, null);
    get(".step").textContent = `Step ${lab.number(Math.floor(step))}`;
  }
  // The laboratory opens at what is seen here.
  const stopped = () => { link.hash = lab.toHash({ ...setup, at: Math.round(setup.at) }); };
  const clock = new lab.Clock(get("button"), { show, now: () => setup.at, last: () => setup.steps, stopped });

  function work() {
    if (!race.work(performance.now() + SLICE)) return requestAnimationFrame(work);
    show(0);
    root.dataset.state = "done";
    new IntersectionObserver((seen, observer) => {
      if (!seen.some((each) => each.isIntersecting)) return;
      observer.disconnect();
      if (setup.at === 0) clock.start();
    }, { threshold: 0.5 }).observe(figure);
  }
  addEventListener("load", work);
})((globalThis.Laboratory ??= {}));
