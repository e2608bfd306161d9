"""Figures that a reader moves, with no kernel and no remote file.

Every position is computed beforehand. A `Picture` is an SVG in which some attributes follow one
or more controls; a few lines of inline script look the chosen values up. Controls are native
range inputs, so that keyboard and touch work, and the numbers stand in an `output`, which is read
out when they change. Without scripts, and in print, one picture stands: of a run, its end.
"""

import html
import json
import math
import re
from typing import NamedTuple

from attnbias._validate import require_int
from attnbias.errors import RangeError, ShapeError

_SCRIPT = """(function () {
  var figure = document.getElementById(%s), data = %s;
  var inputs = Array.from(figure.querySelectorAll("input"));
  var output = figure.querySelector("output");
  var slots = figure.querySelectorAll("[data-set]"), frames = figure.querySelectorAll(".frame");
  function pick(table, at) {
    return table.values[table.on.reduce(function (k, c) {
      return k * data.controls[c].length + at[c];
    }, 0)];
  }
  function show(at) {
    inputs.forEach(function (input, c) {
      input.setAttribute("aria-valuetext", data.controls[c][at[c]]);
      input.nextElementSibling.textContent = data.controls[c][at[c]];
    });
    output.textContent = pick(data.text, at);
    frames.forEach(function (frame, k) { frame.hidden = k !== at[0]; });
    slots.forEach(function (slot, j) {
      slot.setAttribute(slot.getAttribute("data-set"), pick(data.slots[j], at));
    });
  }
  function update() { show(inputs.map(function (input) { return Number(input.value); })); }
  inputs.forEach(function (input) { input.addEventListener("input", update); });
  window.addEventListener("beforeprint", function () { show(data.start); });
  window.addEventListener("afterprint", update);
  figure.querySelector(".control").hidden = false;
  update();
})();"""
# Moves the first control on, once when the figure comes into view and again when asked to.
_PLAY = """(function () {
  var figure = document.getElementById(%s), timer = 0, own = false;
  var input = figure.querySelector("input"), button = figure.querySelector("button");
  function set(value) {
    own = true;
    input.value = value;
    input.dispatchEvent(new Event("input"));
    own = false;
  }
  function say() {
    button.textContent = timer ? "Pause" : "Play";
    button.classList.toggle("playing", timer);
    figure.querySelector("output").ariaLive = timer ? "off" : "polite";
  }
  function stop() { timer = clearInterval(timer); say(); }
  function start() {
    if (input.value === input.max) set(0);
    timer = setInterval(function () {
      set(Number(input.value) + 1);
      if (input.value === input.max) stop();
    }, %d);
    say();
  }
  button.addEventListener("click", function () { if (timer) stop(); else start(); });
  input.addEventListener("input", function () { if (timer && !own) stop(); });
  button.hidden = false;
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) { set(input.max); return; }
  new IntersectionObserver(function (seen, observer) {
    if (!seen.some(function (each) { return each.isIntersecting; })) return;
    observer.disconnect();
    start();
  }, { threshold: 0.9 }).observe(figure.querySelector("svg"));
})();"""
_PACE = 150  # milliseconds a position, when it plays
# Colours are the book's on its pages, light or dark, and Okabe and Ito's wherever else.
HUES = {
    "blue": "var(--slider-blue,#0072B2)",
    "vermillion": "var(--slider-vermillion,#D55E00)",
    "green": "var(--slider-green,#009E73)",
    "ink": "currentColor",
}


def stroke(hue: str, dashes: str = "none") -> dict:
    """Attributes of a line, for `Picture.follow`."""
    return {
        "fill": "none",
        "style": f"stroke:{HUES[hue]}",
        "stroke_width": 2.5,
        "stroke_dasharray": dashes,
        "stroke_linejoin": "round",
    }


class Control(NamedTuple):
    """A range input: what it moves along, a word for each position, and two positions.

    Without scripts and in print the picture stands at `start`; with scripts it opens at `opens`,
    by default the same. A run stands at its end and opens at its beginning.
    """

    label: str
    values: list[str]
    start: int = 0
    opens: int | None = None


