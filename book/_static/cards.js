// Cards: what a symbol, a term or a reference means, shown on hover, keyboard focus or touch; Escape hides them.
// The texts lie in _cards/PAGE.js and are loaded by a script tag when first asked for, so from file:// as well.
(() => {
  const sheet = document.getElementById("notation-card");
  if (!("popover" in HTMLElement.prototype)) return document.querySelector(".btn-notation-button")?.remove();
  const HOME = "book/notation", WAIT = 180, LINGER = 250;
  const root = new URL(document.documentElement.dataset.content_root, location.href);
  const pages = {}, card = document.createElement("div");
  let shown = null, asked = null, timer = 0, finger = false;

  window.attnbiasCards = (page, cards) => pages[page].done(cards);
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

  // The page and the anchors that a link or a formula stands for; nothing for any other element.
  function target(element) {
    const entries = element.dataset.entries ?? element.dataset.symbols;
    if (entries) return { page: HOME, anchors: entries.split(" ") };
    const url = new URL(element.href);
    const page = url.pathname.slice(root.pathname.length).replace(/\.html$/, "");
    return { page, anchors: [decodeURIComponent(url.hash.slice(1))] };
  }

  // The cards as elements: links as seen from here, no anchor twice, formulas typeset.
  async function fill(box, { page, anchors }) {
    const cards = await load(page);
    const found = anchors.filter((anchor) => cards[anchor]).map((anchor) => cards[anchor]);
    if (!found.length) return false;
    const list = page === HOME && anchors[0].match(/^(sym|term)-/);
    const holder = document.createElement("template");
    holder.innerHTML = list ? `<dl>${found.join("")}</dl>` : found.join("");
    const base = new URL(`${page}.html`, root);
    for (const name of ["href", "src"])
      for (const each of holder.content.querySelectorAll(`[${name}]`)) each[name] = new URL(each.getAttribute(name), base);
    for (const each of holder.content.querySelectorAll(".symbol, .term")) each.replaceWith(...each.childNodes);
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
  const from = (event) => (event.target.closest?.(".bd-article, .bd-article *") ? event.target.closest(LINKS) : null);

  window.attnbiasNotation = async (button) => {
    hide();
    if (sheet.matches(":popover-open")) return close();
    button.setAttribute("aria-expanded", "true");
    sheet.opener = button;
    const list = sheet.querySelector("[data-symbols]");
    if (!list.firstChild) await fill(list, target(list));
    sheet.hidden = false;
    sheet.showPopover();
    sheet.focus();
  };
  function close(back) {
    if (!sheet?.matches(":popover-open")) return;
    sheet.hidePopover();
    sheet.opener.setAttribute("aria-expanded", "false");
    if (back) sheet.opener.focus();
  }

  card.id = "hover-card";
  card.popover = "manual";
  card.setAttribute("role", "tooltip");
  document.body.append(card);

  // A link is one stop of the Tab key, not a second one at the formula in it.
  addEventListener("load", async () => {
    await window.MathJax?.startup?.promise;
    for (const each of document.querySelectorAll("a.symbol mjx-container")) each.removeAttribute("tabindex");
  });

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
    if (!sheet?.contains(event.target) && !event.target.closest?.(".btn-notation-button")) close();
  });
  // A finger has no hover: the first touch of a symbol, a term or a statement of the map shows its card, the second follows its link.
  document.addEventListener("click", (event) => {
    const element = finger ? from(event) : null;
    if (!element?.matches("[data-entries], .statement-map a") || element === shown) return;
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
    if (event.key !== "Escape") return;
    if (shown || asked) hide();
    else close(true);
  });
})();
