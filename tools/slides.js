// Turns the slides: arrows, space, Home, End, a click, a swipe. N shows what to say, D day or night.
(function () {
  "use strict";
  const root = document.documentElement, slides = [...document.querySelectorAll(".slide")];
  const bar = document.querySelector("progress"), number = document.querySelector("output");
  const upright = matchMedia("(max-aspect-ratio: 6 / 5)");
  const says = document.querySelectorAll(".said");
  const own = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  let now = 0, start = null;

  function show(k, scroll = true) {
    now = Math.min(Math.max(k, 0), slides.length - 1);
    slides.forEach((slide, k) => slide.classList.toggle("shown", k === now));
    bar.value = now + 1;
    number.textContent = `${now + 1} / ${slides.length}`;
    history.replaceState(null, "", `#s${now + 1}`);
    if (scroll && upright.matches) slides[now].scrollIntoView();
  }
  const asked = () => (Number(location.hash.slice(2)) || 1) - 1;
  const keys = {
    ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1,
    Home: -Infinity, End: Infinity,
  };
  addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "n") says.forEach((each) => { each.open = root.classList.toggle("says", !each.open); });
    else if (event.key === "d") root.dataset.theme = (root.dataset.theme ?? own) === "dark" ? "light" : "dark";
    else if (event.key in keys) {
      event.preventDefault();
      show(now + (event.shiftKey ? -1 : 1) * keys[event.key]);
    }
  });
  addEventListener("click", (event) => {
    if (upright.matches || event.target.closest("a, pre, nav, details") || getSelection().toString()) return;
    show(now + (event.clientX < innerWidth / 3 ? -1 : 1));
  });
  addEventListener("touchstart", (event) => { start = event.changedTouches[0].clientX; }, { passive: true });
  addEventListener("touchend", (event) => {
    const moved = event.changedTouches[0].clientX - start;
    if (!upright.matches && Math.abs(moved) > 50) show(now - Math.sign(moved));
  });
  const watch = new IntersectionObserver((seen) => {
    const inView = seen.find((each) => each.isIntersecting);
    if (upright.matches && inView) show(slides.indexOf(inView.target), false);
  }, { rootMargin: "-45% 0px" });
  addEventListener("hashchange", () => show(asked()));
  root.classList.add("deck");
  show(asked(), location.hash !== "");
  slides.forEach((slide) => watch.observe(slide));
})();
