"""Text to set: English sentences, and words, numbers, dates and strings that nobody can guess."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from functools import cache

from jocr.synth.lexicon import DAYS, FUNCTION, MONTHS, Lexicon, held_out, lexicon

_ONSETS = (
    "b bl br c ch cl cr d dr f fl fr g gl gr h j k l m n p pl pr qu r s sc sh sl sp st str t th tr v w y z".split()
)
_VOWELS = "a a e e i i o o u ai au ea ee ie io oa oo ou".split()
_CODAS = ["", "", "", *"b ck d ft g l ll lt m mp n nd ng nt p r rd rk rn rt s sh ss st t th x".split()]
_ACCENTED = "éèêëáàâäåãíîïóôöòúûüùñçøæßÉÖÜÅÇÑ"
_PREPOSITIONS = "in on at near from under behind beyond within beside across against toward with without".split()
_JOINING = "and but while because so when if for".split()
_LEADING = "when after although if as since".split()
_TITLES = ("Mr.", "Mrs.", "Dr.", "Miss", "Captain", "Professor")
_QUOTES = (("“", "”"), ('"', '"'), ('"', '"'), ("'", "'"), ("‘", "’"))
_AROUND = (
    ("", ","), ("", "."), ("", ";"), ("", ":"), ("(", ")"), ('"', '"'), ("“", "”"), ("", "?"), ("", "!"), ("[", "]"),
    ("", "’s"), ("", "'s"),
)  # fmt: skip
_DETERMINERS = "the the the the a this that every each our his her their its another no some".split()
_DIGITS = string.digits
_MARKS = "%&@#+=/"
_LETTERS = string.ascii_lowercase + "etaoinshrdlu"


class Writer:
    """Draws text for one page; every choice comes from ``rng``."""

    def __init__(self, rng: random.Random, split: str) -> None:
        self.rng = rng
        self.split = split
        self.lex: Lexicon = lexicon(split)

    # English --------------------------------------------------------------------------------------------------------
    def noun_phrase(self) -> str:
        r = self.rng
        kind = r.random()
        if kind < 0.12:
            return r.choice(self.lex.names)
        if kind < 0.17:
            return f"{r.choice(_TITLES)} {r.choice(self.lex.names)}"
        if kind < 0.23:
            return r.choice(self.lex.places)
        if kind < 0.30:
            return r.choice(("he", "she", "it", "they", "we", "you"))
        adjective = r.choice(self.lex.adjectives) + " " if r.random() < 0.4 else ""
        if kind < 0.45:
            count = r.choice(("many ", "two ", "several ", "few ", "most ", "", "", f"{r.randint(2, 999)} "))
            return f"{count}{adjective}{r.choice(self.lex.plurals)}"
        noun, determiner = r.choice(self.lex.nouns), r.choice(_DETERMINERS)
        first = (adjective or noun)[0]
        return f"{'an' if determiner == 'a' and first in 'aeiou' else determiner} {adjective}{noun}"

    def verb_phrase(self) -> str:
        r = self.rng
        base, _third, past, ing = r.choice(self.lex.verbs)
        kind = r.random()
        if kind < 0.55:
            verb = past
        elif kind < 0.75:
            verb = f"{r.choice(('will', 'can', 'must', 'should', 'could', 'may', 'did not', 'would'))} {base}"
        else:
            verb = f"{r.choice(('was', 'had been', 'kept', 'is', 'began'))} {ing}"
        adverb = r.choice(self.lex.adverbs) + " " if r.random() < 0.18 else ""
        return f"{adverb}{verb} {self.noun_phrase()}"

    def clause(self) -> str:
        r = self.rng
        text = f"{self.noun_phrase()} {self.verb_phrase()}"
        if r.random() < 0.4:
            text += f" {r.choice(_PREPOSITIONS)} {self.noun_phrase()}"
        if r.random() < 0.12:
            time = r.choice((str(r.randint(1500, 2030)), r.choice(MONTHS)))
            text += f" {r.choice(('in', 'since', 'until', 'before'))} {time}"
        return text

    def sentence(self) -> str:
        """One sentence with its capital and final mark."""
        r = self.rng
        text, kind = self.clause(), r.random()
        if kind < 0.22:
            text += f"{r.choice((',', ',', ';', ' -', ':', ''))} {r.choice(_JOINING)} {self.clause()}"
        elif kind < 0.30:
            text = f"{r.choice(_LEADING)} {text}, {self.clause()}"
        elif kind < 0.36:
            text += f" ({r.choice((self.noun_phrase(), self.noun_phrase(), self.number(), self.clause()))})"
        elif kind < 0.44:
            a, b = r.choice(_QUOTES)
            said = r.choice(("said", "asked", "wrote", "cried", "replied"))
            quoted = f"{a}{_capital(text)}{r.choice((',', '!', '?', ','))}{b}"
            return self.disguised(f"{quoted} {said} {self.noun_phrase()}.")
        elif kind < 0.50:
            text += f", {self.noun_phrase()}, {self.noun_phrase()} and {self.noun_phrase()}"
        return self.disguised(_capital(text) + r.choice("......!?."))

    # What cannot be guessed -----------------------------------------------------------------------------------------
    def invented(self) -> str:
        """A pronounceable word of this split that no list holds."""
        r = self.rng
        while True:
            parts = (r.choice(_ONSETS) + r.choice(_VOWELS) + r.choice(_CODAS) for _ in range(r.choice((1, 2, 2, 2, 3))))
            word = "".join(parts)
            if held_out(word) == (self.split != "train") and word not in _listed():
                break
        if r.random() < 0.06:
            spot = r.randrange(len(word))
            word = word[:spot] + r.choice(_ACCENTED) + word[spot + 1 :]
        return word

    def number(self) -> str:
        r = self.rng
        kind = r.randrange(9)
        value = r.choice((r.randint(0, 9), r.randint(10, 99), r.randint(100, 9999), r.randint(10000, 9999999)))
        if kind < 2:
            return str(value)
        if kind == 2:
            return f"{value:,}"
        if kind == 3:
            return f"{r.random() * 10 ** r.randint(0, 4):.{r.randint(1, 3)}f}"
        if kind == 4:
            return f"{r.choice('$$€£')}{r.random() * 10 ** r.randint(1, 4):,.2f}"
        if kind == 5:
            return f"{r.choice((r.randint(0, 100), round(r.random() * 100, 1)))}%"
        if kind == 6:
            return f"-{value}" if r.random() < 0.5 else f"+{value}"
        if kind == 7:
            return f"{r.randint(1, 99)}-{r.randint(100, 999)}"
        return f"{r.randint(1, 99)}/{r.randint(1, 99)}"

    def date(self) -> str:
        r = self.rng
        day, month, year = r.randint(1, 28), r.randint(1, 12), r.randint(1800, 2035)
        return r.choice(
            (
                f"{day} {MONTHS[month - 1]} {year}",
                f"{MONTHS[month - 1]} {day}, {year}",
                f"{year}-{month:02d}-{day:02d}",
                f"{day:02d}.{month:02d}.{year}",
                f"{month}/{day}/{year}",
                f"{r.choice(DAYS)}, {day} {MONTHS[month - 1][:3]}.",
                f"{r.randint(0, 23)}:{r.randint(0, 59):02d}",
            )
        )

    def code(self, signs: bool = True) -> str:
        """A random string: letters, digits, sometimes signs."""
        r = self.rng
        pool = string.ascii_uppercase + r.choice((string.ascii_lowercase, string.ascii_lowercase + _DIGITS, _DIGITS))
        text = "".join(r.choice(pool) for _ in range(r.randint(2, 8)))
        if signs and r.random() < 0.15:
            text = f"{text[:2]}{r.choice(_MARKS)}{text[2:]}"
        return text

    def random_word(self) -> str:
        """One unit of unguessable text (dates may hold blanks)."""
        return self.disguised(self._random_word())

    def _random_word(self) -> str:
        r = self.rng
        kind = r.random()
        if kind < 0.38:
            word = r.choice(self.lex.words)
        elif kind < 0.66:
            word = self.invented()
        elif kind < 0.74:
            word = r.choice(_FUNCTION)
        elif kind < 0.84:
            return self.number()
        elif kind < 0.89:
            return self.date()
        else:
            return self.code()
        kind = r.random()
        if kind < 0.15:
            word = _capital(word)
        elif kind < 0.19:
            word = word.upper() if "ß" not in word else word
        kind = r.random()
        if kind < 0.15:
            a, b = r.choice(_AROUND)
            return f"{a}{word}{b}"
        if kind < 0.17:
            return f"{word}-{self.invented()}"
        return word

    # Streams and short texts ----------------------------------------------------------------------------------------
    def words(self, english: bool) -> Iterator[str]:
        """Words without end, in reading order."""
        while True:
            yield from (self.sentence() if english else self.random_word()).split()

    def disguised(self, text: str) -> str:
        """In training most words are altered, letter by letter: a list of words, however long, is soon known by heart,
        and a model then guesses where it should read."""
        if self.split != "train":
            return text
        return " ".join(self.altered(w) if self.rng.random() < 0.9 else w for w in text.split(" "))

    def altered(self, word: str) -> str:
        """The word with one to all of its letters exchanged; marks and digits stay."""
        r = self.rng
        spots = [i for i, c in enumerate(word) if c.isascii() and c.isalpha()]
        if not spots:
            return word
        count = r.choice((1, 2, len(spots), len(spots)))
        letters = list(word)
        for i in r.sample(spots, min(count, len(spots))):
            new = r.choice(_LETTERS)
            letters[i] = new.upper() if word[i].isupper() else new
        changed = "".join(letters)
        return word if held_out(changed) and changed.lower() in _listed() else changed

    def title(self) -> str:
        """A heading of one to five words, without a final mark."""
        return self.disguised(self._title())

    def _title(self) -> str:
        r = self.rng
        kind = r.randrange(6)
        if kind == 0:
            text = f"{r.choice(self.lex.adjectives)} {r.choice(self.lex.plurals)}"
        elif kind == 1:
            text = f"the {r.choice(self.lex.nouns)} of {r.choice(self.lex.places)}"
        elif kind == 2:
            text = r.choice(self.lex.nouns)
        elif kind == 3:
            text = f"{self.invented()} {r.choice(self.lex.nouns)}"
        elif kind == 4:
            text = f"{r.choice(self.lex.plurals)} and {r.choice(self.lex.plurals)}"
        else:
            text = f"{r.choice(self.lex.names)} {r.choice(('in', 'on', 'and'))} {r.choice(self.lex.places)}"
        style = r.random()
        if style < 0.2:
            return text.upper()
        return text.title().replace(" Of ", " of ").replace(" And ", " and ") if style < 0.5 else _capital(text)


_FUNCTION = tuple(FUNCTION.split())


@cache
def _listed() -> frozenset[str]:
    return frozenset(word.lower() for split in ("train", "heldout") for word in lexicon(split).words)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
