"""A small formula setter: boxes of glyphs and their LaTeX, built together from the inside out.

Canonical LaTeX: no blanks, except one between a control word and a letter that follows it; arguments always in braces;
a subscript before a superscript (``x_{i}^{2}``); parentheses plain, whatever their height.
"""

from __future__ import annotations

from dataclasses import dataclass

from jocr.synth.boxes import Box, Mark, Rule
from jocr.synth.glyphs import Face

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "varepsilon": "ε", "theta": "θ", "lambda": "λ", "mu": "μ",
    "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "varphi": "φ", "omega": "ω",
    "Gamma": "Γ", "Delta": "Δ", "Sigma": "Σ", "Phi": "Φ", "Omega": "Ω",
}  # fmt: skip
BINARY = {"+": "+", "-": "−", "\\cdot": "·", "\\times": "×", "\\pm": "±"}
RELATIONS = {
    "=": "=", "<": "<", ">": ">", "\\leq": "≤", "\\geq": "≥", "\\neq": "≠", "\\approx": "≈", "\\to": "→", "\\in": "∈",
}  # fmt: skip
SYMBOLS = {"\\infty": "∞", "\\partial": "∂"}
BIG = {"\\sum": "∑", "\\prod": "∏", "\\int": "∫"}
FUNCTIONS = ("sin", "cos", "tan", "log", "ln", "exp", "max", "min")
SCALES = (1.0, 0.74, 0.62)  # size of text, script and script of script relative to the formula's


@dataclass(slots=True)
class Math:
    """A set formula: the marks of ``box`` count their positions from the start of ``latex``."""

    latex: str
    box: Box
    space: float = 0.0  # blank wanted on either side, pixels


def join(a: str, b: str) -> str:
    """LaTeX of ``a`` followed by ``b``, with a blank only where a control word would run into a letter."""
    word = a.rpartition("\\")[2]
    glued = "\\" in a and word.isalpha() and b[:1].isalpha() and a.endswith("\\" + word)
    return f"{a} {b}" if glued else a + b


