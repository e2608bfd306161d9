// Leave of an open page of the built book what a sheet can show; gives it back as HTML. In a row of
// pages this is the one with that number, which its anchors begin with: "lemma" becomes "2:lemma". Those
// of the first, number 0, stay, and markers, which style sheets name.
(async (number) => {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.mode = "light";
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

  // It may be shown elsewhere: addresses are whole, and a picture has one.
  for (const e of article.querySelectorAll("a[href]:not([href^='#'])"))
    e.setAttribute("href", new URL(e.getAttribute("href"), location));
  for (const e of article.querySelectorAll("img")) {
    e.src = e.currentSrc || e.src;
    for (const other of e.closest("picture")?.querySelectorAll("source") ?? []) other.remove();
  }
  const renamed = (name, value) =>
    name === "id" ? `${number}:${value}` :
    /^(xlink:)?href$/.test(name) ? value.replace(/^#/, `#${number}:`) :
    value.replaceAll("url(#", `url(#${number}:`);
  for (const e of number ? [article, ...article.querySelectorAll(":not(marker)")] : [])
    for (const { name, value } of [...e.attributes])
      if (name === "id" || value.startsWith("#") || value.includes("url(#")) e.setAttribute(name, renamed(name, value));
  return article.outerHTML;
})
