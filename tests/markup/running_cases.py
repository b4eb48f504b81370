"""Short documents whose running lines are labelled by hand: a line that opens with ``@`` is one, every other is body.

``HONEST`` have running lines in the ways books, reports and letters have them. ``HOSTILE`` have body text that comes
back at the edge of pages; where they also have a running line, it is labelled.
"""

# ruff: noqa: E501
from __future__ import annotations

import random
from dataclasses import dataclass

WORDS = """river mill winter letter harbour council grain ledger bishop market winding street colour measure garden
iron parish doctor vessel timber witness evening northern copper orchard village soldier paper candle weather bridge
custom labour engine meadow station clerk family sugar salt window horse signal record county painter""".split()


@dataclass(frozen=True)
class Case:
    name: str
    pages: tuple[str, ...]  # as read
    running: tuple[frozenset[int], ...]  # per page, numbers of the lines that are running lines


def prose(seed: int, paragraphs: int = 2) -> str:
    rng = random.Random(seed)
    out = []
    for _ in range(paragraphs):
        words = [rng.choice(WORDS) for _ in range(rng.randint(12, 40))]
        out.append(" ".join(words).capitalize() + rng.choice([".", ".", "?", ", and"]))
    return "\n\n".join(out)


def case(name: str, pages: list[str]) -> Case:
    texts, labels = [], []
    for page in pages:
        lines = page.split("\n")
        labels.append(frozenset(i for i, line in enumerate(lines) if line.startswith("@")))
        texts.append("\n".join(line.removeprefix("@") for line in lines))
    return Case(name, tuple(texts), tuple(labels))


def book(name: str, n: int, top=None, bottom=None, body=prose, seed: int = 0, glue: str = "\n\n") -> Case:
    """``top`` and ``bottom`` give a page's labelled lines, or None for a page without."""
    pages = []
    for i in range(n):
        parts = [top(i) if top else None, body(1000 * seed + i), bottom(i) if bottom else None]
        pages.append(glue.join(part for part in parts if part))
    return case(name, pages)


def noisy(text: str, seed: int) -> str:
    """One letter read wrongly."""
    rng = random.Random(seed)
    places = [i for i, c in enumerate(text) if c.isalpha() and i > 1]
    at = rng.choice(places)
    return text[:at] + rng.choice("ceoalrnt") + text[at + 1 :]


LOWER = "i ii iii iv v vi vii viii ix x xi xii".split()
UPPER = [r.upper() for r in LOWER]
SPEAKERS = ["HAMLET", "HORATIO", "HAMLET", "OPHELIA", "HAMLET", "HAMLET"]

