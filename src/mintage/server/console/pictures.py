"""Pictures: SVG that the service draws. Classes of ``console.css`` give it its colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Sequence


def sparkline(values: Sequence[float], label: str, *, width: int = 120, height: int = 24) -> Markup:
    """Return a line of values over time, from the oldest to the newest, that begins at zero.

    :param label: what the picture shows, for those who do not see it, such as ``"3 to 250 integers a minute"``.
    :param width: in pixels; the height likewise.
    """
    if not values:
        return Markup("")
    most = max(*values, 0.0) or 1.0
    step = width / max(1, len(values) - 1)
    points = [f"{at * step:.1f},{height - 1 - value / most * (height - 2):.1f}" for at, value in enumerate(values)]
    line = "M" + "L".join(points if len(points) > 1 else [points[0], f"{width},{points[0].split(',')[1]}"])
    return Markup(
        '<svg class="sparkline" role="img" aria-label="{}" width="{w}" height="{h}" viewBox="0 0 {w} {h}" '
        'preserveAspectRatio="none"><path class="spark-area" d="{d}L{w},{h}L0,{h}Z"/><path class="spark" d="{d}"/>'
        "</svg>"
    ).format(label, w=width, h=height, d=line)
