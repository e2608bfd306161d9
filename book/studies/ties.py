"""Next-token data in which labels contradict each other in one context alone."""

import torch

from attnbias.beyond.next_token.data import NextTokenData, require_next_tokens


def contradict(data: NextTokenData) -> NextTokenData:
    """The same sequences, and the first once more with another of its tokens as the label.

    Parameters
    ----------
    data : NextTokenData

    Returns
    -------
    NextTokenData

    Raises
    ------
    DtypeError
    ShapeError
        When the first sequence has no other token.

    Examples
    --------
    >>> data = contradict(NextTokenData(torch.eye(3).double(), [[0, 1, 2]], [1]))
    >>> data.sequences.tolist(), data.labels.tolist()
    ([[0, 1, 2], [0, 1, 2]], [1, 0])
    """
    require_next_tokens(data)
    first = data.sequences[:1]
    other = first[first != data.labels[0]][:1]
    sequences, labels = torch.cat([data.sequences, first]), torch.cat([data.labels, other])
    return NextTokenData(data.embeddings, sequences, labels)
