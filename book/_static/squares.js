// The squares of a part are one stop of the Tab key; arrows, Home and End go from one to another.
for (const part of document.querySelectorAll(".squares ul:not(.looks)")) {
  const all = [...part.querySelectorAll("a")], last = all.length - 1;
  const stopAt = (square) => all.forEach((each) => { each.tabIndex = each === square ? 0 : -1; });
  stopAt(all[0]);
  part.addEventListener("focusin", (event) => stopAt(event.target));
  part.addEventListener("keydown", (event) => {
    const at = all.indexOf(event.target), ahead = at + 1, back = at - 1;
    const next = { ArrowRight: ahead, ArrowDown: ahead, ArrowLeft: back, ArrowUp: back, Home: 0, End: last }[event.key];
    if (next === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    all[Math.min(Math.max(next, 0), last)].focus();
  });
}
