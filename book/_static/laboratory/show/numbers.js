// The table of all numbers of a set-up, in which each can be typed.
(function (lab) {
  "use strict";
  const cell = (key, value, words) =>
    `<td><input type="number" step="any" data-key="${key}" value="${value}" aria-label="${words}"></td>`;
  const label = (i, own) => `<td><select data-key="y.${i}" aria-label="label of sequence ${i + 1}">` +
    ["1", "-1"].map((y) => `<option value="${y}"${+y === own ? " selected" : ""}>${y === "1" ? "+1" : "−1"}</option>`).join("") + "</select></td>";

  lab.numbersTable = function (setup, problem) {
    const rows = setup.X.flatMap((tokens, i) => tokens.map((x, t) => {
      const name = `sequence ${i + 1}, token ${t + 1}`;
      return `<tr><th scope="row">${i + 1}.${t + 1}</th>${t ? "<td></td>" : label(i, setup.y[i])}` +
        x.map((value, j) => cell(`X.${i}.${t}.${j}`, value, `${name}, ${"xy"[j]}`)).join("") +
        (setup.joint ? "" : cell(`scores.${i}.${t}`, problem.scores[i][t], `${name}, score`)) + `<td data-score="${i}.${t}"></td></tr>`;
    }));
    const start = setup.W0.map((row, a) => `<tr><th scope="row">start W<sub>0</sub>, row ${a + 1}</th>` +
      row.map((value, b) => cell(`W0.${a}.${b}`, value, `start W0, row ${a + 1}, column ${b + 1}`)).join("") + "</tr>");
    return `<table><thead><tr><th scope="col">token</th><th scope="col">label</th><th scope="col">x</th>` +
      `<th scope="col">y</th>${setup.joint ? "" : '<th scope="col">score</th>'}<td></td></tr></thead><tbody>${rows.join("")}</tbody></table>` +
      `<table><tbody><tr><th scope="row">decoder u</th>${setup.u.map((value, j) => cell(`u.${j}`, value, `u, ${"xy"[j]}`)).join("")}</tr>${start.join("")}</tbody></table>`;
  };

  // Scores as they are now, and which token is optimal.
  lab.showScores = function (table, problem) {
    for (const each of table.querySelectorAll("[data-score]")) {
      const [i, t] = each.dataset.score.split("."), score = problem.scores[i][t];
      const input = each.parentElement.querySelector("[data-key^=scores]");
      if (input && input !== document.activeElement) input.value = Number(score.toPrecision(12));
      each.textContent = !problem.tied && problem.opt[i] === +t ? "optimal" : "";
    }
  };
})((globalThis.Laboratory ??= {}));
