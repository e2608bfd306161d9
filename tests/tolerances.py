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
# Numbers printed with five digits, relative: half of the last of 1.0000.
PRINTED_FIVE_RELATIVE = 5e-5
# Numbers printed with four decimals: half of the last, and a little. With four digits, relative:
# half of the last of 1.000. With two or three digits, the same.
PRINTED_FOUR = 5.1e-5
PRINTED_FOUR_RELATIVE = 5e-4
PRINTED_TWO_RELATIVE = 5e-2
# Plain float64 on the way to its wall: still right to the eye, no longer to its last digits.
NEAR_THE_WALL = 1e-2
# A rotated W_t after 100 steps: a QR factor, two products with it, and the run in between.
ROTATED = 1e-8
# A limit read off at finite t: the next term is smaller than this there.
ASYMPTOTIC = 1e-2
# An exponent read off a window of two decades that ends at 1e5 steps.
FITTED_EXPONENT = 5e-3
# A loss floor that is L* itself to 1e-13: ten Polyak steps of L - L* about 1e-3.
FLOOR_ROUNDING = 1e-8
# A standard deviation of 72,000 draws: 0.3% is one sigma.
SAMPLED = 1e-2
# Elementary functions of one number against multiprecision: a few roundings.
FUNCTION = 1e-14
# Gauss-Legendre with 24 nodes on a smooth slope, S up to 5.
QUADRATURE = 1e-13
# Exponent of an exact power law: least squares on logarithms up to 30.
EXACT_POWER = 1e-11
# 1 - cosine where W points along W_mm exactly: the square of the rounding of W in dense form, which
# is about 2e-16 times the root of some thousand steps.
ALIGNMENT_FLOOR = 1e-26
# SVM weights and constants of closed forms: a small Cholesky solve, refined to 32 roundings.
SVM_CLOSED_FORM = 1e-14
# The same where the margin is down to 1e-9 of the row norms: 2e-16 over the margin.
SVM_EDGE = 1e-6
# Duality gap on data with |z| norm up to 1e3: the rounding 2e-16 |z| norm of the margins.
SVM_GAP = 1e-12
# Weights of equivalent SVMs: rounding of the Gram matrix times its condition, up to 1e5 here.
SVM_EQUIVALENT = 1e-9
# An interior-point solver at its own default accuracy of 1e-8, on |W|^2; W has the root of it.
INTERIOR_POINT = 1e-4
# Non-negative least squares: weights are a quotient of its residual, of cancellation up to 1e4.
NNLS = 1e-9
# A vanishing sum of rows, relative: rounding of the sum times the condition of the rows.
GORDAN = 1e-12
# Softmax weights in the log domain: logarithms of sums of up to five terms, and a difference c that
# keeps at least a hundredth of its largest term.
LOG_SOFTMAX = 1e-12
# Scores of a decoder from a least-squares solve: 2e-16 times the condition number of the tokens,
# which Example 1 keeps below 1e3 except at the smallest d.
INTERPOLATION = 1e-11
# Networks in float32 trained by two loops, or by two processes that add in another order: 40
# steps of rounding 6e-8 each, which a smooth small network does not amplify much.
FLOAT32_RUN = 1e-4
# The same run in another batch: products of other shapes add in another order, 200 steps of it
# (measured 2e-14); absolute for what passes through zero.
OTHER_BATCH = 1e-12
# Scores of a decoder through 8 tokens in 12 dimensions, of condition up to a few hundred: an lstsq.
SPREAD_SCORES = 1e-9
# 1 - cosine of a locked run, 5000 NGD steps of 0.2: the square of an offset about 10 over 1000.
GENERIC_ENDS = 1e-3
# Scores read off a channel of 1e-4: the product and its inverse, a few roundings.
FAINT = 1e-12
# |W|^2 (1 - cosine) of a run whose offset has settled: the last terms are below exp(-20), and
# 1 - cosine is offset^2 / (2 |W|^2) up to its square, 1e-4 after 400 steps.
SETTLED = 1e-3
# Squared hinge next to margin 1: log(1 - z) loses the digits that z shares with 1.
NEAR_A_CORNER = 1e-6
# Eigenvalues of an interior-point semidefinite solution over the largest: those that are zero come
# out at 1e-6 and below (the root of its gap), the others here above 1e-2.
RANK_SECOND_SOLVER = 1e-4
# Two ways through the same 40 steps of gradients of order 1, in float64, one of them by autograd.
FLOAT_PATHS = 1e-10
# Modes about a nuclear-norm solution from an interior point: the root of its gap 1e-8 in weights.
MODES = 1e-3
# t^2 (1 - cosine) of a split run against its limit after about 1000 steps: the next terms are the
# norm's own offset over t, a few thousandths.
SETTLED_LAW = 2e-2
# Gradients of `attention_loss` down to exp(-695) against multiprecision, for W as training makes
# it: the aim. Measured 7e-13 at worst: a gap of 700 is rounded by 1e-13 a few times.
MULTIPRECISION_GRADIENT = 1e-12
# The same for any W, over the largest sum of sizes in a logit: its rounding, 2e-16 a few times
# (measured 4.5e-16), is the relative error of an exponential.
LOGIT_ROUNDING = 2e-15