class Setter:
    """Sets formulas in one size with one pair of faces."""

    def __init__(self, math: tuple[Face, Face, bool], size: int) -> None:
        self.upright, self.italic, self.alphanumeric = math
        self.base = size
        minus = self.upright.glyph("−", size)
        self.axis = -(minus.top + (minus.bitmap.shape[0] if minus.bitmap is not None else 0) / 2) / size

    def size(self, level: int) -> int:
        return max(6, round(self.base * SCALES[min(level, 2)]))

    def has(self, char: str) -> bool:
        return self.upright.has(char)

    # Atoms ----------------------------------------------------------------------------------------------------------
    def glyph(self, face: Face, size: int, char: str, label: str, pos: int) -> Box:
        """One glyph as a box with its ink's extents."""
        g = face.glyph(char, size)
        up, down = (-g.top, g.top + g.bitmap.shape[0]) if g.bitmap is not None else (0, 0)
        return Box(g.advance, float(up), float(down), [Mark(face, size, char, label, 0.0, 0.0, pos)])

    def letter(self, char: str, level: int = 0) -> Math:
        """A variable in italics."""
        drawn = _mathematical(char) if self.alphanumeric else char
        return Math(char, self.glyph(self.italic, self.size(level), drawn, char, 0))

    def greek(self, name: str, level: int = 0) -> Math:
        char = GREEK[name]
        slanted = char.islower()
        drawn = _mathematical(char) if self.alphanumeric and slanted else char
        face = self.italic if slanted and self.italic.has(drawn) else self.upright
        return Math("\\" + name, self.glyph(face, self.size(level), drawn, char, -1))

    def text(self, text: str, level: int = 0, latex: str | None = None) -> Math:
        """Upright characters: numbers, brackets, function names. With ``latex``, only its letters have a place."""
        latex, size = latex or text, self.size(level)
        offset, box = latex.find(text), Box(0.0, 0.0, 0.0)
        for i, char in enumerate(text):
            self._append(box, self.glyph(self.upright, size, char, char, 0), offset + i)
        return Math(latex, box)

    def symbol(self, latex: str, char: str, level: int = 0, gap: float = 0.0) -> Math:
        """One sign; ``gap`` ems of blank are wanted around it."""
        size = self.size(level)
        here = len(latex) == 1
        return Math(latex, self.glyph(self.upright, size, char, latex if here else char, 0 if here else -1), gap * size)

    # Combinations ---------------------------------------------------------------------------------------------------
    def _append(self, box: Box, other: Box, dpos: int) -> None:
        box.place(other, box.width, 0.0, dpos)
        box.width += other.width
        box.up, box.down = max(box.up, other.up), max(box.down, other.down)

    def row(self, items: list[Math]) -> Math:
        """Items side by side."""
        latex, box = "", Box(0.0, 0.0, 0.0)
        for i, item in enumerate(items):
            latex = join(latex, item.latex) if latex else item.latex
            box.width += item.space if i else 0.0
            self._append(box, item.box, len(latex) - len(item.latex))
            box.width += item.space if i + 1 < len(items) else 0.0
        return Math(latex, box)

    def fraction(self, top: Math, bottom: Math, level: int = 0) -> Math:
        size = self.size(level)
        axis, thick, gap = self.axis * size, max(1, round(0.05 * size)), max(2.0, 0.15 * size)
        inner = max(top.box.width, bottom.box.width) + 0.2 * size
        edge = 0.1 * size
        up, down = axis + thick / 2 + gap + top.box.down, -axis + thick / 2 + gap + bottom.box.up
        box = Box(inner + 2 * edge, up + top.box.up, down + bottom.box.down)
        box.place(top.box, edge + (inner - top.box.width) / 2, -up, len("\\frac{"))
        box.place(bottom.box, edge + (inner - bottom.box.width) / 2, down, len("\\frac{}{") + len(top.latex))
        box.rules.append(Rule(edge, -axis - thick / 2, inner, thick))
        return Math(f"\\frac{{{top.latex}}}{{{bottom.latex}}}", box)

    def scripts(self, base: Math, sub: Math | None, sup: Math | None, level: int = 0) -> Math:
        """``base_{sub}^{sup}``, scripts to the right."""
        size = self.size(level)
        box = Box(base.box.width + 0.04 * size, base.box.up, base.box.down)
        box.place(base.box, 0.0, 0.0)
        latex, start, end = base.latex, box.width, box.width
        raised = max(0.38 * size, base.box.up - 0.3 * size, sup.box.down + 0.22 * size) if sup is not None else 0.0
        if sub is not None:
            y = max(0.18 * size, base.box.down - 0.05 * size, sub.box.up - 0.35 * size)
            if sup is not None:  # keep the two apart
                y = max(y, sub.box.up - raised + sup.box.down + max(2.0, 0.1 * size))
            box.place(sub.box, start, y, len(latex) + 2)
            latex += f"_{{{sub.latex}}}"
            box.down, end = max(box.down, y + sub.box.down), max(end, start + sub.box.width)
        if sup is not None:
            shift = 0.08 * size
            box.place(sup.box, start + shift, -raised, len(latex) + 2)
            latex += f"^{{{sup.latex}}}"
            box.up, end = max(box.up, raised + sup.box.up), max(end, start + shift + sup.box.width)
        box.width = end + 0.05 * size
        return Math(latex, box)

    def stacked(self, base: Math, below: Math | None, above: Math | None, level: int = 0) -> Math:
        """``base_{below}^{above}``, limits under and over, as for sums in displays."""
        size = self.size(level)
        width = max(m.box.width for m in (base, below, above) if m is not None)
        box, latex = Box(width + 0.1 * size, base.box.up, base.box.down), base.latex
        box.place(base.box, (width - base.box.width) / 2, 0.0)
        if below is not None:
            y = base.box.down + below.box.up + 0.14 * size
            box.place(below.box, (width - below.box.width) / 2, y, len(latex) + 2)
            latex, box.down = f"{latex}_{{{below.latex}}}", y + below.box.down
        if above is not None:
            y = base.box.up + above.box.down + 0.14 * size
            box.place(above.box, (width - above.box.width) / 2, -y, len(latex) + 2)
            latex, box.up = f"{latex}^{{{above.latex}}}", y + above.box.up
        return Math(latex, box, 0.08 * size)

    def big(self, latex: str, level: int = 0) -> Math:
        """A large operator, centred on the axis."""
        size = self.size(level)
        drawn = self.glyph(self.upright, round(size * (1.6 if latex == "\\int" else 1.35)), BIG[latex], BIG[latex], -1)
        return Math(latex, self._centred(drawn, size))

    def _centred(self, drawn: Box, size: int) -> Box:
        """Move a glyph so that its ink's middle lies on the axis of ``size``."""
        dy = (drawn.up - drawn.down) / 2 - self.axis * size
        box = Box(drawn.width, drawn.up - dy, drawn.down + dy)
        box.place(drawn, 0.0, dy)
        return box

    def root(self, inner: Math, level: int = 0) -> Math:
        size = self.size(level)
        gap, thick = max(2.0, 0.1 * size), max(1, round(0.05 * size))
        up, down = max(inner.box.up, 0.6 * size) + gap + thick, max(inner.box.down, 0.05 * size) + 1
        plain = self.glyph(self.upright, 4 * size, "√", "√", -1)
        sign = self.glyph(self.upright, max(6, round(4 * size * (up + down) / (plain.up + plain.down))), "√", "√", -1)
        glyph = sign.marks[0].face.glyph("√", sign.marks[0].size)
        right = glyph.left + (glyph.bitmap.shape[1] if glyph.bitmap is not None else 0)
        box = Box(right + inner.box.width + 0.2 * size, up, down)
        box.place(sign, 0.0, sign.up - up)
        box.place(inner.box, right + 0.06 * size, 0.0, len("\\sqrt{"))
        box.rules.append(Rule(right - thick, -up, inner.box.width + 0.14 * size + thick, thick))
        return Math(f"\\sqrt{{{inner.latex}}}", box)

    def parentheses(self, inner: Math, level: int = 0, pair: str = "()") -> Math:
        """Brackets as high as what they hold."""
        size = self.size(level)
        left, right = (self._bracket(c, inner.box, size) for c in pair)
        box = Box(0.0, 0.0, 0.0)
        self._append(box, left, 0)
        self._append(box, inner.box, 1)
        self._append(box, right, 1 + len(inner.latex))
        return Math(f"{pair[0]}{inner.latex}{pair[1]}", box)

    def _bracket(self, char: str, inner: Box, size: int) -> Box:
        plain = self.glyph(self.upright, size, char, char, 0)
        wanted = inner.up + inner.down
        if wanted <= 1.1 * (plain.up + plain.down):
            return plain
        drawn = self.glyph(self.upright, round(size * 1.05 * wanted / (plain.up + plain.down)), char, char, 0)
        dy = (drawn.up - drawn.down) / 2 - (inner.up - inner.down) / 2
        box = Box(drawn.width, drawn.up - dy, drawn.down + dy)
        box.place(drawn, 0.0, dy)
        return box

    def barred(self, inner: Math, level: int = 0) -> Math:
        size = self.size(level)
        thick, y = max(1, round(0.05 * size)), inner.box.up + max(2.0, 0.1 * size)
        box = Box(inner.box.width, y + thick, inner.box.down)
        box.place(inner.box, 0.0, 0.0, len("\\bar{"))
        box.rules.append(Rule(0.08 * size, -y - thick, inner.box.width - 0.08 * size, thick))
        return Math(f"\\bar{{{inner.latex}}}", box)


def _mathematical(char: str) -> str:
    """The mathematical italic form of a Latin or small Greek letter."""
    if char == "h":
        return "\u210e"
    if "α" <= char <= "ω":
        return chr(0x1D6FC + ord(char) - ord("α"))
    return chr((0x1D44E + ord(char) - ord("a")) if char.islower() else (0x1D434 + ord(char) - ord("A")))
