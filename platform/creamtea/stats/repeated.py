"""A rater's repeated ratings of one output, treated one way in means, agreement and rater reports.

They count as one rating, their mean. Otherwise whoever rates an output twice would have two votes on it, and
raters would seem to agree better than they do. WMT's tables have rules of their own (`stats.wmt`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from creamtea.stats.estimate import Array


def one_rating_each(*keys: ArrayLike, value: ArrayLike) -> tuple[list[NDArray[np.int64]], Array]:
    """The different combinations of the keys (ratings,) in ascending order, say of rater and output, and the
    mean of the ratings of each. ValueError for arrays of other lengths."""
    columns = np.stack([np.asarray(key, dtype=np.int64) for key in keys], axis=1)
    values = np.asarray(value, dtype=np.float64)
    if columns.shape[0] != values.shape[0]:
        raise ValueError(f"{columns.shape[0]} keys and {values.shape[0]} ratings")
    order = np.lexsort(columns.T[::-1])
    columns, values = columns[order], values[order]
    first = np.flatnonzero(np.any(np.diff(columns, axis=0, prepend=columns[:1] - 1), axis=1))
    counts = np.diff([*first, len(values)])
    sums = np.add.reduceat(values, first) if len(first) else values
    return list(columns[first].T), sums / counts
