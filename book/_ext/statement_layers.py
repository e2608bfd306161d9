"""Where each statement stands in the picture: right of what it rests on, near its neighbours."""

from statement_graph import reverse

SWEEPS = 12  # to the neighbours and back; later ones move nothing that one sees


def columns(uses: dict[str, tuple[str, ...]]) -> dict[str, int]:
    """The column of each statement that has a neighbour, close to the first that it carries.

    Of two that rest on each other, the first in order stands on the right.
    """
    used, found, asked = reverse(uses), {}, set()

    def column(label: str) -> int:
        if label not in found:
            asked.add(label)
            below = [column(each) for each in uses[label] if each in found or each not in asked]
            found[label] = 1 + max(below, default=-1)
        return found[label]

    for label in uses:
        column(label)
    for label in sorted(found, key=found.get, reverse=True):
        carried = [found[each] for each in used[label] if found[each] > found[label]]
        found[label] = min(carried, default=found[label] + 1) - 1
    return {label: found[label] for label in uses if uses[label] or used[label]}


def rows(uses: dict[str, tuple[str, ...]], column: dict[str, int]) -> dict[str, float]:
    """How far down each stands, 0 at the top: near the mean of its neighbours, one from the next.

    The longest column fills the whole height.
    """
    used = reverse(uses)
    together = [[one for one in column if column[one] == k] for k in sorted(set(column.values()))]
    last = max(map(len, together), default=0) - 1
    down = {label: last / 2 for label in column}
    for sweep in range(SWEEPS):
        for here in together[:: -1 if sweep % 2 else 1]:
            near = {label: [down[other] for other in uses[label] + used[label]] for label in here}
            wanted = {label: sum(near[label]) / len(near[label]) for label in here}
            here.sort(key=wanted.get)
            placed = [wanted[here[0]]]
            for label in here[1:]:
                placed.append(max(wanted[label], placed[-1] + 1))
            shift = (sum(wanted.values()) - sum(placed)) / len(here)
            for k, label in enumerate(here):
                highest, lowest = k, last - (len(here) - 1 - k)
                down[label] = min(max(placed[k] + shift, highest), lowest)
    return down
