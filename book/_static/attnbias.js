// What scrolls sideways can be reached with the Tab key. Its size is looked at whenever it changes,
// also when a proof or a hidden cell around it opens.
addEventListener("DOMContentLoaded", () => {
  const sized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else if (target.tabIndex === 0) target.removeAttribute("tabindex");
    }
  });
  const scrolling =
    "figure, pre, .output, .pst-scrollable-table-container, div.math, div.math mjx-container, p:has(> .math)";
  document.querySelectorAll(`.bd-article :is(${scrolling})`).forEach((each) => sized.observe(each));
});

// An address may name what is folded away, such as a formula of a proof: what folds it opens.
(() => {
  function unfold() {
    const name = location.hash.slice(1);
    let target = document.getElementById(name), shut = null;
    try {
      target ??= document.getElementById(decodeURIComponent(name));
    } catch {} // a per cent sign that encodes nothing
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
