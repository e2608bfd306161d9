// The laboratory's page: it keeps a set-up, trains it in slices, and draws what it has.
(function (lab) {
  "use strict";
  const SLICE = 14; // milliseconds of training between two pictures
  const RECORDS = 160;
  const MOMENTUM = 0.9; // of the menu
  const REACH = 2.6, FINE = 0.01, COARSE = 0.05; // of the plane, and of its arrow keys

  const root = document.getElementById("laboratory");
  if (!root) return;
  const get = (name) => root.querySelector(`[data-lab="${name}"]`);
  let setup, problem, records = [], version = 0, address = 0;
  let at = 0, wanted = Infinity; // the record that is shown, and the one that was asked for: the last
  let opened = "", typed = false; // the preset that this set-up was, and whether it has scores of its own

  // --- training ------------------------------------------------------------------------------

  function restart() {
    version += 1;
    problem = lab.prepare(setup);
    records = [];
    keepAddress();
    if (typed && !setup.scores) say([get("note").textContent, "The scores that were typed are given up: all come from u again."]);
    typed = Boolean(setup.scores);
    showSetup();
    if (problem.tied) return showTie();
    const run = new lab.Run(lab.runnable(setup), problem), steps = lab.grid(setup.steps, RECORDS);
    records.push(run.record());
    work(run, steps.slice(1), version);
  }

  function work(run, steps, mine) {
    if (mine !== version) return;
    const until = performance.now() + SLICE;
    while (steps.length && run.status === "running" && performance.now() < until) {
      run.advance(Math.min(steps[0], run.step + 500));
      if (run.step < steps[0] || run.status !== "running") continue;
      if (run.step > records[records.length - 1].step) records.push(run.record());
      steps.shift();
    }
    const done = !steps.length || run.status !== "running";
    at = Math.min(wanted, records.length - 1);
    draw();
    root.dataset.state = done ? "done" : "running";
    if (done) get("said").innerHTML = lab.endWords(setup, problem, records, run.status);
    else requestAnimationFrame(() => work(run, steps, mine));
  }

  // --- pictures ------------------------------------------------------------------------------

  const { number } = lab;
  function draw() {
    const now = records[at];
    get("below").innerHTML = lab.drawPlane(setup, problem, now);
    get("compass").innerHTML = lab.drawCompass(problem, records, at);
    get("attention").innerHTML = lab.drawAttention(setup, problem, records, at);
    get("error").innerHTML = lab.drawError(setup, records, at);
    const time = get("time"), slope = lab.slope(records, at);
    time.max = records.length - 1;
    time.value = at;
    time.setAttribute("aria-valuetext", `step ${number(now.step)}`);
    const error = now.error === null || Number.isNaN(now.error) ? "not defined" : number(now.error);
    get("readout").innerHTML = `Step ${number(now.step)}: 1 − cosine ${error}` +
      (Number.isFinite(slope) ? `, slope ${slope.toFixed(2).replace("-", "−")}` : "") +
      `, |W| = ${number(now.norm)}, log of the loss ${number(now.logLoss)}`;
  }

  function drawTokens() {
    const layer = get("tokens");
    const wanted = ["u", ...setup.X.flatMap((tokens, i) => tokens.map((_, t) => `${i}.${t}`))];
    const names = [...layer.children].map((each) => each.dataset.name);
    if (names.join() !== wanted.join()) layer.replaceChildren(...wanted.map(draggable));
    for (const each of layer.children) {
      const [i, t] = each.dataset.name.split(".").map(Number), x = pointOf(each.dataset.name);
      const place = `${x[0].toFixed(2)}, ${x[1].toFixed(2)}`;
      each.setAttribute("transform", `translate(${lab.toPlane(x).map((value) => value.toFixed(1)).join(" ")})`);
      each.setAttribute("aria-valuenow", x[0]);
      each.setAttribute("aria-valuetext", place);
      const optimal = !problem.tied && problem.opt[i] === t;
      const drawn = each.dataset.name === "u" ? lab.drawDecoder() : lab.drawToken(i, t, optimal);
      if (each.drawn !== drawn) each.innerHTML = each.drawn = drawn;
    }
  }

  function draggable(name) {
    const each = document.createElementNS("http://www.w3.org/2000/svg", "g"), [i, t] = name.split(".");
    const words = name === "u" ? "decoder u" : `sequence ${+i + 1}, token ${+t + 1}`;
    const parts = { class: "drag", tabindex: 0, role: "slider", "aria-label": `${words}: move with the arrow keys`,
      "aria-valuemin": -REACH, "aria-valuemax": REACH };
    for (const [key, value] of Object.entries(parts)) each.setAttribute(key, value);
    each.dataset.name = name;
    return each;
  }

  // --- words ---------------------------------------------------------------------------------

  function showSetup() {
    drawTokens();
    const momentum = setup.momentum > 0;
    get("rule").querySelector("[value=momentum]").textContent = `NGD, momentum ${setup.momentum || MOMENTUM}`;
    get("rule").value = momentum ? "momentum" : setup.normalise === "shared" ? "shared" : setup.rule;
    for (const option of get("rule").options)
      option.hidden = option.disabled = option.value === (setup.joint ? "momentum" : "shared");
    get("joint").value = setup.joint ? "both" : "W";
    get("also").hidden = !setup.joint;
    const capped = setup.rule === "Polyak"; // it takes no step size, and may have a cap
    get("step-name").textContent = capped ? "Cap, if any" : "Step size";
    get("step").value = capped ? setup.cap || "" : setup.step;
    const steps = get("steps"), values = [...steps.options].map(({ value }) => Number(value));
    if (!values.includes(setup.steps))
      steps.add(new Option(setup.steps.toLocaleString("en"), setup.steps), values.filter((value) => value < setup.steps).length);
    steps.value = setup.steps;
    const name = lab.toHash(setup).slice(1), preset = get("preset");
    preset.value = lab.PRESETS[name] ? name : "";
    opened = preset.value || opened; // its words stay while no more is changed than they say
    if (!preset.value && opened && !lab.asTold(opened, setup)) opened = "";
    get("look").textContent = opened
      ? `${preset.querySelector(`[value="${opened}"]`).textContent}: ${lab.PRESETS[opened].look}`
      : "A set-up of your own: the address of this page holds it.";
    get("python").textContent = lab.asPython(setup);
    if (!get("numbers").contains(document.activeElement)) showNumbers();
    else showScores();
  }

  const cell = (key, value, words) =>
    `<td><input type="number" step="any" data-key="${key}" value="${value}" aria-label="${words}"></td>`;

  function showNumbers() {
    const rows = setup.X.flatMap((tokens, i) => tokens.map((x, t) => {
      const name = `sequence ${i + 1}, token ${t + 1}`;
      const label = t ? "<td></td>" : `<td><select data-key="y.${i}" aria-label="label of sequence ${i + 1}">` +
        ["1", "-1"].map((y) => `<option value="${y}"${+y === setup.y[i] ? " selected" : ""}>${y === "1" ? "+1" : "−1"}</option>`).join("") + "</select></td>";
      return `<tr><th scope="row">${i + 1}.${t + 1}</th>${label}` +
        x.map((value, j) => cell(`X.${i}.${t}.${j}`, value, `${name}, ${"xy"[j]}`)).join("") +
        (setup.joint ? "" : cell(`scores.${i}.${t}`, problem.scores[i][t], `${name}, score`)) + `<td data-score="${i}.${t}"></td></tr>`;
    }));
    get("numbers").innerHTML = `<table><thead><tr><th scope="col">token</th><th scope="col">label</th><th scope="col">x</th>` +
      `<th scope="col">y</th>${setup.joint ? "" : '<th scope="col">score</th>'}<td></td></tr></thead><tbody>${rows.join("")}</tbody></table>` +
      `<table><tbody><tr><th scope="row">decoder u</th>${setup.u.map((value, j) => cell(`u.${j}`, value, `u, ${"xy"[j]}`)).join("")}</tr>` +
      setup.W0.map((row, a) => `<tr><th scope="row">start W<sub>0</sub>, row ${a + 1}</th>` +
        row.map((value, b) => cell(`W0.${a}.${b}`, value, `start W0, row ${a + 1}, column ${b + 1}`)).join("") + "</tr>").join("") + "</tbody></table>";
    get("count").value = setup.X.length;
    get("length").value = setup.X[0].length;
    showScores();
  }

  function showScores() {
    for (const each of get("numbers").querySelectorAll("[data-score]")) {
      const [i, t] = each.dataset.score.split(".");
      const input = each.parentElement.querySelector("[data-key^=scores]"), score = problem.scores[i][t];
      if (input && input !== document.activeElement) input.value = Number(score.toPrecision(12));
      each.textContent = !problem.tied && problem.opt[i] === +t ? "optimal" : "";
    }
  }

  function showTie() {
    for (const name of ["below", "compass", "attention", "error", "readout"]) get(name).replaceChildren();
    get("time").max = 0;
    get("time").setAttribute("aria-valuetext", "no run");
    get("said").innerHTML = lab.tieWords(setup, problem);
    root.dataset.state = "done";
  }

  // --- what the reader does --------------------------------------------------------------------

  const pointOf = (name) => (name === "u" ? setup.u : setup.X[name.split(".")[0]][name.split(".")[1]]);
  function movePoint(name, [x, y]) {
    const point = pointOf(name);
    const kept = (value, old) => { // within the picture, or no farther out
      const near = Math.max(Math.min(-REACH, old), Math.min(Math.max(REACH, old), value));
      return Math.round(near / FINE) / Math.round(1 / FINE);
    };
    const next = [kept(x, point[0]), kept(y, point[1])];
    if (next.join() === point.join()) return;
    [point[0], point[1]] = next;
    if (name === "u") setup.scores = null; // all scores are its own again
    restart();
  }

  const plane = get("plane");
  const under = (event) => {
    const box = plane.getBoundingClientRect(), scale = 360 / box.width;
    return lab.fromPlane([(event.clientX - box.left) * scale, (event.clientY - box.top) * scale]);
  };
  // A token has the pointer that took it, so that another finger moves nothing, or another token.
  plane.addEventListener("pointerdown", (event) => {
    const each = event.target.closest("g.drag");
    if (!each || event.button || each.classList.contains("held")) return;
    say([]);
    each.classList.add("held");
    each.setPointerCapture(event.pointerId);
    each.focus({ preventScroll: true });
    event.preventDefault();
  });
  plane.addEventListener("pointermove", (event) => {
    const each = event.target.closest("g.drag");
    if (each?.hasPointerCapture(event.pointerId)) movePoint(each.dataset.name, under(event));
  });
  plane.addEventListener("lostpointercapture", (event) => event.target.classList.remove("held"));
  plane.addEventListener("keydown", (event) => {
    const each = event.target.closest("g.drag");
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!each || !way) return;
    event.preventDefault();
    say([]);
    const size = event.shiftKey ? FINE : COARSE, [x, y] = pointOf(each.dataset.name);
    movePoint(each.dataset.name, [x + size * way[0], y + size * way[1]]);
  });

  // Nothing that a reader gives is changed in silence.
  function say(notes) {
    get("note").textContent = notes.filter(Boolean).join("\n");
  }
  function change(parts) {
    say([]);
    setup = lab.filled({ ...setup, ...parts });
    restart();
  }
  // The number of a field, shown as it is used.
  function typedNumber(input, key, old, name, text = input.value) {
    const used = lab.nearest(key, text, old);
    say(lab.note(name, text, used, key));
    input.value = used;
    return used;
  }
  const on = (name, kind, work) => get(name).addEventListener(kind, (event) => work(event.target.value, event));
  on("preset", "change", (name) => { say([]); take(lab.PRESETS[name].setup); });
  on("rule", "change", (name) => {
    const rule = { momentum: "NGD", shared: "NGD" }[name] ?? name;
    change({ rule, momentum: name === "momentum" ? MOMENTUM : 0, normalise: name === "shared" ? "shared" : "separate" });
  });
  on("joint", "change", (name) => change({ joint: name === "both", momentum: 0 }));
  on("step", "change", (value, { target }) => {
    const key = setup.rule === "Polyak" ? "cap" : "step", none = key === "cap" && !value && !target.validity.badInput;
    setup[key] = typedNumber(target, key, setup[key], get("step-name").textContent, none ? "0" : value);
    restart();
  });
  on("steps", "change", (value) => change({ steps: Number(value) }));
  on("time", "input", (value) => {
    wanted = Number(value) === records.length - 1 ? Infinity : Number(value);
    at = Number(value);
    if (records.length) draw();
  });
  on("numbers", "change", (_, { target }) => {
    const [kind, ...keys] = target.dataset.key.split("."), last = keys.pop();
    const row = (whole) => keys.reduce((part, key) => part[key], whole);
    const old = row(setup[kind] ?? problem.scores)[last];
    const used = typedNumber(target, "number", old, target.getAttribute("aria-label"));
    if (used === old) return;
    if (kind === "scores") setup.scores ??= problem.scores.map((scores) => [...scores]);
    if (kind === "u") setup.scores = null;
    row(setup[kind])[last] = used;
    restart();
  });
  // New tokens stand where none is yet, on a circle.
  const another = (i, t) => [0, 1].map((j) => Number((1.6 * [Math.cos, Math.sin][j](1.1 + 2.4 * i + 1.3 * t)).toFixed(2)));
  const resize = (n, T) => change({
    X: Array.from({ length: n }, (_, i) => Array.from({ length: T }, (_, t) => setup.X[i]?.[t] ?? another(i, t))),
    y: Array.from({ length: n }, (_, i) => setup.y[i] ?? 1),
  });
  on("count", "change", (value) => { resize(Number(value), setup.X[0].length); showNumbers(); });
  on("length", "change", (value) => { resize(setup.X.length, Number(value)); showNumbers(); });
  const copied = async (button, words) => {
    await navigator.clipboard?.writeText(words).catch(() => {});
    const before = button.textContent;
    button.textContent = "copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  };
  on("link", "click", (_, event) => copied(event.target, location.href));
  on("copy", "click", (_, event) => copied(event.target, lab.asPython(setup)));

  const FIRST = Object.keys(lab.PRESETS)[0];
  let heard = "", says = ""; // the address, and the set-up that stands for it
  function keepAddress() {
    clearTimeout(address);
    address = setTimeout(() => { // browsers refuse many in a second
      const hash = lab.toHash(setup);
      if (hash === says || location.hash !== heard) return; // the event of a new address is to come
      history.replaceState(null, "", hash);
      heard = location.hash;
      says = hash;
    }, 400);
  }
  function take(found) {
    setup = lab.filled(found);
    opened = "";
    typed = false;
    wanted = Infinity;
    restart();
  }
  // An anchor of the page asks for no set-up, and stands for the first as no address does.
  function open() {
    heard = location.hash;
    const name = heard.slice(1), notes = [];
    const asked = name && (Object.hasOwn(lab.PRESETS, name) || !document.getElementById(name));
    const found = asked ? lab.fromHash(heard, notes) : null;
    says = !asked ? "#" + FIRST : notes.length ? "" : lab.toHash(found);
    if (found || !setup) take(found ?? lab.PRESETS[FIRST].setup);
    else keepAddress();
    if (asked) say(notes);
  }
  addEventListener("hashchange", open);
  open();
})((globalThis.Laboratory ??= {}));
