// Make an open page of the built book ready for paper; gives back what does not fit.
(async (style) => {
  const LONG = 260; // pixels, a quarter of a sheet
  const root = document.documentElement;
  root.dataset.theme = root.dataset.mode = "light";
  document.head.appendChild(Object.assign(document.createElement("style"), { textContent: style }));
  if (window.MathJax?.startup) await MathJax.startup.promise;

  // Only the article: the theme's boxes around it would keep pages from breaking.
  const article = document.querySelector("article.bd-article");
  const content = Object.assign(document.createElement("div"), { className: "bd-content" });
  content.appendChild(article);
  document.body.replaceChildren(content);
  for (const e of article.querySelectorAll("details")) e.open = true;
  for (const e of article.querySelectorAll(".toggle-hidden")) e.classList.remove("toggle-hidden");
  for (const e of article.querySelectorAll("img")) e.loading = "eager";

  // A slider becomes four pictures: along its control, or at two places of each of its two.
  for (const slider of article.querySelectorAll("figure.slider")) {
    const inputs = [...slider.querySelectorAll("input")], pictures = [];
    if (!inputs.length) continue;
    const [first, second] = inputs, last = Number(first.max), seen = new Set();
    const opposite = ({ defaultValue, max }) => (Number(defaultValue) + Math.ceil(max / 2)) % (Number(max) + 1);
    const places = second
      ? [0, last > 2 ? Math.ceil(last / 2) : last].flatMap((one) => [Number(second.defaultValue), opposite(second)].map((two) => [one, two]))
      : [0, 1 / 3, 2 / 3, 1].map((share) => [Math.round(share * last)]);
    for (const place of places) {
      place.forEach((value, k) => { inputs[k].value = value; });
      first.dispatchEvent(new Event("input"));
      const said = slider.querySelector("output").textContent;
      if (seen.has(said)) continue; // a window at the end has no room to grow
      seen.add(said);
      const chosen = inputs.map((input) => [input.previousElementSibling.textContent, input.nextElementSibling.textContent]);
      const words = chosen.filter(([, value]) => second || !said.includes(value)).map((pair) => pair.join(" "));
      const picture = document.createElement("div");
      const shown = [...slider.querySelectorAll("svg")].find((e) => !e.closest("[hidden]"));
      picture.append(shown.cloneNode(true), [words.join(", "), said].filter(Boolean).join(": "));
      pictures.push(picture);
    }
    slider.replaceChildren(...pictures);
  }
  await Promise.all([...article.querySelectorAll("img")].map((image) => image.decode().catch(() => {})));
  await document.fonts.ready;
  if (window.MathJax?.startup) MathJax.startup.document.rerender(110); // measured anew, beside the letters of the paper
  await document.fonts.ready;

  // A formula or table wider than the page is set smaller.
  const fit = (element, box, room) => {
    const ratio = room / element.getBoundingClientRect().width;
    if (ratio < 1) box.style.zoom = Math.floor(100 * ratio) / 100;
  };
  for (const box of article.querySelectorAll("div.math")) {
    const number = box.querySelector(".eqno")?.getBoundingClientRect().width ?? 0;
    for (const formula of box.querySelectorAll("mjx-container")) {
      const inner = formula.querySelector("mjx-math");
      if (inner) fit(inner, formula, box.clientWidth - 2 * number);
    }
  }
  const room = (e) => e.closest("p, li, td, dd, div, section").clientWidth;
  for (const e of article.querySelectorAll("span.math mjx-container")) fit(e, e, room(e));
  for (const e of article.querySelectorAll("table"))
    if (!e.parentElement.closest("table")) fit(e, e, e.parentElement.clientWidth);

  // Long code may break, lest it leave half a page empty.
  for (const e of article.querySelectorAll(".cell_input, .output.stream"))
    if (e.clientHeight > LONG) {
      e.nextElementSibling?.style.setProperty("break-before", "auto", "important");
      for (const part of [e, ...e.querySelectorAll("div, pre")])
        part.style.cssText += "; display: block !important; break-inside: auto !important; overflow: visible !important";
    }

  const edge = article.getBoundingClientRect().right + 2;
  const wide = [...article.querySelectorAll("p, li, td, th, pre, img, svg, mjx-container")]
    .filter((e) => !e.closest("mjx-assistive-mml, .visually-hidden") && !e.matches("svg svg")) // the outer one cuts it
    .filter((e) => e.getBoundingClientRect().right > edge || e.matches("pre") && e.scrollWidth > e.clientWidth + 2)
    .map((e) => `${e.tagName.toLowerCase()}: ${e.textContent.trim().slice(0, 60)}`);

  // The browser writes a place into the PDF for each anchor that some link on the page names.
  const anchors = Object.assign(document.createElement("nav"), { hidden: true });
  for (const { id } of article.querySelectorAll("[id]"))
    anchors.appendChild(Object.assign(document.createElement("a"), { href: "#" + encodeURIComponent(id) }));
  document.body.appendChild(anchors);

  return wide;
})
