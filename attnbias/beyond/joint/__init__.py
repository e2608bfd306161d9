"""Open questions of joint training: orthonormal tokens, exponents, moving margins."""
