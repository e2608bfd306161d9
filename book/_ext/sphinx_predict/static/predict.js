// Bets are remembered in the reader's browser, by page, number and a stamp of what was asked; nothing is sent.
(() => {
  const KEY = document.currentScript.dataset.storage;
  const boxes = document.querySelectorAll("fieldset.predict[data-bet]"), table = document.querySelector("table.bets");
  if (!boxes.length && !table) return;
  // What is no bet, whoever wrote it there, is left out; so it is gone when the next one is kept.
  function read() {
    let found = null;
    try {
      found = JSON.parse(localStorage.getItem(KEY));
    } catch {}  // no JSON
    if (Array.isArray(found)) return {};
    const bets = Object.entries(found ?? {}).filter(([, bet]) => bet?.place >= 0 && Number.isInteger(bet.place) && typeof bet.won === "boolean");
    return Object.fromEntries(bets);
  }
  function save(kept) {
    try {
      localStorage.setItem(KEY, JSON.stringify(kept));
    } catch {}  // a browser that is full
  }

  // A page by its name in Sphinx, whether it lies in page.html, in page/ or in page/index.html.
  const plain = (name) => name.replace(/(\/index)?(\.html)?\/?$/, "") || "index";
  const root = new URL(document.documentElement.dataset.content_root ?? ".", location.href);
  const page = plain(location.pathname.slice(root.pathname.length));
  for (const box of boxes) {
    const name = `${page}#${box.dataset.bet}`, inputs = [...box.querySelectorAll("input")];
    const place = read()[name]?.place;
    if (inputs[place]) inputs[place].checked = true;
    box.addEventListener("change", (event) => {
      const won = event.target.closest("label").classList.contains("right");
      save({ ...read(), [name]: { place: inputs.indexOf(event.target), won } });
    });
  }

  if (!table) return;
  function count() {
    for (const row of table.querySelectorAll("tr[data-pages]")) {
      const pages = row.dataset.pages.split(" ").map(plain);
      const bets = Object.entries(read()).filter(([name]) => pages.includes(name.split("#")[0])).map(([, bet]) => bet);
      row.lastElementChild.textContent = bets.length ? `${bets.filter((bet) => bet.won).length} of ${bets.length} made` : "none made yet";
    }
  }
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn btn-sm btn-outline-secondary";
  button.textContent = "Forget my bets";
  button.addEventListener("click", () => (save({}), count()));
  table.after(button);
  count();
})();
