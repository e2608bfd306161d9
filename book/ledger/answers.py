"""The open questions of the paper, answered, by the strength of the evidence."""

from __future__ import annotations

from dataclasses import dataclass

#: How far an answer is settled: each word, from proved to conjectured, and what it stands for.
STRENGTHS = {
    "proved": "Proved here {prov}`c` for all that the answer speaks of, and checked by runs.",
    "proved in part": "Proved {prov}`c` for an example, near the limit or under a condition that "
    "the chapter names; measured beyond it.",
    "predicted": "Not proved. A number was computed before the runs, and they met it.",
    "measured": "Seen in runs {prov}`d`, without a prediction or a proof.",
    "conjectured": "Neither proved nor decided by runs; the chapter says what speaks for it.",
}


@dataclass(frozen=True)
class Answer:
    """A question in one sentence, what is known, and how well.

    Attributes
    ----------
    question, answer : str
    strength : str
        A key of `STRENGTHS`.
    chapter : str
        Label of the chapter that asks it.
    claims : tuple of str
        Keys of the claims of the ledger that it rests on; none for a conjecture.

    Examples
    --------
    >>> from book.ledger import ANSWERS
    >>> ANSWERS[0].question, ANSWERS[0].strength
    ('Does momentum turn $W$ faster?', 'proved')
    """

    question: str
    answer: str
    strength: str
    chapter: str
    claims: tuple[str, ...] = ()


