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
