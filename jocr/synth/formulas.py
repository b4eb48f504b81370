"""Random formulas: what a display says, set by ``jocr.synth.math_layout``."""

from __future__ import annotations

import random

from jocr.synth.boxes import Block, Box
from jocr.synth.math_layout import BIG, BINARY, FUNCTIONS, GREEK, RELATIONS, SYMBOLS, Math, Setter
from jocr.synth.style import Style

_LETTERS = "abcdefghkmnpqrstuvwxyz" + "xyznxyt" + "ABCDEFGHKLMNPQRSTVXYZ"
_SERIES = "ijknm"


class Composer:
    """Draws formulas for one page; every choice comes from ``rng``."""

    def __init__(self, rng: random.Random, setter: Setter) -> None:
        self.rng, self.set = rng, setter
        self.greek = [n for n, c in GREEK.items() if setter.has(c)]
        self.binary = [(t, c) for t, c in BINARY.items() if setter.has(c)]
        self.relations = [(t, c) for t, c in RELATIONS.items() if setter.has(c) and t not in ("\\to", "\\in")]
        self.symbols = [(t, c) for t, c in SYMBOLS.items() if setter.has(c)]

    # Expressions: ``level`` is the script level, ``budget`` how many atoms may be used -------------------------------
    def atom(self, level: int) -> Math:
        r = self.rng
        kind = r.random()
        if kind < 0.52:
            return self.set.letter(r.choice(_LETTERS), level)
        if kind < 0.70:
            return self.set.greek(r.choice(self.greek), level)
        if kind < 0.97 or not self.symbols:
            return self.number(level)
        return self.set.symbol(*r.choice(self.symbols), level)

    def variable(self, level: int) -> Math:
        r = self.rng
        if r.random() < 0.25:
            return self.set.greek(r.choice(self.greek), level)
        return self.set.letter(r.choice(_LETTERS), level)

    def number(self, level: int) -> Math:
        r = self.rng
        whole = str(r.randint(0, r.choice((9, 9, 99, 999))))
        return self.set.text(whole if r.random() < 0.93 else f"{whole}.{r.randint(1, 99)}", level)

    def operator(self, level: int) -> Math:
        r = self.rng
        latex, char = r.choice(self.binary[:2] * 3 + self.binary)
        return self.set.symbol(latex, char, level, 0.2 if level == 0 else 0.06)

    def relation(self, level: int) -> Math:
        latex, char = self.rng.choice(self.relations[:1] * 8 + self.relations)
        return self.set.symbol(latex, char, level, 0.26 if level == 0 else 0.08)

    def power(self, level: int) -> Math:
        r = self.rng
        base = self.variable(level)
        if r.random() < 0.06:
            base = self.set.barred(base, level)
        kind = r.random()
        sup = self.small(level + 1) if kind < 0.65 else None
        sub = self.small(level + 1) if kind > 0.50 else None
        return self.set.scripts(base, sub, sup, level)

    def small(self, level: int) -> Math:
        """What stands in a script: an atom or a very short expression."""
        r = self.rng
        if r.random() < 0.72 or level > 1:
            return self.set.text(str(r.randint(0, 12)), level) if r.random() < 0.5 else self.variable(level)
        return self.set.row([self.variable(level), self.operator(level), self.number(level)])

    def term(self, level: int, budget: int) -> Math:
        r = self.rng
        kind = r.random()
        if budget <= 1 or kind < 0.2:
            return self.atom(level) if r.random() < 0.6 else self.power(level)
        if kind < 0.36:
            return self.set.row([self.atom(level), self.power(level)])
        if kind < 0.46:
            return self.power(level)
        if kind < 0.68 and level == 0:
            half = max(1, budget // 2)
            return self.set.fraction(self.expression(level, half), self.expression(level, half), level)
        if kind < 0.80:
            return self.set.root(self.expression(level, max(1, budget - 1)), level)
        if kind < 0.91:
            return self.applied(level, budget - 1)
        inner = self.set.parentheses(self.expression(level, max(2, budget - 1)), level)
        return self.set.scripts(inner, None, self.small(level + 1), level) if r.random() < 0.5 else inner

    def applied(self, level: int, budget: int) -> Math:
        """A function and its argument."""
        r = self.rng
        if r.random() < 0.5:
            name = self.set.letter(r.choice("fghFGuv"), level)
        else:
            word = r.choice(FUNCTIONS)
            name = self.set.text(word, level, "\\" + word)
            if r.random() < 0.35:
                argument = self.variable(level)
                argument.space = 0.12 * self.set.size(level)
                return self.set.row([name, argument])
        return self.set.row([name, self.set.parentheses(self.expression(level, max(1, budget)), level)])

    def expression(self, level: int, budget: int) -> Math:
        r = self.rng
        if budget <= 1:
            return self.term(level, 1)
        n = min(budget, r.choice((1, 1, 2, 2, 2, 3)))
        items = [self.term(level, max(1, budget // n))]
        for _ in range(n - 1):
            items += [self.operator(level), self.term(level, max(1, budget // n))]
        return self.set.row(items)

    # Statements -----------------------------------------------------------------------------------------------------
    def limits(self) -> Math:
        """A sum, product, integral or limit with its bounds."""
        r, s = self.rng, self.set
        kind = r.choice([t for t, c in BIG.items() if s.has(c)] + ["\\lim"])
        upper = s.symbol("\\infty", "∞", 1) if r.random() < 0.3 and s.has("∞") else self.small(1)
        if kind == "\\int":
            lower = self.small(1)
            sign = s.big(kind)
            return s.scripts(sign, lower, upper) if r.random() < 0.8 else sign
        if kind == "\\lim":
            to = s.symbol("\\to", "→", 1, 0.05)
            return s.stacked(s.text("lim", 0, kind), s.row([self.variable(1), to, upper]), None)
        start = s.row([s.letter(r.choice(_SERIES), 1), s.symbol("=", "=", 1, 0.05), s.text(str(r.randint(0, 2)), 1)])
        return s.stacked(s.big(kind), start, upper if r.random() < 0.85 else None)

    def large(self, budget: int) -> Math:
        """An expression under a large operator."""
        operator = self.limits()
        body = self.term(0, budget)
        if operator.latex.startswith("\\int"):
            d = self.set.row([self.set.letter("d"), self.set.letter(self.rng.choice("xtyu"))])
            d.space = 0.15 * self.set.base
            return self.set.row([operator, body, d])
        body.space = 0.06 * self.set.base
        return self.set.row([operator, body])

    def statement(self, budget: int) -> Math:
        """One display: usually a relation between two expressions."""
        r = self.rng
        kind = r.random()
        side = max(1, budget // 2)
        if kind < 0.12:
            return self.expression(0, budget)
        if kind < 0.36:
            left, right = self.large(side), self.expression(0, side)
            if r.random() < 0.4:
                left, right = right, left
        elif kind < 0.6:
            left, right = self.applied(0, 1), self.expression(0, budget)
        else:
            left, right = self.term(0, max(1, budget // 3)), self.expression(0, budget)
        items = [left, self.relation(0), right]
        if budget > 5 and r.random() < 0.2:
            items += [self.relation(0), self.expression(0, side)]
        return self.set.row(items)


def display(rng: random.Random, style: Style, width: float, height: float) -> Block | None:
    """A display formula, ``$$...$$``, that fits ``width`` x ``height`` pixels; None if none was found."""
    size = style.size
    top = max(2, min(9, round(width / size / 1.8)))
    for attempt in range(10):
        composer = Composer(rng, Setter(style.math, size))
        formula = composer.statement(max(1, rng.randint(2, top) - attempt // 3))
        box = formula.box
        if box.width <= width and box.up + box.down <= height:
            ink = Box(box.width, 0.0, 0.0)
            ink.place(box, 0.0, box.up, 2)
            return Block(f"$${formula.latex}$$", box.width, box.up + box.down, ink, "formula")
        if attempt >= 4:
            size = max(7, round(size * 0.92))
    return None


def inline(rng: random.Random, style: Style) -> Math:
    """A short formula for running text, without its dollar signs."""
    composer = Composer(rng, Setter(style.math, style.size))
    kind = rng.random()
    if kind < 0.4:
        return composer.power(0)
    if kind < 0.6:
        return composer.variable(0)
    left = composer.variable(0) if rng.random() < 0.6 else composer.power(0)
    right = composer.number(0) if rng.random() < 0.5 else composer.power(0)
    return composer.set.row([left, composer.relation(0), right])
