// On a phone one picture at a time: they lie side by side, moved by a swipe or by the buttons above.
(function (lab) {
  "use strict";
  lab.listenToTabs = function (root) {
    const row = root.querySelector("[data-lab=pictures]"), buttons = [...root.querySelectorAll("[data-tab]")];
    const figures = buttons.map((each) => row.querySelector(`[data-picture="${each.dataset.tab}"]`));
    buttons.forEach((button, k) => button.addEventListener("click", () => {
      row.scrollTo({ left: figures[k].offsetLeft - figures[0].offsetLeft });
    }));
    const look = () => {
      const shown = Math.round(row.scrollLeft / (figures[1].offsetLeft - figures[0].offsetLeft || 1));
      buttons.forEach((button, k) => button.setAttribute("aria-pressed", k === shown));
    };
    row.addEventListener("scroll", look, { passive: true });
    look();
  };
})((globalThis.Laboratory ??= {}));
