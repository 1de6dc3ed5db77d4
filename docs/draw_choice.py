"""Draw which estimator to take: ``python -m docs.draw_choice`` writes choice.svg.

Narrow and tall, so that a phone shows it at its full size.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

PATH = Path(__file__).parent / "images" / "choice.svg"
#: Questions in two lines, and what to take where the answer is yes.
STEPS = (
    (
        ("Raw table: columns by name,", "units, missing values?"),
        ("TableClusterer", "around one of these"),
    ),
    (
        ("Groups that are not round:", "rings, curves, densities?"),
        ("SpectralKMeans", "nothing to tune"),
    ),
    (
        ("Similarity by a kernel, and", "all n² values fit in memory?"),
        ("KernelKMeans", "exact"),
    ),
    (
        ("Similarity by a kernel, on", "up to millions of rows?"),
        ("NystromKMeans", "landmarks"),
    ),
)
LAST = ("SketchedKMeans", "plain k-means, many rows, columns, clusters")
_WIDTH, _STEP, _TOP = 348, 86, 8


def _box(x: int, y: int, width: int, kind: str, lines: tuple[str, ...]) -> str:
    texts = "".join(
        f'<text x="{x + width / 2}" y="{y + 20 + 18 * i}" class="{kind}{i}">'
        f"{escape(line)}</text>"
        for i, line in enumerate(lines)
    )
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="50" rx="8" class="{kind}"/>'
        + texts
    )


def draw() -> str:
    """Return the picture: a ladder of questions, with the answer "yes" to the right."""
    parts = []
    for i, (question, answer) in enumerate(STEPS):
        y = _TOP + i * _STEP
        parts += [
            _box(4, y, 190, "question", question),
            f'<path d="M194 {y + 25} h22" marker-end="url(#head)"/>',
            f'<text x="205" y="{y + 18}" class="word">yes</text>',
            _box(222, y, 122, "answer", answer),
            f'<path d="M99 {y + 50} v30" marker-end="url(#head)"/>',
            f'<text x="114" y="{y + 70}" class="word">no</text>',
        ]
    bottom = _TOP + len(STEPS) * _STEP
    parts.append(_box(4, bottom, 340, "answer", LAST))
    style = (
        "text{font:12px system-ui,sans-serif;text-anchor:middle;fill:#1f2933}"
        ".answer0{font-weight:600}.answer1,.word{font-size:11px;fill:#52606d}"
        ".question{fill:#f3f5f7;stroke:#c8ccd2}.answer{fill:#e3f0fb;stroke:#7fb3e0}"
        "path{stroke:#7b8794;fill:none}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + 58}" '
        f'width="{_WIDTH}"><style>{style}</style><defs><marker id="head" '
        'markerWidth="6" markerHeight="6" refX="5" refY="3" orient="auto">'
        '<path d="M0 0 L6 3 L0 6 z" style="fill:#7b8794"/></marker></defs>'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    PATH.write_text(draw(), encoding="utf-8")
