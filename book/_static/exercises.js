// Answers to exercises, checked in the page as `book/exercises.py` checks them in the notebook; nothing is sent or kept.
(() => {
  // FNV-1a in 32 bits
  function hashed(text) {
    let found = 2166136261;
    for (const byte of new TextEncoder().encode(text)) found = Math.imul(found ^ byte, 16777619) >>> 0;
    return found;
  }
  // 1,000 and 1/3 and a typographer's minus are numbers to a reader.
  function read(text) {
    const plain = text.replace(/\s/g, "").replaceAll("\u2212", "-").replace(/^[+-]?[1-9]\d{0,2}(,\d{3})+(?![\d,])/, (whole) => whole.replaceAll(",", ""));
    const [above, below = "1", ...more] = plain.split("/");
    return above && below && !more.length ? Number(above) / Number(below) : NaN;
  }
  // All that is right of a number lies in one cell of a logarithmic grid, or near 0.
  function cells(value, { kind, width, within }, offset) {
    if (kind === "whole") return [String(value)];
    const found = Math.abs(value) <= within ? ["0"] : [];
    const cell = Math.round(Math.log(Math.abs(value)) / width - offset);
    return value ? [...found, `${value < 0 ? "-" : "+"}${cell}`] : found;
  }
  for (const form of document.querySelectorAll("form.answer")) {
    const { label, given } = form.dataset, asked = JSON.parse(given), said = form.querySelector("output");
    const fields = [...form.querySelectorAll("input, select")], hint = form.parentElement.querySelector("details.hint");
    form.hidden = false;
    form.addEventListener("input", () => (said.textContent = ""));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const word = asked.kind === "word", values = fields.map((field) => (word ? field.value.toLowerCase() : read(field.value)));
      if (values.some((value) => (word ? !value : Number.isNaN(value)))) {
        said.textContent = word ? "Choose one." : "Write a number, such as 0.25, 1/4 or 2.5e-3.";
        return;
      }
      const right = asked.marks.every(([offset, mark], place) => {
        const tried = word ? [values[place]] : cells(values[place], asked, offset);
        return tried.some((cell) => hashed(`${label}/${place}/${cell}`) === mark);
      });
      said.textContent = right ? "Right." : "Not yet.";
      if (!right && hint) hint.open = true;
    });
  }
})();
