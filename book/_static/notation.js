// The card of all symbols of a page, behind a button: that opens and closes it, as do Escape and a press beside it.
(() => {
  const sheet = document.getElementById("notation-card"), cards = window.sphinxCards;
  if (!cards) return document.querySelector(".btn-notation-button")?.remove();
  sheet.classList.add("card-sheet");

  window.attnbiasNotation = async (button) => {
    cards.hide();
    if (sheet.matches(":popover-open")) return close();
    button.setAttribute("aria-expanded", "true");
    sheet.opener = button;
    const list = sheet.querySelector("[data-symbols]");
    if (!list.firstChild) await cards.fill(list, list.dataset.symbols);
    sheet.hidden = false;
    sheet.showPopover();
    sheet.focus();
  };
  function close(back) {
    if (!sheet.matches(":popover-open")) return;
    sheet.hidePopover();
    sheet.opener.setAttribute("aria-expanded", "false");
    if (back) sheet.opener.focus();
  }

  // A link is one stop of the Tab key, not a second one at the formula in it.
  addEventListener("load", async () => {
    await window.MathJax?.startup?.promise;
    for (const each of document.querySelectorAll("a.symbol mjx-container")) each.removeAttribute("tabindex");
  });

  document.addEventListener("pointerdown", (event) => {
    if (!sheet.contains(event.target) && !event.target.closest?.(".btn-notation-button")) close();
  });
  // Before the small card hears of it, which Escape hides first.
  document.addEventListener("keydown", (event) => event.key === "Escape" && !cards.isOpen() && close(true), true);
})();