HONEST = [
    book("title in capitals", 5, lambda i: "@THE HISTORY OF ENGLAND", seed=1),
    book("title with a full stop", 6, lambda i: "@THE HISTORY OF ENGLAND.", seed=2),
    book("number before title", 6, lambda i: f"@{i + 12} THE HISTORY OF ENGLAND", seed=3),
    book("number after title", 6, lambda i: f"@Principles of Geology {i + 100}", seed=4),
    book("left and right", 8, lambda i: f"@{i} A NATURALIST'S VOYAGE" if i % 2 else f"@THE PAMPAS {i}", seed=5),
    book("left and right, no numbers", 8, lambda i: "@MIDDLEMARCH" if i % 2 else "@THE TWO TEMPTATIONS", seed=6),
    book("foot numbers", 4, None, lambda i: f"@{i + 1}", seed=7),
    book("dashed foot numbers", 5, None, lambda i: f"@- {i + 31} -", seed=8),
    book("long dashes", 5, None, lambda i: f"@— {i + 7} —", seed=9),
    book("roman front matter", 6, None, lambda i: f"@{LOWER[i + 4]}", seed=10),
    book("page n of m", 4, None, lambda i: f"@Page {i + 1} of 4", seed=11),
    book("german page word", 5, None, lambda i: f"@Seite {i + 3}", seed=12),
    book("chinese page word", 5, None, lambda i: f"@第{i + 1}页", seed=13),
    book("bracketed numbers", 5, lambda i: f"@[{i + 40}]", seed=14),
    book("slash total", 5, None, lambda i: f"@{i + 1}/5", seed=15),
    book("header and footer", 5, lambda i: "@ANNUAL REPORT 1997", lambda i: f"@{i + 2}", seed=16),
    book("two header lines", 5, lambda i: "@MINISTRY OF LABOUR\n\n@Statistical Office", seed=17),
    book("two header lines in one paragraph", 5, lambda i: "@MINISTRY OF LABOUR\n@Statistical Office", seed=18),
    book("number, then title", 6, lambda i: f"@{i + 9}\n\n@GREAT EXPECTATIONS", seed=19),
    book("noise in the title", 7, lambda i: "@" + noisy("HISTORY OF THE COUNTY OF ESSEX", i), seed=20),
    book("noise in the numbers", 7, None, lambda i: "@1O" if i == 3 else f"@{i + 7}", seed=21),
    book("opening page without", 6, lambda i: None if i == 0 else "@TREASURE ISLAND", seed=22),
    book("chapter opening in the middle", 9, lambda i: None if i == 4 else "@TREASURE ISLAND", seed=23),
    book("confidential mark", 4, None, lambda i: "@CONFIDENTIAL", seed=24),
    book("firm and document", 4, None, lambda i: "@Acme Corporation Safety Data Sheet", seed=25),
    book("bold header", 5, lambda i: "@**Journal of Botany**", seed=26),
    book("volume and page", 6, lambda i: f"@Proc. Roy. Soc., vol. 12, p. {i + 200}", seed=27),
    book("glued number", 5, lambda i: f"@{i + 55}", seed=28, glue="\n"),
    book("glued number and title", 5, lambda i: f"@{i + 55} WAR AND PEACE", seed=29, glue="\n"),
    book("chapter heads that change", 12, lambda i: f"@{['THE ROAD', 'THE INN', 'THE FIRE'][i // 4]}", seed=30),
    book("web footer", 4, None, lambda i: f"@https://example.org/report.pdf {i + 1}", seed=31),
    book("case number", 4, lambda i: "@Case No. 1:23-cv-00417 Document 88", seed=32),
    book("cyrillic", 5, lambda i: "@ИСТОРИЯ ГОСУДАРСТВА", lambda i: f"@{i + 5}", seed=33),
    book("chinese title", 5, lambda i: "@紅樓夢", seed=34),
    book("french, small letters", 8, lambda i: "@Histoire naturelle des oiseaux", seed=35),
    book("centred tag", 5, lambda i: "@<center>THE TIMES</center>", seed=36),
    book("first-page title and header", 5, lambda i: "# The Moonstone" if i == 0 else "@THE MOONSTONE", seed=37),
    book("download stamp", 4, None, lambda i: "@Downloaded from archive.example.org on 3 May 2019", seed=38),
]