#: The open questions of the paper and of its subject that the book answers, as `Answer` objects.
ANSWERS = (
    Answer(
        "Does momentum turn $W$ faster?",
        "On one constraint the heavy ball keeps $1/t^2$ and dual acceleration reaches $1/t^4$. "
        "The paths grow like $t/(1-\\beta)$ and $t^2$ wherever Assumption 2 holds and (W-SVM) is "
        "feasible. On the degenerate triple the heavy ball's offset grows like a logarithm.",
        "proved",
        "chap-momentum",
        ("momentum-pair", "momentum-path", "momentum-triple"),
    ),
    Answer(
        "What does momentum do to the offset from $W_{mm}$?",
        "Nothing to its limit where every row supports and steps are short; idle rows make that "
        "of dual acceleration grow like $\\log t$; beyond a step size that we can compute it "
        "doesn't settle.",
        "predicted",
        "chap-momentum",
        ("same-offset", "idle-logarithm", "settling-step"),
    ),
    Answer(
        "Is the offset of dual acceleration bounded?",
        "We believe so within the span of the supporting rows under strict complementarity; idle "
        "rows add a logarithm across it.",
        "conjectured",
        "chap-momentum",
    ),
    Answer(
        "Does steepest descent in a norm head for the W-SVM of that norm?",
        "Its margin does, with short steps, in the Frobenius, max, spectral and nuclear norms; "
        "long ones ruin sign descent. The proof holds the softmax's weights fixed; with moving "
        "weights it is measured.",
        "proved in part",
        "chap-geometries",
        ("each-norm-its-svm",),
    ),
    Answer(
        "Where do the factors of $W = KQ^\\top$ head, and where Adam?",
        "Factors of full width from a small start head for the nuclear margin, Adam for that of "
        "the max norm as long as the gaps grow slowly enough for its second moment.",
        "measured",
        "chap-geometries",
        ("factors-nuclear", "adam-speed"),
    ),
    Answer(
        "With $u$ fixed, do other losses keep the rates?",
        "Every decreasing loss whose slope vanishes nowhere does, under the same hypotheses and "
        "with another $\\kappa$.",
        "proved",
        "chap-losses",
        ("loss-rates",),
    ),
    Answer(
        "With $u$ fixed, what does another loss do to the constant of $1/t^2$?",
        "Where every row supports $W_{mm}$ and steps are short it changes as the slopes at the "
        "optimal scores say; where these scores are equal, not at all.",
        "predicted",
        "chap-losses",
        ("loss-constants",),
    ),
    Answer(
        "Where does a polynomial tail send $u$ in joint training?",
        "To another direction than $u_{mm}$, which we compute. If it gets there, $W$'s limit "
        "stays.",
        "proved in part",
        "chap-losses",
        ("loss-tail",),
    ),
    Answer(
        "When does convergence stop being global?",
        "On three tokens of scores 1, 0 and $s$ as soon as $s > 0$: starts up to $\\log(3/s - 1)$ "
        "against $W_{mm}$ come back, and from a second threshold on, a little farther for small "
        "$s$, all are trapped. With equal scores no start of one sequence is.",
        "proved",
        "chap-global",
        ("score-trap", "equal-scores-free"),
    ),
    Answer(
        "At which tokens does a trapped run lock?",
        "At locally optimal ones, in the direction of their SVM.",
        "proved in part",
        "chap-global",
        ("locks-are-local",),
    ),
    Answer(
        "Do the traps vanish as $d$ grows, for Gaussian tokens?",
        "We believe so: exactly orthogonal tokens are all neighbours of each other.",
        "conjectured",
        "chap-global",
    ),
    Answer(
        "From which dimension on is (W-SVM) feasible?",
        "For almost all tokens if $n \\le d\\lfloor d/(T-1)\\rfloor$ and $T - 1 \\le d$; below, "
        "with two tokens a sequence, for the share of the choices of optimal tokens that Wendel's "
        "theorem gives.",
        "proved",
        "chap-overparam",
        ("feasible-counting",),
    ),
    Answer(
        "Does over-parameterisation alone make convergence global?",
        "Not where the features share an axis strongly: there runs fail at every dimension up to "
        "384. With independent features all runs came home from half of $nT$ on.",
        "measured",
        "chap-overparam",
        ("overparam-plain", "overparam-correlated"),
    ),
    Answer(
        "Is $d \\ge C\\,nT$ enough for global convergence with independent Gaussian features?",
        "We believe so, and no run spoke against it.",
        "conjectured",
        "chap-overparam",
    ),
    Answer(
        "What does separate normalisation buy in joint training?",
        "On even tokens, without decay, $W$'s length grows like $t$ with a step of its own, and "
        "like the logarithm of $u$'s with a common one.",
        "proved",
        "chap-joint-open",
        ("joint-common-step",),
    ),
    Answer(
        "Does the logarithm hold on random tokens?",
        "Yes, with the slope of the even ones.",
        "predicted",
        "chap-joint-open",
        ("joint-log-slope",),
    ),
    Answer(
        "Where does joint training go without the decay of Eq. 10?",
        "On random tokens in many dimensions both directions converge, and from a large $u_0$ "
        "often to the SVMs of other tokens. On a pair where one sequence does not support "
        "$u_{mm}$, $W$ goes to a margin that moves.",
        "measured",
        "chap-joint-open",
        ("joint-chosen", "joint-moving-margin"),
    ),
    Answer(
        "Where does the layer head in next-token prediction?",
        "With the log loss and untied labels to the graph SVM, from any start. With tied ones NGD "
        "keeps swinging by a step, unless it lands on the balance; cross-entropy gives the rarer "
        "label nothing beyond a share that we compute.",
        "proved in part",
        "chap-next-token",
        ("next-token-retrieval", "next-token-swing", "next-token-threshold"),
    ),
    Answer(
        "Can a normalised rule settle tied labels?",
        "Yes, if it does not normalise the part of the gradient along the ties.",
        "measured",
        "chap-next-token",
        ("next-token-split",),
    ),
    Answer(
        "What do several heads select?",
        "Each what it would alone, whatever the others do, as long as its softmax scores stay up. "
        "On one row two nearly equal heads part by a known factor at most, and meet again.",
        "proved in part",
        "chap-two-heads",
        ("heads-own", "heads-growth"),
    ),
    Answer(
        "How do heads with a shared norm share their length?",
        "As if they were one SVM.",
        "predicted",
        "chap-two-heads",
        ("heads-balance",),
    ),
    Answer(
        "What do two layers on top of each other select?",
        "Layer two turns to the W-SVM of the queries that layer one picks. On token pairs a curve "
        "in closed form parts the starts, and layer one's gap grows like $2\\log\\|W_2\\|$. There "
        "is a task for which two layers have weights and one has none.",
        "proved",
        "chap-depth",
        ("depth-separatrix", "depth-serves-contraries"),
    ),
    Answer(
        "Which queries does the first layer pick in general?",
        "Such that no single token would widen the second layer's margin: so it was in every run.",
        "measured",
        "chap-depth",
        ("depth-selects-stationary",),
    ),
    Answer(
        "Where do runs end with free queries and unequal scores?",
        "Once they have settled, at locally optimal tokens, not always the optimal ones; and they "
        "turn to the SVM of these like $1/t^2$.",
        "proved in part",
        "chap-plane",
        ("free-local-ends",),
    ),
    Answer(
        "How fast do $K$ and $Q$ turn to the nuclear-norm SVM?",
        "In the median of starts with an exponent that the SVM's certificate gives. It was read "
        "off before the runs; its derivation is a linearisation, and single starts lag behind.",
        "predicted",
        "chap-plane",
        ("factor-exponents",),
    ),
    Answer(
        "May the gradients of $K$ and $Q$ be divided each by its own norm?",
        "On one pair of sequences that leads away from the nuclear SVM, and dividing them "
        "together does not.",
        "measured",
        "chap-plane",
        ("factors-divided-each",),
    ),
    Answer(
        "Which tokens does a nonlinear head keep?",
        "Under a concave quadratic head and orthonormal tokens those of the best mixture, with "
        "its shares; steps normalised across the ties alone turn to the several-token SVM within "
        "an explicit bound.",
        "proved",
        "chap-several-tokens",
        ("several-mixture", "several-rate"),
    ),
    Answer(
        "How fast do several tokens settle, and where do NGD, ties and flat heads lead?",
        "With short steps like $1/t^2$ with a constant known beforehand. NGD with one norm swings "
        "by half a step; a token at the edge of the best mixture vanishes like $t^{-1/2}$ under "
        "GD; a sequence in a flat region of a relu head drops out, in most runs whose sets are "
        "strictly decided.",
        "predicted",
        "chap-several-tokens",
        ("several-law", "several-swing", "several-flat", "several-tie"),
    ),
    Answer(
        "What holds of prompt attention with a fixed decoder?",
        "It is this layer with other rows: M1 to M3 hold, training $W$ or $p$ is the same up to a "
        "known change of step sizes, and linear and logistic loss share the limit.",
        "proved",
        "chap-prompt",
        ("prompt-m1", "prompt-two-ways", "prompt-losses"),
    ),
    Answer(
        "At which token does a trained prompt end?",
        "At a locally optimal one, in the direction of its SVM, also long after float32 and "
        "float64 have left it.",
        "proved in part",
        "chap-prompt",
        ("prompt-local",),
    ),
    Answer(
        "Where do a prompt and a decoder go when both are trained?",
        "The step sizes decide: with steps of their own to the moving margin of the ratio of norms "
        "that the run shows, with the prompt slowed to the relaxed SVM of the literature.",
        "measured",
        "chap-prompt",
        ("prompt-joint",),
    ),
    Answer(
        "What is the rank of $W_{mm}$, and of the smallest solution in the nuclear norm?",
        "At most the number of sequences in the support, and of features, for the first. For the "
        "second at most the multiplicity of the largest singular value of its dual, and some "
        "solution obeys $r(r+1)/2 \\le$ active constraints. That the first is attained is "
        "measured; ranks are proved instance by instance.",
        "proved in part",
        "chap-ranks",
        ("frobenius-rank", "nuclear-rank"),
    ),
    Answer(
        "Is the nuclear solution of low rank, and do trained factors get there?",
        "Far lower than that of $W_{mm}$ on random tokens. Factors never have that rank; what is "
        "outside falls like a power of the norm.",
        "measured",
        "chap-ranks",
        ("nuclear-rank-low", "factors-thin-out"),
    ),
    Answer(
        "When does the exponent $-2$ of $1 - $ cosine show?",
        "With steps short enough for the offset to settle, once the settling rate of the data, "
        "the margin and $\\|W\\|$ multiply to ten, and never before a hundredth, two limits read "
        "off the runs; the time goes like one over the smallest slack. That the offset settles at "
        "this rate is proved near the limit.",
        "proved in part",
        "chap-exponents",
        ("settling-rate", "unsettled", "slack-law"),
    ),
    Answer(
        "Where does a nearly active constraint leave the offset?",
        "On three tokens of slack $\\delta$ at $\\log(1/\\delta)$ and a bounded rest.",
        "proved",
        "chap-exponents",
        ("triple-offset",),
    ),
)