class Picture:
    """An SVG of which some attributes follow the controls.

    Parameters
    ----------
    controls : list of Control
    size : (width, height)
        In units of the drawing; 420 wide keeps its type of 16 units legible on a phone.

    Raises
    ------
    RangeError, ShapeError, DtypeError
        When a control has fewer than two positions, starts outside them, or when `follow` and
        `markup` get another number of values than there are positions.
    """

    def __init__(self, controls, size):
        self.controls, self.size = [Control(*control) for control in controls], size
        self.parts, self.slots = [], []
        for control in self.controls:
            _require_two(control.label, len(control.values))
            require_int(control.label, control.start, low=0, high=len(control.values) - 1)

    def add(self, markup: str) -> None:
        """Markup that no control changes."""
        self.parts.append(markup)

    def follow(self, tag: str, attribute: str, values, on=(0,), text="", **fixed) -> None:
        """An element whose attribute takes one of `values`, in row-major order of controls `on`."""
        table = self._table(attribute, values, on)
        shown = {attribute: self._first(table), **fixed}
        attributes = "".join(
            f' {key.replace("_", "-")}="{html.escape(str(value))}"' for key, value in shown.items()
        )
        self.slots.append(table)
        text = html.escape(str(text))
        self.parts.append(f'<{tag} data-set="{attribute}"{attributes}>{text}</{tag}>')

    def markup(self, label: str, texts, name: str | None = None, plays: bool = False) -> str:
        """The figure: drawing, controls, and the text of the chosen position.

        One that plays moves its first control by itself, with a button that stops it.
        """
        on = range(len(self.controls))
        width, height = self.size
        body = (
            f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(label)}" '
            'font-family="sans-serif" font-size="16" fill="currentColor">'
            f"{''.join(self.parts)}</svg>"
        )
        return figure(body, self, self._table("texts", texts, on), label, name, plays)

    def _table(self, what: str, values, on) -> dict:
        count = math.prod(len(self.controls[c].values) for c in on)
        values = [str(value) for value in values]
        if len(values) != count:
            raise ShapeError(
                what,
                expected=f"one for each position of the controls, {count}",
                got=str(len(values)),
                remedy="give every position its own, the last control fastest",
            )
        return {"on": list(on), "values": values}

    def _first(self, table: dict) -> str:
        k = 0
        for c in table["on"]:
            k = k * len(self.controls[c].values) + self.controls[c].start
        return table["values"][k]


def figure(
    body: str, picture: Picture, text: dict, label: str, name: str | None = None, plays=False
) -> str:
    """`body` with the controls of `picture` below it, its text and its script."""
    name = name or "slider-" + re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")
    data = {
        "controls": [[str(value) for value in each.values] for each in picture.controls],
        "start": [each.start for each in picture.controls],
        "text": text,
        "slots": picture.slots,
    }
    script = _SCRIPT % (script_json(name), script_json(data))
    inputs = "".join(_input(each) for each in picture.controls)
    button = '<button type="button" class="play" hidden>Play</button>' if plays else ""
    script += _PLAY % (script_json(name), _PACE) if plays else ""
    return (
        f'<figure class="slider" id="{html.escape(name)}">{body}'
        f'{button}<div class="control" hidden>{inputs}</div>'
        f"<figcaption><output>{html.escape(picture._first(text))}</output></figcaption>"
        f"<script>{script}</script></figure>"
    )


def _input(control: Control) -> str:
    opens = control.start if control.opens is None else control.opens
    return (
        f"<label><span>{html.escape(control.label)}</span>"
        f'<input type="range" min="0" max="{len(control.values) - 1}" value="{opens}" '
        f'step="1"><b aria-hidden="true">{html.escape(str(control.values[opens]))}</b>'
        f"</label>"
    )


def script_json(value) -> str:
    """json that cannot close the script element it stands in."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _require_two(what: str, count: int) -> None:
    if count < 2:
        raise RangeError(
            what, expected="at least two positions", got=str(count), remedy="add some to move to"
        )