HOSTILE = [
    case("two pages only", [f"@THE HISTORY\n\n{prose(i)}\n\n@{i + 1}" for i in range(2)]),
    case("one page", [f"THE HISTORY\n\n{prose(3)}\n\n1"]),
    case("refrain in the stanza", [f"{prose(i, 1)}\nQuoth the Raven Nevermore" for i in range(6)]),
    case("refrain apart", [f"{prose(i)}\n\nNevermore, nevermore!" for i in range(6)]),
    case("refrain without a stop", [f"{prose(i)}\n\nand miles to go before I sleep" for i in range(5)]),
    case("refrain in title case in the middle too", [f"{prose(i, 1)}\n\nGlory Hallelujah\n\n{prose(50 + i, 1)}\n\nGlory Hallelujah" for i in range(5)]),
    case("salutations", [f"Dear Sir,\n\n{prose(i)}\n\nYours faithfully," for i in range(5)]),
    case("gentlemen", [f"Gentlemen:\n\n{prose(i)}" for i in range(5)]),
    case("amen", [f"{prose(i)}\n\nAmen." for i in range(5)]),
    case("amen without a stop", [f"{prose(i)}\n\nAmen" for i in range(5)]),
    case("diary of days", [f"{i + 3} May 1897\n\n{prose(i)}" for i in range(6)]),
    case("diary, month first", [f"May {i + 3}, 1897\n\n{prose(i)}" for i in range(6)]),
    case("weekdays", [f"{d} {i + 1} March\n\n{prose(i)}" for i, d in enumerate(["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"])]),
    case("years", [f"{1914 + i}\n\n{prose(i)}" for i in range(5)]),
    case("exercises", [f"Exercise {i + 1}\n\n{prose(i)}" for i in range(6)]),
    case("paragraph signs", [f"§ {i + 12}\n\n{prose(i)}" for i in range(6)]),
    case("chapters, one a page", [f"CHAPTER {i + 1}\n\n{prose(i)}" for i in range(6)]),
    case("sonnets", [f"{UPPER[i]}\n\n{prose(i)}" for i in range(8)]),
    case("headings that repeat", [f"# Minutes of the meeting\n\n{prose(i)}" for i in range(5)]),
    case("underlined headings that repeat", [f"Minutes of the Meeting\n---\n\n{prose(i)}" for i in range(5)]),
    case("headings with page numbers", [f"## Question\n\n{prose(i)}\n\n@{i + 1}" for i in range(5)]),
    case("pipe table heads", [f"| Date | Name | Sum |\n|---|---|---|\n| {i} | a | {i * 7} |\n\n{prose(i)}" for i in range(5)]),
    case("html table heads", [f"<table><tr><th>Date</th></tr><tr><td>{i}</td></tr></table>\n\n{prose(i)}" for i in range(5)]),
    case("table heads as text", [f"Date    Name    Amount\n\n{prose(i)}" for i in range(5)]),
    case("continued table", [f"Table 3 (continued)\n\n| a | b |\n|---|---|\n| {i} | {i} |" for i in range(5)]),
    case("numbered list across pages", ["\n".join(f"{10 * p + k}. {WORDS[(7 * p + k) % 50]} and {WORDS[(3 * p + k) % 50]}" for k in range(10)) for p in range(5)]),
    case("same list item first", [f"- Present: the chairman\n- Absent: {WORDS[i]}\n\n{prose(i)}" for i in range(5)]),
    case("dictionary columns", ["\n\n".join(f"{w}{s} n." for s in ("er", "ing", "ed")) for w in ("cat", "car", "can", "cap", "cab")]),
    case("dictionary letter", [f"A\n\n{prose(i)}" for i in range(5)]),
    case("guide words", [f"{WORDS[2 * i].upper()}\n\n{prose(i)}" for i in range(6)]),
    case("forms", [f"REGISTRATION CARD\n\nName: {WORDS[i]}\n\nBorn: {1900 + 7 * i % 50}\n\nTrade: {WORDS[i + 9]}\n\nParish: {WORDS[i + 20]}" for i in range(6)]),
    case("forms in tables", [f"MEMBERSHIP FORM\n\n| Name | {WORDS[i]} |\n|---|---|\n| Born | {i} |\n| Trade | {WORDS[i + 3]} |" for i in range(6)]),
    case("play", [f"{s}.\n\n{prose(i, 1)}\n\nHAMLET.\n\n{prose(60 + i, 1)}\n\nHORATIO.\n\n{prose(80 + i, 1)}" for i, s in enumerate(SPEAKERS)]),
    case("play and its header", [f"@{i + 20} HAMLET, PRINCE OF DENMARK\n\nHAMLET.\n\n{prose(i, 1)}\n\nHORATIO.\n\n{prose(90 + i, 1)}" for i in range(5)]),
    case("interview", [f"Q. And then?\n\n{prose(i)}" for i in range(5)]),
    case("numbers that jump", [f"{prose(i)}\n\n{n}" for i, n in enumerate((12, 90, 31, 7, 55))]),
    case("sums at the foot", [f"{prose(i)}\n\nTotal {n}" for i, n in enumerate((1200, 910, 3150, 77, 5500))]),
    case("code", ["```\nimport os\n\nprint(1)\n```" for _ in range(4)]),
    case("display formulas", [f"$$\nx = {i}\n$$\n\n{prose(i)}\n\n$$\ny\n$$" for i in range(4)]),
    case("equal pages", ["TITLE OF WORK\n\nThe same text."] * 2),
    case("cards of one line", ["LIBRARY CARD"] * 5),
    case("invoices that differ", [f"Invoice {n}\n\n{prose(i)}" for i, n in enumerate((1001, 1017, 1044, 1203))]),
    case("rare repeats", [f"{'THE SEA' if i % 4 == 0 else WORDS[i].upper()}\n\n{prose(i)}" for i in range(12)]),
    case("column of numbers", ["\n".join(str(p + k) for k in range(6)) for p in range(5)]),
    case("short similar words", [f"{w}\n\n{prose(i)}" for i, w in enumerate(("Bread", "Break", "Bream", "Breed", "Breath"))]),
    case("sentence that comes back", [f"The court rose.\n\n{prose(i)}" for i in range(5)]),
    case("address block", [f"To the Lord Mayor,\n\n{prose(i)}\n\nI remain, my Lord, your servant" for i in range(5)]),
    case("image first", [f"![](figure)\n\n{prose(i)}" for i in range(4)]),
    case("quotations", [f"> In the beginning\n\n{prose(i)}" for i in range(4)]),
    case("labels in lower case", [f"see over\n\n{prose(i)}" for i in range(4)]),
]  # fmt: skip

