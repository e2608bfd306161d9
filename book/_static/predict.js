// Bets are remembered in the reader's browser, by page, number and a stamp of what was asked; nothing is sent.
(() => {
  const KEY = "attnbias-bets";
  const boxes = document.querySelectorAll("fieldset.predict[data-bet]"), table = document.querySelector("table.bets");
  if (!boxes.length && !table) return;
  let kept = {};
  try {
    kept = JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {}  // a browser that keeps nothing
  const save = () => {
    try {
      localStorage.setItem(KEY, JSON.stringify(kept));
    } catch {}
  };

  const root = new URL(document.documentElement.dataset.content_root, location.href);
  const page = location.pathname.slice(root.pathname.length).replace(/\.html$/, "");
  for (const box of boxes) {
    const name = `${page}#${box.dataset.bet}`, inputs = [...box.querySelectorAll("input")];
    if (name in kept && inputs[kept[name].place]) inputs[kept[name].place].checked = true;
    box.addEventListener("change", (event) => {
      kept[name] = { place: inputs.indexOf(event.target), won: event.target.closest("label").classList.contains("right") };
      save();
    });
  }

  if (!table) return;
  function count() {
    for (const row of table.querySelectorAll("tr[data-pages]")) {
      const pages = row.dataset.pages.split(" ");
      const bets = Object.entries(kept).filter(([name]) => pages.includes(name.split("#")[0])).map(([, bet]) => bet);
      row.lastElementChild.textContent = bets.length ? `${bets.filter((bet) => bet.won).length} of ${bets.length} made` : "none made yet";
    }
  }
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn btn-sm btn-outline-secondary";
  button.textContent = "Forget my bets";
  button.addEventListener("click", () => ((kept = {}), save(), count()));
  table.after(button);
  count();
})();
