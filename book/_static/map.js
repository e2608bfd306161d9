// The map of statements: what one rests on, what rests on it, and what does so through others, is marked with its lines.
(() => {
  const map = document.querySelector(".statement-map");
  if (!map) return;
  const chips = new Map([...map.querySelectorAll("li")].map((chip) => [chip.id.slice(4), chip]));
  const uses = (label) => chips.get(label).dataset.uses.split(" ").filter(Boolean);
  const used = new Map([...chips.keys()].map((label) => [label, []]));
  for (const label of chips.keys()) for (const each of uses(label)) used.get(each).push(label);

  function behind(label, step) {
    const seen = new Set([label]), ahead = [label];
    while (ahead.length) for (const each of step(ahead.pop())) if (!seen.has(each)) seen.add(each), ahead.push(each);
    seen.delete(label);
    return seen;
  }

  // At the edge of the window that is farther from the statement and its card.
  const output = document.querySelector("main").appendChild(document.createElement("output"));
  output.className = "map-words";
  const name = (label) => chips.get(label).querySelector("a").textContent;

  function ask(chip) {
    map.classList.toggle("asked", Boolean(chip));
    for (const each of map.querySelectorAll(".here, .uses, .used, .falls")) each.classList.remove("here", "uses", "used", "falls");
    output.textContent = "";
    if (!chip) return;
    output.classList.toggle("low", chip.getBoundingClientRect().top < innerHeight / 2);
    const label = chip.id.slice(4), falls = behind(label, (each) => used.get(each));
    for (const each of falls) chips.get(each).classList.add("falls");
    for (const each of used.get(label)) chips.get(each).classList.add("used");
    for (const each of uses(label)) chips.get(each).classList.add("uses");
    chip.classList.add("here");
    for (const line of map.querySelectorAll("path[data-to]")) {
      const { from, to } = line.dataset;
      if (to === label) line.classList.add("uses");
      else if (from === label) line.classList.add("used");
      else if (falls.has(from)) line.classList.add("falls");
    }
    const below = uses(label).length ? `rests on ${uses(label).map(name).join(", ")}` : "rests on no other box";
    const above = falls.size ? `${falls.size} of the others would fall with it, ${used.get(label).length} directly` : "nothing here rests on it";
    output.textContent = `${name(label)} ${below}; ${above}.`;
  }

  const from = (event) => event.target.closest?.(".statement-map li") ?? null;
  map.addEventListener("pointerover", (event) => from(event) && ask(from(event)));
  map.addEventListener("focusin", (event) => from(event) && ask(from(event)));
  map.addEventListener("pointerleave", (event) => event.pointerType === "touch" || ask(map.querySelector("li:focus-within")));
  document.addEventListener("keydown", (event) => event.key === "Escape" && ask(null));
})();