HONEST += [
    book("proceedings", 7, lambda i: f"@{i + 311}" if i % 2 else f"@SESSIONAL PAPERS, No. 17 {i + 311}", seed=101),
    book("newspaper", 4, lambda i: f"@THE EVENING STAR, TUESDAY, MARCH 4, 1902. {i + 1}", seed=102),
    book("thesis", 6, lambda i: "@Chapter 2. Literature Review", lambda i: f"@{i + 15}", seed=103),
    book(
        "standard",
        5,
        lambda i: "@ISO 32000-1:2008(E)",
        lambda i: f"@© ISO 2008 – All rights reserved {i + 1}",
        seed=104,
    ),
    book("bank statement", 4, lambda i: "@First National Bank", lambda i: f"@Page {i + 1} / 4", seed=105),
    book("spanish", 5, lambda i: "@HISTORIA DE LA CONQUISTA", lambda i: f"@{i + 88}", seed=106),
    book("greek", 5, lambda i: "@ΙΣΤΟΡΙΑ ΤΟΥ ΕΘΝΟΥΣ", seed=107),
    book("preprint", 6, None, lambda i: "@Preprint. Under review.", seed=108),
    book("folio", 5, lambda i: f"@fol. {i + 20}", seed=109),
    book(
        "noise in capitals and numbers", 8, lambda i: f"@{i + 60} {noisy('TRANSACTIONS OF THE SOCIETY', i)}", seed=110
    ),
]

