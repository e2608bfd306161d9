// Cards: what a reference leads to, shown on hover, keyboard focus or touch; Escape hides them.
// The texts lie in _cards/PAGE.js and are loaded by a script tag when first asked for, so from file:// as well.
(() => {
  const article = document.querySelector(".bd-article") ?? document.querySelector("[role=main], main");
  if (!article || !("popover" in HTMLElement.prototype)) return;
  const { home: HOME, touch: TOUCH } = document.currentScript.dataset, WAIT = 180, LINGER = 250;
  const root = new URL(document.documentElement.dataset.content_root ?? ".", location.href);
  const pages = {}, card = document.createElement("div");
  let shown = null, asked = null, timer = 0, finger = false;

  function load(page) {
    if (!pages[page]) {
      const script = document.createElement("script");
      pages[page] = {};
      pages[page].cards = new Promise((done) => {
        pages[page].done = done;
        script.onerror = () => done({});
      });
      script.src = new URL(`_cards/${page}.js`, root);
      document.head.append(script);
    }
    return pages[page].cards;
  }

  // The page, by its address, and the anchors that an element stands for: its entries, or where it links to.
  const listed = (entries) => ({ address: new URL(HOME, root), anchors: entries.split(" ") });
  function target(element) {
    if (element.dataset.entries) return listed(element.dataset.entries);
    const address = new URL(element.href);
    return { address, anchors: [decodeURIComponent(address.hash.slice(1))] };
  }
  // Its name in Sphinx, whether it lies in page.html, in page/ or in page/index.html.
  const named = ({ pathname }) => pathname.slice(root.pathname.length).replace(/(\/index)?(\.html)?\/?$/, "") || "index";

  // The cards as elements: links as seen from here, no anchor twice, formulas typeset.
  async function fill(box, { address, anchors }) {
    const cards = await load(named(address));
    const found = anchors.filter((anchor) => cards[anchor]).map((anchor) => cards[anchor]);
    if (!found.length) return false;
    const holder = document.createElement("template");
    holder.innerHTML = found[0].startsWith("<dt>") ? `<dl>${found.join("")}</dl>` : found.join("");
    for (const name of ["href", "src"])
      for (const each of holder.content.querySelectorAll(`[${name}]`)) each[name] = new URL(each.getAttribute(name), address);
    for (const each of holder.content.querySelectorAll("[data-entries]")) each.replaceWith(...each.childNodes);
    for (const each of holder.content.querySelectorAll("[id]")) each.removeAttribute("id");
    for (const each of holder.content.querySelectorAll("details")) each.open = false;
    if (box === card) for (const each of holder.content.querySelectorAll("a, [tabindex]")) each.tabIndex = -1;
    window.MathJax?.typesetClear?.([box]);
    box.replaceChildren(holder.content);
    await window.MathJax?.startup?.promise;
    await window.MathJax?.typesetPromise?.([box]);
    for (const each of box.querySelectorAll("mjx-container[tabindex]")) each.removeAttribute("tabindex");
    return true;
  }

  function place(element) {
    const at = element.getClientRects()[0] ?? element.getBoundingClientRect();
    const room = document.documentElement.clientWidth - card.offsetWidth - 8;
    const below = at.bottom + 6 + card.offsetHeight <= innerHeight || at.top < card.offsetHeight + 6;
    card.style.left = `${scrollX + Math.max(8, Math.min(at.left, room))}px`;
    card.style.top = `${scrollY + (below ? at.bottom + 6 : at.top - card.offsetHeight - 6)}px`;
  }

  async function show(element) {
    if (element === shown) return;
    hide();
    asked = element;
    if (!(await fill(card, target(element))) || asked !== element) return;
    card.showPopover();
    place(element);
    shown = element;
    element.setAttribute("aria-describedby", card.id);
  }

  function hide() {
    clearTimeout(timer);
    asked = null;
    shown?.removeAttribute("aria-describedby");
    shown = null;
    if (card.matches(":popover-open")) card.hidePopover();
  }

  function later(wait, work) {
    clearTimeout(timer);
    timer = setTimeout(work, wait);
  }

  const LINKS = "[data-entries], a.reference.internal[href*='#']";
  const from = (event) => (article.contains(event.target) ? event.target.closest(LINKS) : null);

  card.id = "hover-card";
  card.popover = "manual";
  card.setAttribute("role", "tooltip");
  document.body.append(card);

  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const element = from(event);
    if (card.contains(event.target) || (element && element === shown)) clearTimeout(timer);
    else if (element) later(WAIT, () => show(element));
    else if (shown || asked) later(LINGER, hide);
    else clearTimeout(timer);
  });
  document.addEventListener("pointerdown", (event) => {
    finger = event.pointerType === "touch";
    if (!card.contains(event.target) && event.target.closest?.("[data-entries], a") !== shown) hide();
  });
  // A finger has no hover: the first touch of some elements shows their card, the second follows their link.
  document.addEventListener("click", (event) => {
    const element = finger ? from(event) : null;
    if (!element?.matches(TOUCH) || element === shown) return;
    event.preventDefault();
    show(element);
  });
  document.addEventListener("focusin", (event) => {
    const element = from(event);
    if (element && !finger && event.target.matches(":focus-visible")) show(element);
  });
  document.addEventListener("focusout", (event) => from(event) === shown && hide());
  document.addEventListener("keydown", (event) => {
    finger = false;
    if (event.key === "Escape" && (shown || asked)) hide();
  });

  // Files of cards call it; other scripts fill boxes of their own with entries.
  window.sphinxCards = Object.assign((page, cards) => pages[page].done(cards), {
    fill: (box, entries) => fill(box, listed(entries)),
    hide,
    isOpen: () => Boolean(shown || asked),
  });
})();
