// The legend: who races, with line, marker and place, and who is followed.
(function (lab) {
  "use strict";
  const { tag } = lab.svgWords;

  // A line, a marker and a colour (of the sheet) for each, as in the book's figures.
  const LOOKS = {
    GD: { dash: "7 4", marker: tag("rect", { x: -5, y: -5, width: 10, height: 10 }) },
    NGD: { dash: "", marker: tag("circle", { r: 5.5 }) },
    momentum: { dash: "8 3 2 3", marker: tag("path", { d: "M0-6.5L6.5 5H-6.5Z" }) },
    shared: { dash: "8 3 2 3", marker: tag("path", { d: "M-2-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z" }) },
    Polyak: { dash: "2 3.5", marker: tag("path", { d: "M0 6.5L6.5-5H-6.5Z" }) },
    naive: { dash: "2 2", marker: tag("path", { d: "M-5-5L5 5M5-5L-5 5", class: "cross" }) },
    ghost: { dash: "", marker: "" },
  };
  lab.lookOf = (name) => LOOKS[name];

  const ALL = ["GD", "NGD", "momentum", "shared", "Polyak"], PLACES = ["1st", "2nd", "3rd", "4th"];

  const sign = (name) => {
    const { dash, marker } = lab.lookOf(name);
    return `<svg viewBox="-20 -8 40 16" class="sign" aria-hidden="true"><path d="M-20 0H20" class="curve r-${name}" stroke-dasharray="${dash || "none"}"></path>` +
      `<g class="marker r-${name}">${marker}</g></svg>`;
  };

  // A rule is chosen in it, or it only says who races.
  lab.buildLegend = function (box, choice = true) {
    const kind = choice ? "label" : "span", input = (name) => (choice ? `<input type="radio" name="lab-rule" value="${name}">` : "");
    box.querySelector("[data-lab=racers]").innerHTML = ALL.map((name) =>
      `<${kind} data-racer="${name}">${input(name)}${sign(name)} <span class="who">${lab.nameOf(name)}</span> <span class="place"></span></${kind}>`).join("") +
      `<span data-racer="naive">${sign("naive")} plain softmax</span><span data-racer="ghost">${sign("ghost")} <span class="who"></span></span>`;
  };

  lab.showLegend = function (box, setup, race, ghost) {
    const there = lab.racers(setup), followed = lab.ruleOf(setup);
    for (const each of box.querySelectorAll("[data-racer]")) {
      const name = each.dataset.racer, input = each.querySelector("input");
      each.hidden = name === "naive" ? !setup.float64 : name === "ghost" ? !ghost : !there.includes(name);
      if (input) [input.checked, input.disabled] = [name === followed, each.hidden];
    }
    box.querySelector("[data-racer=momentum] .who").textContent = lab.nameOf("momentum", setup);
    if (ghost) box.querySelector("[data-racer=ghost] .who").textContent = `before: ${ghost.words}`;
    const places = race ? lab.places(race, setup.at) : [];
    for (const each of box.querySelectorAll(".place")) {
      const k = places.findIndex(({ name }) => name === each.closest("[data-racer]").dataset.racer), { error, lost, ended } = places[k] ?? {};
      const place = lost ? "lost, " : places.length > 1 ? `${PLACES[k]}, ` : "", end = ended === null ? "" : `, ended at ${lab.number(ended ?? 0)}`;
      const words = error >= 0 ? (race.done ? place : "") + lab.number(error) + end : "";
      if (each.innerHTML !== words) each.innerHTML = words;
    }
  };
})((globalThis.Laboratory ??= {}));
