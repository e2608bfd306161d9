"""Which margin an optimizer comes nearest to: what theory says, and what two tables found."""

from __future__ import annotations

#: What theory says of the update rule, set down before the tables were made. Steps along the
#: gradient or its averages, of any length, turn to the Frobenius margin; signs to that of the max
#: norm; orthogonalised steps to the spectral one. Of every optimizer not named here it is silent:
#: of Adam's family above all, whose second moments and epsilon change what a step is.
PREDICTED = {
    "frobenius": (
        "torch.SGD torch.ASGD attnbias.SNGD attnbias.SPS accsgd aggmo alig asgd dadaptsgd fromage "
        "lars novograd pid pnm qhm schedulefreesgd sgdp sgdsai sgdw tam"
    ).split(),
    "max": "signsgd lion tiger dadaptlion emolynx".split(),
    "spectral": "torch.Muon adago muon muonclip scion scionlight spectralsphere".split(),
}
