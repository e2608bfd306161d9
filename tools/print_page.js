// Make the article of an open page ready for paper, behind those of others; gives back what does not fit.
(async (style, before) => {
  const LONG = 260; // pixels, a quarter of a sheet
  document.head.appendChild(Object.assign(document.createElement("style"), { textContent: style }));
  const article = document.querySelector(".bd-content");
  article.insertAdjacentHTML("afterbegin", before.join(""));

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
  for (const e of article.querySelectorAll(".cell_input, .output.stream, div.highlight"))
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
