// What scrolls sideways can be reached with the Tab key, and shows a sign until its end is in view.
// It is looked at whenever its size changes, also when a proof or a hidden cell around it opens.
addEventListener("DOMContentLoaded", () => {
  function look(each) {
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
    else if (each.tabIndex === 0) each.removeAttribute("tabindex");
    // Less than that is the empty edge of a box, which the sign itself may take away.
    const more = each.scrollWidth - each.clientWidth - each.scrollLeft > 16;
    each.classList.toggle("goes-on", more);
    if (!more) return;
    const shown = each.matches("figure") ? each.querySelector("img, svg") : each;
    each.style.setProperty("--tall", `${shown?.clientHeight ?? 0}px`);
  }
  const sized = new ResizeObserver((entries) => entries.forEach((entry) => look(entry.target)));
  const scrolling =
    "figure, pre, .output, .lab-scroll, .sortable, .pst-scrollable-table-container, div.math, div.math mjx-container";
  const all = document.querySelectorAll(`.bd-article :is(${scrolling})`);
  for (const each of all) {
    sized.observe(each);
    each.addEventListener("scroll", () => look(each), { passive: true });
  }
  // What comes late, such as letters, changes what is in a box and not its size.
  document.fonts.addEventListener("loadingdone", () => all.forEach(look));
  addEventListener("load", () => all.forEach(look));
});

// An address may name what is folded away, such as a formula of a proof: what folds it opens. What
// has moved to another page since the address was written is shown there.
(() => {
  function follow(name) {
    const root = document.documentElement.dataset.content_root;
    window.attnbiasPlaces = (places) => {
      const page = Object.keys(places).find((each) => places[each].includes(name));
      if (page) location.replace(`${root}${page}.html#${name}`);
    };
    document.head.append(Object.assign(document.createElement("script"), { src: `${root}_static/places.js` }));
  }

  function unfold() {
    const name = location.hash.slice(1);
    let target = document.getElementById(name), shut = null;
    try {
      target ??= document.getElementById(decodeURIComponent(name));
    } catch {} // a per cent sign that encodes nothing
    if (/^[a-z][-\w]*$/i.test(name) && !target) return follow(name);
    for (let each = target?.parentElement; each; each = each.parentElement) {
      if (!each.matches("details:not([open]), .toggle-hidden")) continue;
      shut = each;
      if (each.matches("details")) each.open = true;
      else each.querySelector(".toggle-button").click();
    }
    if (shut) target.scrollIntoView();
  }
  addEventListener("load", unfold);
  addEventListener("hashchange", unfold);
})();

// On a phone the contents of a page lie over it: whoever has chosen from them wants to see the page.
addEventListener("click", (event) => {
  if (event.target.closest?.(".bd-sidebar-secondary a[href^='#']"))
    document.getElementById("pst-secondary-sidebar-checkbox").checked = false;
});

// A page as Markdown goes to the clipboard; where that is not allowed, as on disk, the link opens it.
addEventListener("click", async (event) => {
  const link = event.target.closest?.(".btn-copy-page-button");
  if (!link || location.protocol === "file:") return;
  event.preventDefault();
  try {
    const answer = await fetch(link.href);
    if (!answer.ok) throw new Error(answer.statusText);
    await navigator.clipboard.writeText(await answer.text());
    link.insertAdjacentHTML("afterend", '<span role="status" class="copied">Copied</span>');
    setTimeout(() => link.nextElementSibling.remove(), 2000);
  } catch {
    location.assign(link.href);
  }
});
