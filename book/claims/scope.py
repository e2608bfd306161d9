"""Which partial tampering does not make a claim false: by what sort of sentence the claim is."""

_PARTS = ("window", "every", "record")


def _keys(words: str) -> set[str]:
    return set(words.split())


#: Claims that their sentence ties to the end of a run, to named steps of it, or to an exponent
#: fitted over many of them: what stands elsewhere is not theirs, and a stalled run has an end too.
END = _keys("""
adam-memory adam-speed comparable-lengths depth-selects-stationary depth-separatrix
each-norm-its-svm each-size-its-margin equal-scores-free factor-exponents factors-divided-each
factors-nuclear factors-thin-out fig2-adaptive fig2-momentum fig2-ngd-gd fig2-polyak fig2-predicted
fig2-slows fig3-gd fig3-loss fig3-ngd fig3-polyak fig3-zero fig8-loss fig8-start fig8-stationary
fig9-ngd heads-balance idle-logarithm joint-chosen joint-log-slope joint-moving-margin
local-elsewhere locks-are-local loss-constants loss-rates loss-tail next-token-exponent
next-token-split next-token-squared next-token-swing next-token-threshold overparam-correlated
overparam-plain own-norm-leads pair-svm prompt-joint prompt-local prompt-losses same-offset
separation-steps settling-rate settling-step several-flat several-law several-mixture several-swing
several-tie small-norm stuck-head trap triple-offset unsettling-steps
""")

#: Claims that an inequality holds at every step, which a run that stalls goes on to meet.
BOUND = _keys("""
cap-stabilises cone fig2-cap fig2-floor lemma3 lemma3-rules lemma10 lemma13 m3 lock-border
score-trap softmax-rises unequal-scores
""")

#: Claims on a count of runs or on their median, which one run does not decide.
COUNT = _keys("""
factor-exponents fig8-stationary named-families next-token-exponent next-token-threshold
overparam-correlated several-flat unsettling-steps
""")

#: One run on which the optimal softmax falls is all that this claims.
EXISTS = _keys("assumption1-alone")

#: By kind of partial tampering, the claims that need not reject it; they reject all other kinds.
SCOPE = {
    "run": COUNT | EXISTS,
    **{kind: END | EXISTS for kind in _PARTS},
    "stall": END | BOUND | EXISTS,
}
