"""Every tolerance of the tests, each with its reason."""

# Constants of instances with closed forms: a few float64 operations of relative error 2e-16.
CLOSED_FORM = 1e-12
# Numbers that the theory sheet prints with eight decimals.
PRINTED_EIGHT = 1e-8
# kappa under rescaled scores: its logarithm is a difference of numbers up to 10.
RESCALED_LOG = 1e-10

# Exact dynamics against multiprecision, relative: the target of the library. Measured 1e-12 or
# better; rounding of the gaps, a few thousand times 2e-16, enters the gradient's direction.
MULTIPRECISION = 1e-9
# The same, absolute, for logarithms that pass through zero.
MULTIPRECISION_LOG = 1e-11
# Exact dynamics against plain autograd before saturation: 10 steps of 2e-16 each, and plain
# differences L - L* and 1 - cosine of numbers not below 1e-3.
AUTOGRAD = 1e-12
# Two forms of the same iteration: 200 steps, rounding of gaps up to 1e3, and an alignment error
# that is the square of a difference.
FORMS = 1e-10
# Iterates of transformed data: the transformation itself rounds the tokens, by 2e-16 of their
# norm, and a run of 100 steps carries that on.
INVARIANCE = 1e-10
# Numbers that the theory sheet prints with four decimals or four digits.
PRINTED_FOUR = 1e-4
PRINTED_FOUR_RELATIVE = 3e-4
# Elementary functions of one number against multiprecision: a few roundings.
FUNCTION = 1e-14
# Gauss-Legendre with 24 nodes on a smooth slope, S up to 5.
QUADRATURE = 1e-13
# Exponent of an exact power law: least squares on logarithms up to 30.
EXACT_POWER = 1e-11
# 1 - cosine where W points along W_mm exactly: the square of a rounding error, not a zero.
ALIGNMENT_FLOOR = 1e-28
