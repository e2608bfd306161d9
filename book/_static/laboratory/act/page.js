// The laboratory's page: it keeps a set-up, trains it in slices, and draws what it has.
(function (lab) {
  "use strict";
  const SLICE = 14; // milliseconds of training between two pictures

  const root = document.getElementById("laboratory");
  if (!root) return;
  const get = (name) => root.querySelector(`[data-lab="${name}"]`);
  let setup, problem, race = null, times = [], ghost = null, version = 0, address = 0;
  let opened = "", told = null; // the preset that this set-up was, and whose words are shown
  let typed = false; // whether it has scores of its own

  // --- training ------------------------------------------------------------------------------

  function restart() {
    version += 1;
    problem = lab.prepare(setup);
    race = null;
    keepAddress();
    if (typed && !setup.scores) say([get("note").textContent, "The scores that were typed are given up: all come from u again."]);
    typed = Boolean(setup.scores);
    showSetup();
    for (const name of ["play", "time"]) get(name).disabled = problem.tied;
    if (problem.tied) return showTie();
    times = lab.grid(setup.steps);
    race = new lab.Race(setup, problem, times);
    work(version);
  }

  function work(mine) {
    if (mine !== version) return;
    const done = race.work(performance.now() + SLICE);
    draw();
    root.dataset.state = done ? "done" : "running";
    if (done) showEnd();
    else requestAnimationFrame(() => work(mine));
  }

  function showEnd() {
    const { records, run } = race.followed, ends = lab.endings(setup, problem, records, run.status);
    get("said").innerHTML = lab.endWords(setup, problem, records, run.status) + (setup.float64 ? lab.floatWords(race, problem) : "");
    get("challenge").innerHTML = lab.challenge(setup, problem, ends);
    showLook(ends);
  }

  // --- pictures ------------------------------------------------------------------------------

  const { number } = lab;
  function draw() {
    const { records } = race.followed, now = lab.recordAt(records, setup.at);
    get("below").innerHTML = lab.drawPlane(setup, problem, now);
    get("compass").innerHTML = lab.drawCompass(problem, race, setup.at, ghost);
    get("error").innerHTML = lab.drawError(setup, problem, race, setup.at, ghost);
    [...get("attention").children].forEach((each, i) => {
      each.innerHTML = lab.drawAttention(setup, problem, records, setup.at, i);
    });
    lab.showLegend(get("rule"), setup, race, ghost);
    const time = get("time"), slope = lab.slope(records, now.step);
    time.max = times.length - 1;
    time.value = times.findLastIndex((each) => each <= setup.at);
    time.setAttribute("aria-valuetext", `step ${number(now.step)}`);
    const error = Number.isNaN(now.error) ? "not defined" : number(now.error);
    get("readout").innerHTML = `Step ${number(now.step)}: 1 − cosine ${error}` +
      (Number.isFinite(slope) ? `, slope ${slope.toFixed(2).replace("-", "−")}` : "") +
      `, |W| = ${number(now.norm)}, log of the loss ${number(now.logLoss)}`;
  }

  function drawTokens() {
    const layer = get("tokens");
    const wanted = ["u", ...setup.X.flatMap((tokens, i) => tokens.map((_, t) => `${i}.${t}`))];
    const names = [...layer.children].map((each) => each.dataset.name);
    if (names.join() !== wanted.join()) layer.replaceChildren(...wanted.map(lab.draggable));
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
    const strips = get("attention"), strip = (i) => `<svg viewBox="0 0 360 128" role="img" aria-label="Attention of each token of sequence ${i + 1} against the step, its optimal token in bold."></svg>`;
    if (strips.children.length !== setup.X.length) strips.innerHTML = setup.X.map((_, i) => strip(i)).join("");
  }

  // --- words ---------------------------------------------------------------------------------

  function showSetup() {
    drawTokens();
    lab.showLegend(get("rule"), setup, null, ghost);
    get("joint").value = setup.joint ? "both" : "W";
    get("also").hidden = !setup.joint;
    get("race").checked = setup.race;
    get("float64").checked = setup.float64;
    const capped = setup.rule === "Polyak"; // it takes no step size, and may have a cap
    get("step-name").textContent = capped ? "Cap of Polyak, if any" : "Step size";
    get("step").value = capped ? setup.cap || "" : setup.step;
    const steps = get("steps"), values = [...steps.options].map(({ value }) => Number(value));
    if (!values.includes(setup.steps))
      steps.add(new Option(setup.steps.toLocaleString("en"), setup.steps), values.filter((value) => value < setup.steps).length);
    steps.value = setup.steps;
    const name = lab.presetOf(setup);
    get("preset").value = name;
    opened = name || opened; // its words stay while no more is changed than they say
    if (!name && opened && !lab.asTold(opened, setup)) opened = "";
    showLook(null);
    get("python").textContent = lab.asPython(setup);
    if (!get("numbers").contains(document.activeElement)) showNumbers();
    else lab.showScores(get("numbers"), problem);
  }

  // The words of a set-up of the menu; of one's own, that it is. What is done is known at the end.
  function showLook(ends) {
    if (!ends && told === opened) return;
    told = opened;
    const { look, todo, done, next } = lab.PRESETS[opened] ?? {};
    if (opened) get("look").removeAttribute("style");
    else get("look").style.minHeight = `${get("look").offsetHeight}px`; // a held token stays where it is
    get("look").innerHTML = !opened ? "A set-up of your own: the address of this page holds it."
      : ends && done({ setup, problem, ends }) ? `<span class="done"><span aria-hidden="true">✓</span> Done:</span> ${next}`
      : `${title()} ${look} <b>Try:</b> ${todo}`;
  }

  function showNumbers() {
    get("numbers").innerHTML = lab.numbersTable(setup, problem);
    get("count").value = setup.X.length;
    get("length").value = setup.X[0].length;
    lab.showScores(get("numbers"), problem);
  }

  function showTie() {
    clock.stop();
    for (const name of ["below", "compass", "error", "readout", "challenge"]) get(name).replaceChildren();
    for (const each of get("attention").children) each.replaceChildren();
    get("time").max = 0;
    get("time").setAttribute("aria-valuetext", "no run");
    get("said").innerHTML = lab.tieWords(setup, problem);
    root.dataset.state = "done";
  }

  // --- what the reader does --------------------------------------------------------------------

  const clock = new lab.Clock(get("play"), { show, now: () => setup.at, last: () => setup.steps, stopped: keepAddress, readout: get("readout") });
  function show(step) {
    setup.at = step;
    if (race) draw();
  }

  // Nothing that a reader gives is changed in silence.
  function say(notes) {
    get("note").textContent = notes.filter(Boolean).join("\n");
  }
  // Before a set-up changes: its curve stays as a ghost, and who was at the beginning sees the end.
  function begin() {
    say([]);
    clock.stop();
    if (race && root.dataset.state === "done")
      ghost = { problem, records: race.followed.records, words: lab.nameOf(race.followed.name, setup) };
    setup.at ||= setup.steps;
  }
  function change(parts) {
    const ended = (begin(), setup.at === setup.steps);
    setup = lab.filled({ ...setup, ...parts });
    if (ended || setup.at > setup.steps) setup.at = setup.steps;
    restart();
  }
  // What is shown changes, and the tokens do not.
  function look(parts) {
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

  const pointOf = (name) => (name === "u" ? setup.u : setup.X[name.split(".")[0]][name.split(".")[1]]);
  function move(name, where) {
    const point = pointOf(name), next = lab.kept(where, point);
    if (next.join() === point.join()) return;
    [point[0], point[1]] = next;
    if (name === "u") setup.scores = null; // all scores are its own again
    restart();
  }
  lab.listenToDrags(get("plane"), { pointOf, move, begin });

  const on = (name, kind, work) => get(name).addEventListener(kind, (event) => work(event.target.value, event));
  on("preset", "change", (name) => { say([]); take(lab.PRESETS[name].setup); });
  on("rule", "change", (name) => { ghost = setup.race ? null : ghost; look(lab.withRule(setup, name)); });
  on("race", "change", (_, { target }) => look({ race: target.checked }));
  on("float64", "change", (_, { target }) => look({ float64: target.checked }));
  on("joint", "change", (name) => change({ joint: name === "both", momentum: 0 }));
  on("step", "change", (value, { target }) => {
    const key = setup.rule === "Polyak" ? "cap" : "step", none = key === "cap" && !value && !target.validity.badInput;
    begin();
    setup[key] = typedNumber(target, key, setup[key], get("step-name").textContent, none ? "0" : value);
    restart();
  });
  on("steps", "change", (value) => change({ steps: Number(value) }));
  on("time", "input", (value) => {
    clock.stop();
    show(times[Number(value)]);
    keepAddress();
  });
  on("numbers", "change", (_, { target }) => {
    const [kind, ...keys] = target.dataset.key.split("."), last = keys.pop();
    const row = (whole) => keys.reduce((part, key) => part[key], whole);
    const old = row(setup[kind] ?? problem.scores)[last];
    begin();
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
  // A set-up of the menu has a page of its own, whose picture is shown where the link is unfolded.
  // A page names the book's address, if that is known; a folder on somebody's disk leads nobody on.
  function link() {
    const [name, ...rest] = lab.toHash({ ...setup, at: Math.round(setup.at) }).slice(1).split("&"), view = rest.join("&");
    const place = Object.hasOwn(lab.PRESETS, name) ? `laboratory/${name}.html${view && "#"}${view}` : `laboratory.html#${[name, ...rest].join("&")}`;
    const published = document.querySelector('link[rel="canonical"]')?.href, shown = location.protocol === "file:" ? "" : location.href;
    return published || shown ? new URL(place, published || shown).href : `in a copy of this book: book/${place}`;
  }
  const title = () => (opened ? get("preset").querySelector(`[value="${opened}"]`).textContent : "Attention, trained in the laboratory");
  lab.asPicture = (address = link()) => lab.picture(root, title(), address);
  on("link", "click", (_, event) => copied(event.target, link()));
  on("svg", "click", () => lab.offer(new Blob([lab.asPicture()], { type: "image/svg+xml" }), "laboratory.svg"));
  on("png", "click", async () => lab.offer(await lab.png(lab.asPicture(), link()), "laboratory.png"));
  on("copy", "click", (_, event) => copied(event.target, lab.asPython(setup)));

  const FIRST = Object.keys(lab.PRESETS)[0];
  let heard = "", says = ""; // the address, and the set-up that stands for it
  function keepAddress() {
    clearTimeout(address);
    address = setTimeout(() => { // browsers refuse many in a second
      const hash = lab.toHash({ ...setup, at: Math.round(setup.at) });
      if (hash === says || location.hash !== heard) return; // the event of a new address is to come
      history.replaceState(null, "", hash);
      heard = location.hash;
      says = hash;
    }, 400);
  }
  function take(found) {
    clock.stop();
    setup = lab.filled(found);
    [opened, typed, ghost] = ["", false, null];
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
  lab.buildLegend(get("rule"));
  lab.listenToTabs(root);
  addEventListener("hashchange", open);
  open();
})((globalThis.Laboratory ??= {}));