HOSTILE += [
    case("hymns", [f"{prose(i, 1)}\n\nGloria in excelsis Deo" for i in range(5)]),
    case("recipes", [f"Serves four\n\n{prose(i)}\n\nServe hot." for i in range(6)]),
    case("case reports", [f"Case {i + 1}. {WORDS[i].title()}\n\n{prose(i)}" for i in range(6)]),
    case("letters with a place", [f"London, {i + 3} June 1851\n\nMy dear Mother,\n\n{prose(i)}" for i in range(5)]),
    case("votes", [f"Carried unanimously\n\n{prose(i)}" for i in range(5)]),
    case("verse numbers", [f"{prose(i, 1)}\n\n{5 * (i + 1)}" for i in range(6)]),
    case("plates", [f"PLATE {UPPER[i]}\n\n{prose(i, 1)}" for i in range(6)]),
    case("stage directions", [f"Exeunt.\n\n{prose(i)}\n\nEnter the King" for i in range(4)]),
    case("catalogue", [f"{i + 40}. View of the harbour\n\n{prose(i, 1)}" for i in range(6)]),
    case("telegrams", [f"TELEGRAM\n\nFrom: {WORDS[i]}\n\nTo: {WORDS[i + 1]}\n\nDate: {i} May\n\n{prose(i)}" for i in range(5)]),
    case("questions", [f"{prose(i)}\n\nTurn over" for i in range(4)]),
    case("signatures", [f"{prose(i)}\n\nJohn Smith" for i in range(5)]),
]  # fmt: skip
CASES = HONEST + HOSTILE

# Written after the rules. Its first run gave precision 0.905 and recall 0.76; two rules were mended then, so it is no
# longer unseen.
HELD_OUT = [
    book("gazetteer", 6, lambda i: f"@{i + 402} IMPERIAL GAZETTEER OF INDIA", seed=201),
    book("almanac", 6, lambda i: f"@1887.] WHITAKER'S ALMANACK. {i + 70}", seed=202),
    book("novel with quotes", 8, lambda i: f"@“THE WOMAN IN WHITE” {i + 9}" if i % 2 else f"@{i + 9} “THE WOMAN IN WHITE”", seed=203),
    book("minutes", 5, None, lambda i: f"@Board of Trustees - Minutes - Page {i + 1}", seed=204),
    book("patent", 5, lambda i: "@US 4,123,456 A", lambda i: f"@{i + 1}", seed=205),
    book("court transcript", 6, lambda i: f"@Direct Examination of Mr. Ellis {i + 210}", seed=206),
    book("italian", 6, lambda i: f"@{i + 33} STORIA DELLA LETTERATURA", seed=207),
    book("polish page word", 5, None, lambda i: f"@str. {i + 5}", seed=208),
    book("manual", 5, lambda i: "@Operator's Manual\n@Model 740 Tractor", lambda i: f"@2-{i + 4}", seed=209),
    book("memo marks", 4, lambda i: "@TOP SECRET", lambda i: "@TOP SECRET", seed=210),
    case("ballads", [f"{prose(i)}\n\nO the broom, the bonny broom" for i in range(5)]),
    case("litany", [f"{prose(i)}\n\nPray for us" for i in range(8)]),
    case("inventory cards", [f"Object {200 + 3 * i}\n\n{prose(i, 1)}" for i in range(5)]),
    case("logbook", [f"Wind N.W., fresh\n\n{prose(i)}" for i in range(5)]),
    case("postcards", [f"{prose(i, 1)}\n\nLove, Mary" for i in range(6)]),
    case("sermons", [f"THE {o} SUNDAY\n\n{prose(i)}" for i, o in enumerate(("FIRST", "SECOND", "THIRD", "FOURTH", "FIFTH"))]),
    case("quiz answers", [f"Answer: {k}\n\n{prose(i)}" for i, k in enumerate("ABBAC")]),
    case("weather table", [f"Barometer {29 + i / 10:.1f}\n\n{prose(i)}" for i in range(6)]),
    case("parish register", [f"Baptisms in the year {1850 + i}\n\n{prose(i)}" for i in range(6)]),
    case("fables with a moral", [f"{prose(i)}\n\nMoral" for i in range(5)]),
    case("price lists", [f"{prose(i, 1)}\n\nPrices on application" for i in range(5)]),
    case("dialogue", [f"— And you?\n\n{prose(i)}\n\n— Never." for i in range(5)]),
    case("oath", [f"So help me God\n\n{prose(i)}" for i in range(4)]),
    case("index entries", [f"Abbot, {WORDS[i]}, {i + 3}\n\n{prose(i)}" for i in range(5)]),
]  # fmt: skip
