"""Small charts as inline SVG: no script, sized by the page, readable in print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT = 640, 200
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 10, 36  # margins, for axis labels


def area(
    points: Sequence[tuple[float, float]],
    *,
    title: str,
    x: str,
    y: str,
    breaks: Sequence[float] = (),
    width: float = 0.0,
) -> str:
    """A stepped area chart.

    Args:
        points: (x, y), ascending in x; each stands for an equal step around its x.
        title: what a screen reader says.
        x, y: names of the axes.
        breaks: places on the x axis to mark with a dashed line.
        width: end of the x axis; 0 for the last point.
    """
    if not points:
        return ""
    end = width or points[-1][0] or 1.0
    top = _round_up(max(value for _, value in points))
    half = (points[1][0] - points[0][0]) / 2 if len(points) > 1 else end / 2
    path = [f"M{_x(0, end):.1f},{_y(0, top):.1f}"]
    for place, value in points:
        path.append(f"L{_x(max(0.0, place - half), end):.1f},{_y(value, top):.1f}")
        path.append(f"L{_x(min(end, place + half), end):.1f},{_y(value, top):.1f}")
    path.append(f"L{_x(end, end):.1f},{_y(0, top):.1f}Z")
    marks = "".join(
        f'<line class="break" x1="{_x(at, end):.1f}" x2="{_x(at, end):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        for at in breaks
    )
    return _svg(title, _axes(end, top, x, y) + f'<path class="area" d="{"".join(path)}"/>' + marks)


def bars(values: Sequence[tuple[float, float, float]], *, title: str, x: str, y: str) -> str:
    """A histogram of (from, to, count) bars, ascending and of one width."""
    if not values:
        return ""
    end, top = values[-1][1], _round_up(max(count for _, _, count in values))
    drawn = []
    for low, high, count in values:
        left, right = _x(low, end), _x(high, end)
        height = HEIGHT - BOTTOM - _y(count, top)
        size = f'width="{max(0.5, right - left - 1):.1f}" height="{height:.1f}"'
        box = f'x="{left + 0.5:.1f}" y="{_y(count, top):.1f}" {size}'
        drawn.append(f'<rect class="bar" {box}><title>{low:g} to {high:g}: {count:,.0f}</title></rect>')
    return _svg(title, _axes(end, top, x, y) + "".join(drawn))


def _svg(title: str, body: str) -> str:
    name = escape(title, quote=True)
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">{body}</svg>'


def _axes(end: float, top: float, x: str, y: str) -> str:
    parts = []
    for tick in (top * k / 4 for k in range(5)):
        at = _y(tick, top)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{_label(tick)}</text>')
    step = _step(end)
    for k in range(int(end / step + 1e-9) + 1):
        at = _x(k * step, end)
        parts.append(f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">{_label(k * step)}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text class="axis" x="{middle:.0f}" y="{HEIGHT - 4}" text-anchor="middle">{escape(x)}</text>')
    parts.append(
        f'<text class="axis" x="12" y="{(TOP + HEIGHT - BOTTOM) / 2:.0f}" text-anchor="middle" '
        f'transform="rotate(-90 12 {(TOP + HEIGHT - BOTTOM) / 2:.0f})">{escape(y)}</text>'
    )
    return "".join(parts)


def _x(value: float, end: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * value / end


def _y(value: float, top: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)


def _round_up(value: float) -> float:
    """The next of 1, 2, 4, 8 times a power of ten: four equal ticks below it have short labels."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(m * power for m in (1, 2, 4, 8, 10) if m * power >= value * (1 - 1e-9))


def _step(end: float) -> float:
    """Distance of about six ticks."""
    raw = end / 6
    power = 10.0 ** math.floor(math.log10(raw))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))


def _label(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:g}k" if value < 1_000_000 else f"{value / 1_000_000:g}M"
    return f"{value:.4g}"
