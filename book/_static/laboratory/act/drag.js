// Tokens and u are moved by mouse, finger and arrow keys.
(function (lab) {
  "use strict";
  const FINE = 0.01, COARSE = 0.05; // of the arrow keys
  const REACH = 2.6; // of the plane
  const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  const round = (value) => Math.round(value / FINE) / Math.round(1 / FINE);

  lab.draggable = function (name) {
    const each = document.createElementNS("http://www.w3.org/2000/svg", "g"), [i, t] = name.split(".");
    const words = name === "u" ? "decoder u" : `sequence ${+i + 1}, token ${+t + 1}`;
    const parts = { class: "drag", tabindex: 0, role: "slider", "aria-label": `${words}: move with the arrow keys`,
      "aria-valuemin": -REACH, "aria-valuemax": REACH };
    for (const [key, value] of Object.entries(parts)) each.setAttribute(key, value);
    each.dataset.name = name;
    return each;
  };

  // Within the picture, or no farther out than the point stood, in hundredths.
  lab.kept = (point, old) => point.map((value, j) =>
    round(Math.max(Math.min(-REACH, old[j]), Math.min(Math.max(REACH, old[j]), value))));

  // `pointOf(name)` is where a point stands, `move(name, point)` moves it, `begin()` comes before.
  lab.listenToDrags = function (plane, { pointOf, move, begin }) {
    let taken = null; // where a token was when a pointer took it: Escape puts it back
    const under = (event) => {
      const box = plane.getBoundingClientRect(), scale = 360 / box.width;
      return lab.fromPlane([(event.clientX - box.left) * scale, (event.clientY - box.top) * scale]);
    };
    // A token has the pointer that took it, so that another finger moves nothing, or another token.
    plane.addEventListener("pointerdown", (event) => {
      const each = event.target.closest("g.drag");
      if (!each || event.button || each.classList.contains("held")) return;
      begin();
      taken = [...pointOf(each.dataset.name)];
      each.classList.add("held");
      each.setPointerCapture(event.pointerId);
      each.focus({ preventScroll: true });
      event.preventDefault();
    });
    plane.addEventListener("pointermove", (event) => {
      const each = event.target.closest("g.drag");
      if (each?.classList.contains("held") && each.hasPointerCapture(event.pointerId)) move(each.dataset.name, under(event));
    });
    plane.addEventListener("lostpointercapture", (event) => event.target.classList.remove("held"));
    plane.addEventListener("keydown", (event) => {
      const each = event.target.closest("g.drag"), way = WAYS[event.key];
      if (event.key === "Escape" && each?.classList.contains("held")) {
        each.classList.remove("held");
        move(each.dataset.name, taken);
      }
      if (!each || !way) return;
      event.preventDefault();
      if (!event.repeat) begin();
      const size = event.shiftKey ? FINE : COARSE, point = pointOf(each.dataset.name);
      move(each.dataset.name, point.map((value, j) => value + size * way[j]));
    });
  };
})((globalThis.Laboratory ??= {}));
