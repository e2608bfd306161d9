// Where formulas may turn: those that are wider than `widest` pixels get <mjx-break>s, at few places and the best.
// In the text a line ends with a sign, in a displayed formula it begins with one, and parts that \quad sets apart
// stay whole where there is room. attnbias.css says where breaks are open; elsewhere nothing looks other than before.
([formulas, widest]) => {
  const RELATION = /^[=<>≤≥≠≪≫∼≈≡∝∈∉⊆⊥→←⟶↦⪰:]$/, BINARY = /^[-+−±⋅×⊗∪]$/;
  const OPEN = /^[([{⟨⌈⌊]$/, CLOSE = /^[)\]}⟩⌉⌋]$/, BAR = /^[|‖∣∥]$/;
  const INNER = "mjx-mrow, mjx-mstyle, mjx-texatom[texclass=ORD], mjx-texatom[texclass=INNER]";
  const QUAD = 0, SIGN = 1, JOINT = 2, FACTOR = 3, DEEPER = 3; // what a break costs

  // The sign that an element shows, if it is one, with an exponent or without.
  const sign = (each) => {
    if (each.matches("mjx-msup, mjx-msub, mjx-msubsup")) return sign(each.firstElementChild);
    const letters = each.matches("mjx-mo, mjx-texatom") ? each.querySelectorAll("mjx-c") : [];
    const code = letters.length === 1 && /\bmjx-c([0-9A-F]+)/.exec(letters[0].className);
    return code ? String.fromCodePoint(parseInt(code[1], 16)) : "";
  };
  const blank = (each) => each && !each.querySelector("mjx-c:not(.mjx-cA0)") && each.matches("mjx-mstyle, mjx-mtext, mjx-mspace");
  const quad = (each) => blank(each) && parseFloat(each.querySelector("mjx-mspace")?.style.width) >= 1;

  // Elements of a row that a line may begin with, and at what cost.
  function places(row, display, depth = 0) {
    const all = [...row.children], found = [], bars = [];
    all.forEach((each, k) => {
      const shown = sign(each), space = each.getAttribute("space"), before = sign(all[k - 1] ?? each);
      const add = (at, cost) => { if (at > 0 && at < all.length) found.push({ at: all[at], cost: cost + DEEPER * depth }); };
      let after = k + 1;
      while (blank(all[after])) after += 1;
      if (BAR.test(shown) && space !== "4") {
        const opens = bars.at(-1) !== shown || !k || [RELATION, BINARY, OPEN].some((kind) => kind.test(before));
        if (opens) bars.push(shown);
        else bars.pop();
        depth += opens ? 1 : -1;
      } else if (OPEN.test(shown)) depth += 1;
      else if (CLOSE.test(shown)) depth = Math.max(depth - 1, 0);
      else if (quad(each)) add(k + 1, QUAD);
      else if (RELATION.test(shown) && (space === "4" || !k)) add(display ? k : after, SIGN);
      else if (BINARY.test(shown) && space === "3" && !OPEN.test(before)) add(display ? k : after, JOINT);
      else if (shown === "," || shown === ";") add(after, JOINT);
      else if (display && each.querySelector(each.matches("mjx-munder, mjx-munderover") ? ".mjx-c2211" : "mjx-mtable")) add(k, FACTOR);
      else if (each.matches(INNER) && each.children.length > 1 && !each.style.length) found.push(...places(each, display, depth + 1));
    });
    return found;
  }

  // The cheapest places that leave no piece wider than `room`, as far as there are any.
  function chosen(row, display, room) {
    const left = (each) => each.getBoundingClientRect().left;
    const all = places(row, display).map((place) => ({ ...place, x: left(place.at) }));
    const ends = [left(row), row.lastElementChild.getBoundingClientRect().right], taken = [];
    for (const cost of [...new Set(all.map((place) => place.cost))].sort((a, b) => a - b)) {
      const edges = [ends[0], ...taken.map(({ x }) => x), ends[1]].sort((a, b) => a - b);
      const wide = edges.slice(1).map((end, k) => [edges[k], end]).filter(([start, end]) => end - start > room);
      taken.push(...all.filter((place) => place.cost === cost && wide.some(([start, end]) => start < place.x && place.x < end)));
    }
    return taken;
  }

  function open(row, display, at) {
    // The space behind a sign is left behind at the end of the line.
    const before = at.previousElementSibling;
    if (!display && at.hasAttribute("space") && !before.hasAttribute("rspace")) {
      before.setAttribute("rspace", at.getAttribute("space"));
      at.removeAttribute("space");
    }
    at.before(document.createElement("mjx-break"));
    for (let each = at.parentElement; each !== row; each = each.parentElement) each.setAttribute("breaks", "");
  }

  // Parts that equal \quads set apart become boxes; where they may turn, the \quads hide and are the boxes' distance.
  function part(row) {
    const gaps = [...row.children].filter(quad), widths = gaps.map((each) => each.querySelector("mjx-mspace").style.width);
    if (new Set(widths).size !== 1 || gaps.at(-1) === row.lastElementChild) return [row];
    const parts = [document.createElement("mjx-part")], shown = [parts[0]];
    for (const each of [...row.children])
      if (gaps.includes(each)) shown.push(each, parts[parts.push(document.createElement("mjx-part")) - 1]);
      else parts.at(-1).append(each);
    row.replaceChildren(...shown);
    row.style.columnGap = widths[0];
    return parts;
  }

  // Whatever is measured is measured before anything changes: the browser lays out all formulas at once, but for short ones.
  const long = formulas.filter((html) => html.split("<mjx-c ").length > 12);
  const paper = document.createElement("div");
  document.body.append(paper);
  paper.style.cssText = "width: 4000px; font-size: 16px";
  paper.innerHTML = long.map((html) => `<p>${html}</p>`).join("");
  const all = [...paper.children].map(({ firstElementChild: each }) => {
    const math = each.querySelector("mjx-math"), display = each.hasAttribute("display");
    const table = math.querySelector(":scope > mjx-mtable:only-child"), inner = "mjx-mtd:not(mjx-labels *, mjx-mrow *, :has(mjx-mtable:not(mjx-mrow *)))";
    const cells = [...(table?.querySelectorAll(inner) ?? [])];
    const drawn = each.matches("[width=full]") ? table.querySelector("mjx-table") : math, style = getComputedStyle(drawn);
    const width = drawn.getBoundingClientRect().width + parseFloat(style.marginLeft) + parseFloat(style.marginRight);
    return { math, display, cells, room: widest[display ? "display" : "inline"], width };
  });
  const wide = all.filter(({ width, room }) => width > room);
  const rows = wide.flatMap(({ math, display, cells, room }) => {
    const found = cells.length ? cells : display ? part(math) : [math];
    return found.map((row) => ({ row, display, room }));
  });
  const found = rows.flatMap(({ row, display, room }) => chosen(row, display, room).map(({ at }) => [row, display, at]));
  for (const place of found) open(...place);
  for (const { math, cells } of wide) {
    if (cells.length || math.querySelector("mjx-break, mjx-part")) math.setAttribute("breaks", cells.length ? "rows" : "");
    for (const cell of cells) cell.parentElement.setAttribute("breaks", "");
  }
  const done = new Map([...paper.children].map((each, k) => [long[k], each.innerHTML]));
  paper.remove();
  return formulas.map((html) => done.get(html) ?? html);
}
