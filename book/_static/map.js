// The map of statements: what one rests on is marked below, what rests on it above, what does so through others faintly.
(() => {
  const map = document.querySelector(".statement-map");
  if (!map) return;
  const chips = new Map([...map.querySelectorAll("li[data-uses]")].map((chip) => [chip.id.slice(4), chip]));
  const uses = (label) => chips.get(label).dataset.uses.split(" ").filter(Boolean);
  const used = new Map([...chips.keys()].map((label) => [label, []]));
  for (const label of chips.keys()) for (const each of uses(label)) used.get(each).push(label);

  function behind(label, step) {
    const seen = new Set([label]), ahead = [label];
    while (ahead.length) for (const each of step(ahead.pop())) if (!seen.has(each)) seen.add(each), ahead.push(each);
    seen.delete(label);
    return seen;
  }

  const output = document.createElement("output"), hint = "Point at a statement.";
  output.textContent = hint;
  map.append(output);
  const names = (labels) => labels.map((label) => chips.get(label).querySelector("a").textContent).join(", ");

  // A line to each neighbour, behind the chips.
  const lines = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  lines.setAttribute("aria-hidden", "true");
  map.prepend(lines);
  function draw(chip, labels, kind) {
    const home = map.getBoundingClientRect();
    const at = (each) => ((box) => [box.left + box.width / 2 - home.left, box.top + box.height / 2 - home.top])(each.getBoundingClientRect());
    const [x, y] = at(chip);
    for (const label of labels) {
      const [a, b] = at(chips.get(label)), path = document.createElementNS(lines.namespaceURI, "path");
      const bend = Math.min(60, Math.abs(b - y) / 3);
      path.setAttribute("d", `M${x} ${y}C${x - bend} ${(2 * y + b) / 3} ${a - bend} ${(y + 2 * b) / 3} ${a} ${b}`);
      path.setAttribute("class", kind);
      lines.append(path);
    }
  }

  function ask(chip) {
    map.classList.toggle("asked", Boolean(chip));
    for (const each of chips.values()) each.classList.remove("here", "uses", "used", "falls");
    lines.replaceChildren();
    if (!chip) return (output.textContent = hint);
    const label = chip.id.slice(4), falls = behind(label, (each) => used.get(each));
    for (const each of falls) chips.get(each).classList.add("falls");
    for (const each of used.get(label)) chips.get(each).classList.add("used");
    for (const each of uses(label)) chips.get(each).classList.add("uses");
    chip.classList.add("here");
    draw(chip, uses(label), "uses");
    draw(chip, used.get(label), "used");
    const below = uses(label).length ? `rests on ${names(uses(label))}` : "rests on no other box";
    const above = falls.size ? `${falls.size} of the others would fall with it, ${names(used.get(label))} directly` : "nothing here rests on it";
    output.textContent = `${names([label])} ${below}; ${above}.`;
  }

  const from = (event) => event.target.closest?.(".statement-map li[data-uses]") ?? null;
  map.addEventListener("pointerover", (event) => from(event) && ask(from(event)));
  map.addEventListener("focusin", (event) => from(event) && ask(from(event)));
  map.addEventListener("pointerleave", () => ask(map.querySelector("li:focus-within")));
  document.addEventListener("keydown", (event) => event.key === "Escape" && ask(null));
})();
