"""The names of a model's clusters, for people who act on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

#: Characters of a name, at most.
MAX_NAME_LENGTH = 80


def segment_names(model: Any) -> tuple[str, ...]:
    """Return a name for each cluster of a fitted model, in the order of labels.

    Those in ``model.segment_names_``, which `rename_segments` or the commands ``fit``
    and ``rename`` have set and model files keep; or else "Segment 0" and so on.

    Costs nothing.

    Parameters
    ----------
    model : fitted estimator of this library

    See Also
    --------
    rename_segments : Gives other names.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> model = SketchedKMeans(2, random_state=0).fit(np.arange(20.0).reshape(10, 2))
    >>> segment_names(model)
    ('Segment 0', 'Segment 1')
    >>> rename_segments(model, {1: "Heavy buyers"})
    >>> segment_names(model)
    ('Segment 0', 'Heavy buyers')
    """
    holders = list(_open(model))
    inner = holders[-1]
    is_foreign = len(holders) > 1 and hasattr(inner, "cluster_centers_")
    is_foreign = is_foreign and not hasattr(inner, "cluster_sizes_")
    counted = "cluster_centers_" if is_foreign else "cluster_sizes_"
    check_is_fitted(inner, counted)
    k = len(getattr(inner, counted))
    for holder in holders:
        names = getattr(holder, "segment_names_", None)
        if names is not None:
            return check_segment_names(names, k)
    return tuple(f"Segment {j}" for j in range(k))


def _open(model: Any) -> Iterator[Any]:
    """Yield a model, and what is within: the end of a pipeline, the clusterer."""
    yield model
    if isinstance(model, Pipeline):
        yield from _open(model.steps[-1][1])
    elif hasattr(model, "estimator_"):
        yield from _open(model.estimator_)


def rename_segments(model: Any, names: Mapping[int, str]) -> None:
    """Set the names of some clusters of a fitted model, by label.

    Names should differ, be printable, and have at most 80 characters.  Costs nothing.

    See Also
    --------
    segment_names : Returns them.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> from sketchmeans.diagnostics import rename_segments, segment_names
    >>> model = SketchedKMeans(2, random_state=0).fit(np.array([[0.0], [9.0]]))
    >>> rename_segments(model, {1: "Heavy buyers"})
    >>> segment_names(model)
    ('Segment 0', 'Heavy buyers')
    """
    current = list(segment_names(model))
    for label, name in names.items():
        if isinstance(label, bool) or label not in range(len(current)):
            raise ValueError(
                f"The label {label!r} of {name!r} should be one of 0 to "
                f"{len(current) - 1}."
            )
        current[label] = name
    holder = model
    while isinstance(holder, Pipeline):  # its last step is what reports and files see
        holder = holder.steps[-1][1]
    holder.segment_names_ = check_segment_names(current, len(current))


def check_segment_names(names: Sequence[str], k: int) -> tuple[str, ...]:
    """Return k names without spaces around them, or raise."""
    if isinstance(names, str) or len(names) != k:
        raise ValueError(f"segment_names_={names!r} should be {k} names.")
    seen: set[str] = set()
    for name in names:
        is_text = isinstance(name, str) and name.strip() and name.isprintable()
        if not is_text or len(name) > MAX_NAME_LENGTH:
            raise ValueError(
                f"The segment name {name!r} should be a printable text of 1 to "
                f"{MAX_NAME_LENGTH} characters."
            )
        if (folded := name.strip().casefold()) in seen:
            raise ValueError(f"The segment name {name!r} is that of another segment.")
        seen.add(folded)
    return tuple(name.strip() for name in names)
