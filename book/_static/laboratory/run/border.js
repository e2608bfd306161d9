// How large a score gap three tokens may have and lock from W_0 = 0: the border of the lock.
//
// Gradient flow in the plane of log Z, Z = phi_a / phi_o, and log Y, Y = phi_3 / phi_o, followed
// until one of two regions holds it that no step leaves, and bisection over the gap.
(function (lab) {
  "use strict";
  const STRIDE = 0.05, MOST = 8000; // of log Z and log Y in a step of the flow, and of steps
  const CLOSE = 1e-6; // of the border, relative

  // Whether the optimal token catches up, for tokens of a `lockRegion` with this gap.
  function returns({ own, cross, least, theta }, gap) {
    const beta = (z, y) => (Math.exp(-z) + gap * Math.exp(-y)) / (Math.exp(-z) + 1 - gap);
    const moves = ([z, y]) => {
      const weight = beta(z, y);
      return [cross - weight * own, cross - least - weight * (own - cross)];
    };
    const level = ([z, y]) => 1 / (1 + (1 - gap) * Math.exp(z)) + (Math.exp(-y) * gap) / (1 - gap);
    let at = [0, 0];
    for (let k = 0; k < MOST; k++) {
      const first = moves(at);
      if (first[0] <= 0) return true;
      if (level(at) < theta) return false;
      const h = STRIDE / Math.hypot(...first), ahead = (way, size) => at.map((value, j) => value + size * way[j]);
      const second = moves(ahead(first, h / 2)), third = moves(ahead(second, h / 2)), fourth = moves(ahead(third, h));
      at = at.map((value, j) => value + (h / 6) * (first[j] + 2 * second[j] + 2 * third[j] + fourth[j]));
    }
    return true;
  }

  // The border in units of the range of scores; 0 where no gap locks.
  lab.lockBorder = function (region) {
    const { own, cross, theta } = region, b = 2 - own / cross, room = 1 - 3 * theta;
    if (b <= 0) return 0;
    const odds = room > 0 ? theta * b ** (1 / room) : 0;
    let low = odds / (1 + odds), high = Math.min(theta * b, 0.5); // at 1/2 the first step returns
    while (high - low > CLOSE * high) {
      const middle = (low + high) / 2;
      if (returns(region, middle)) high = middle;
      else low = middle;
    }
    return low;
  };
})((globalThis.Laboratory ??= {}));