_INTRO = """(chap-answers)=
# Answers, by strength of evidence

What does the paper leave open, and how well does this book answer it?

Section 7 of the paper lists open questions, and its readers ask more.
The chapters of this part take them up one by one.
Here their answers stand in the order of how far you should rely on them: a theorem first,
a guess last.
Below each is what decided it, in the run of {ref}`the ledger <chap-ledger>` that `make ledger`
repeats.
"""


def render_answers(answers: tuple[Answer, ...], sections: dict[str, list[dict]]) -> str:
    """The page's Markdown: answers grouped by strength, each with its claims' verdicts.

    Examples
    --------
    >>> answer = Answer("Is two less than three?", "Yes.", "conjectured", "chap-tokens")
    >>> "Is two less than three?" in render_answers((answer,), {})
    True
    """
    entries = {entry["key"]: entry for rows in sections.values() for entry in rows}
    parts = [_INTRO]
    for strength, meaning in STRENGTHS.items():
        chosen = [answer for answer in answers if answer.strength == strength]
        title = strength.capitalize()
        items = "\n".join(_item(answer, entries) for answer in chosen)
        parts.append(f"## {title}\n\n{meaning}\n\n{items}")
    return "\n".join(parts)


def _item(answer: Answer, entries: dict[str, dict]) -> str:
    lines = [f"**{answer.question}**\n{answer.answer} {{ref}}`{answer.chapter}`\n"]
    for key in answer.claims:
        entry = entries[key]
        setting = f"; {entry['note']}" if entry["note"] else ""
        lines.append(
            f"* {entry['text']} **{entry['verdict'].capitalize()}**: {entry['number']}{setting}."
        )
    return "\n".join(lines) + "\n"
