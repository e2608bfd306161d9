"""What the page's quantities and settings mean: a row's words, said once for all rows."""

#: By a phrase of the rows, in the order in which the page explains them.
KEY = {
    "1 - cosine": "one minus the cosine of the angle between two matrices (or decoders): with "
    "$W_{mm}$, or $u_{mm}$, if no other is named; 0 is the same direction, 2 the opposite one",
    "growth of its ratio to the rate in a decade": "how an order $O(r(t))$ is judged: value over "
    "$r(t)$, its largest of the last decade of steps over its largest of the decade before, or its "
    "median growth in a decade by pairs of records within the last one if that is larger; from "
    "step 100 on a ratio 15% above all of the decade before it counts too. At most 1 means "
    "that the values keep pace with the rate; about 1 is a rate that is met exactly",
    "lead": "how far one rule is ahead of another on a panel of a figure, in decades: log10 of the "
    "quotient of the two values; the least over the seeds",
    "decades": "powers of ten: one decade is a factor of ten",
    "least": "the smallest over all runs, where a claim is on all of them",
    "edge of Assumption 1": "twelve random data sets and one by hand: every product of a token "
    "that is not optimal with another is 0.999 of the largest that Assumption 1 allows; starts of "
    "small gaps, of violated constraints and of uneven gaps; 200,000 steps",
    "limit of Condition 2": "tokens whose norms and products, and steps whose size, are as large "
    "as Condition 2 of joint training allows; there attention hardly moves",
    "far beyond Condition 2": "the same kinds of tokens with steps thousands of times as long, so "
    "that attention saturates and $W$ turns: the theorems' conclusions outside their hypotheses",
    "(DM)": "the Gaussian tokens of Section 4.1: optimal and other tokens of independent entries",
    "Example 1": "the Gaussian tokens of Section 3.1 with a decoder that gives equal scores",
    "pair of Section 3.3": "one sequence of the two unit vectors of the plane",
    "Eq. 10": "NGD on $W$ and $u$, whose steps fall like $1/t$ and $t^{-2/3}$",
    "Figure 8's data": "two sequences of two tokens, and a start on a wrong one",
    "ten starts": "Figure 8's two sequences, from a start on a wrong token in ten lengths",
    "in size": "the absolute value, so that both sides count",
    "off": "the distance, in absolute value, from what the words name",
    "minus 1": "of a quotient: how far the two are apart, as a part of the second",
    "in place of": "what the recorded networks have instead of the paper's, for want of time",
    "smaller ViT": "a vision transformer that trains here in minutes, beside an epoch of the "
    "usual one",
    "on other work": "about what others have shown: nothing that is run here bears on it",
    "seeds": "random draws of data or start; 'limits set on ..., judged on ...' means that the "
    "limits of a claim of ours were chosen on the first seeds, and the verdict is by the others",
    "training loss of": "a factor above 1 means that the first of the two falls more slowly",
    "would be decided by": "what is missing for a verdict",
    "eta": "the step size",
    "Xi": "the largest margin, $1/\\|W_{mm}\\|$",
    "L*": "the infimum of the loss with the decoder fixed",
    "P_t": "the part of $W_t$ across $W_{mm}$",
    "n, T, d": "sequences, tokens of each, features of a token",
}


def used(rows: list[dict]) -> dict[str, str]:
    """The entries of the key that some row's number or note needs.

    Examples
    --------
    >>> list(used([{"number": "1 - cosine: 0.1 <= 0.2", "note": "eta = 1"}]))
    ['1 - cosine', 'eta']
    """
    text = "\n".join(f"{row['number']}; {row['note']}" for row in rows)
    return {phrase: meaning for phrase, meaning in KEY.items() if phrase in text}
