// The ledger's rows by part, verdict and words. The choice stands in the address, so that it can be sent; without scripts all rows are there.
(() => {
  const lists = [...document.querySelectorAll(".rows")];
  if (!lists.length) return;
  const title = (section) => section.querySelector("h2, h3").firstChild.textContent;
  const looks = new Map([...document.querySelectorAll(".squares .looks .square")].map((square) => [square.className, square.nextSibling.textContent.replace(/ \d+$/, "").trim()]));
  const rows = lists.flatMap((list) => [...list.querySelectorAll(":scope > ul > li")].map((item) => {
    const anchor = item.querySelector('[id^="claim-"]');
    const verdict = looks.get(anchor.firstElementChild.className), part = title(list.closest("section"));
    const words = `${item.textContent} ${part} ${anchor.id.slice(6)}`.toLowerCase().replaceAll("\u2061", " ");
    return { item, anchor: anchor.id, part, verdict, words };
  }));

  const form = document.createElement("form"), shown = document.createElement("output");
  form.className = "sift";
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", "Rows of the ledger");
  function field(name, label, control) {
    const box = form.appendChild(document.createElement("label"));
    box.append(label, Object.assign(control, { name }));
    return control;
  }
  function menu(name, label) {
    const values = [...new Set(rows.map((row) => row[name]))], control = document.createElement("select");
    control.append(new Option("all", ""), ...values.map((value) => new Option(value)));
    return field(name, label, control);
  }
  const controls = { part: menu("part", "Part"), verdict: menu("verdict", "Verdict"), words: field("words", "Words", document.createElement("input")) };
  controls.words.type = "search";
  const all = form.appendChild(document.createElement("button"));
  all.type = "reset";
  all.textContent = "All rows";
  shown.setAttribute("aria-live", "polite");
  form.append(shown);
  lists[0].closest("section").parentElement.before(form);

  function sift() {
    const part = controls.part.value, verdict = controls.verdict.value;
    const words = controls.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.item.hidden = (part && row.part !== part) || (verdict && row.verdict !== verdict) || !words.every((word) => row.words.includes(word));
    for (const list of lists) {
      const none = list.querySelectorAll("li:not([hidden])").length === 0, section = list.closest("section");
      section.hidden = none;
      section.parentElement.hidden = !section.parentElement.querySelector(":scope > section:not([hidden])");
    }
    shown.textContent = `${rows.filter((row) => !row.item.hidden).length} of ${rows.length} claims`;
  }
  function read() {
    const asked = new URLSearchParams(location.search);
    for (const [name, control] of Object.entries(controls)) {
      control.value = asked.get(name) ?? "";
      if (control.selectedIndex < 0) control.value = ""; // no such part or verdict
    }
    sift();
  }
  function write() {
    const asked = new URLSearchParams(location.search);
    for (const [name, control] of Object.entries(controls)) control.value.trim() ? asked.set(name, control.value.trim()) : asked.delete(name);
    const query = asked.toString();
    history.replaceState(null, "", location.pathname + (query && `?${query}`) + location.hash);
    sift();
  }
  // A link to a row that is left out shows all of them.
  function follow() {
    const row = rows.find((each) => each.anchor === location.hash.slice(1));
    if (!row?.item.hidden) return;
    for (const control of Object.values(controls)) control.value = "";
    write();
    document.getElementById(row.anchor).scrollIntoView();
  }
  form.addEventListener("input", write);
  form.addEventListener("reset", () => setTimeout(write));
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", follow);
  addEventListener("popstate", read);
  read();
  follow();
})();
