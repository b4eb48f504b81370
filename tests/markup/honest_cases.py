"""Texts that repeat themselves as archive pages do, or not at all."""

from __future__ import annotations

from collections.abc import Iterator

from loop_cases import GOODS, NAMES, PROSE, rng, words


def honest() -> Iterator[tuple[str, str]]:
    """(text, why) of texts that repeat themselves as pages do, or not at all."""
    for lang, text in PROSE.items():
        yield text, f"{lang}: prose"
        yield text + "\n\n" + text, f"{lang}: the page is printed twice"
        yield (
            text + "\n\n" + (text[:2] + " " if lang in ("zh", "ja") else text.split(" ")[0] + " ") * 10 + "\n" + text,
            f"{lang}: ten equal words",
        )
    yield from _fillers()
    yield from _tables()
    yield from _verse()
    yield from _lists()
    yield from _science()
    yield from _forms()


def _fillers() -> Iterator[tuple[str, str]]:
    chapters = [f"{rng.choice(GOODS).title()} and {rng.choice(GOODS)}" for _ in range(40)]
    yield "\n".join(f"{c} {'.' * (90 - len(c))} {i * 7}" for i, c in enumerate(chapters, 1)), "contents with leaders"
    yield "\n".join(f"{c} {'. ' * (60 - len(c))}{i * 3}" for i, c in enumerate(chapters, 1)), "contents, wide leaders"
    yield "Preface " + "." * 240 + " ix", "one very long leader"
    yield "Signed " + "_" * 200 + "\n\nDate " + "_" * 120, "rules to sign on"
    yield PROSE["en"] + "\n\n" + "-" * 200 + "\n\n" + PROSE["fr"], "a long rule"
    yield PROSE["en"] + "\n" + "=" * 180 + "\n" + PROSE["fr"], "a double rule"
    yield ("_" * 90 + "\n") * 40, "a sheet of writing lines"
    yield "Answer:\n\n" + ("." * 80 + "\n\n") * 30, "dotted answer lines"
    yield "* * *\n\n".join([PROSE["en"], PROSE["de"], PROSE["fr"]]), "asterisks between sections"
    yield "|" + "---|" * 60 + "\n", "a delimiter row of sixty columns"
    yield "+" + ("-" * 12 + "+") * 14 + "\n", "an ASCII rule"
    yield (("+" + "-" * 10) * 6 + "+\n" + ("|" + " " * 10) * 6 + "|\n") * 20, "an empty ASCII grid"
    yield "A" + " " * 300 + "B\n" + "C" + " " * 300 + "D", "text set far apart with blanks"
    yield PROSE["en"] + "\n" * 80 + PROSE["de"], "many blank lines"
    yield "&nbsp;" * 40 + "Chapter the First" + "&nbsp;" * 40, "indent by entities"
    yield "目录\n" + "\n".join(f"第{i}章{'…' * 40}{i * 12}" for i in range(1, 25)), "Chinese contents"
    yield "目次\n" + "\n".join(f"{i} 春の巻{'・' * 60}{i * 9}" for i in range(1, 20)), "Japanese contents"
    yield "~" * 100 + "\n" + PROSE["en"] + "\n" + "~" * 100, "wavy rules"
    yield "<br>" * 20 + PROSE["fr"], "twenty line breaks"


def _tables() -> Iterator[tuple[str, str]]:
    cells = "| " + " | ".join([""] * 8) + " |\n"
    yield "| Date | Dr | Cr | | | | |\n|---|---|---|---|---|---|---|\n" + cells * 45, "an empty ledger page"
    sparse = "".join(
        f"| {i if i % 9 == 0 else ''} |  |  | {rng.randint(1, 99) if i % 13 == 0 else ''} |  |\n" for i in range(60)
    )
    yield "| No | a | b | c | d |\n|---|---|---|---|---|\n" + sparse, "a sparse ledger, pipes"
    html_row = "<tr><td></td><td></td><td></td><td></td><td></td><td></td></tr>"
    yield (
        "<table>" + "<tr><th>Day</th><th>Debit</th><th>Credit</th></tr>" + html_row * 50 + "</table>",
        "empty HTML ledger",
    )
    mixed = "".join(html_row if i % 7 else f"<tr><td>{i} May</td><td>{i * 13}</td></tr>" for i in range(70))
    yield "<table>" + mixed + "</table>", "sparse HTML ledger"
    yield "<table><tr>" + "<td></td>" * 60 + "</tr></table>", "sixty empty cells in one row"
    yield "\n".join("| " + " | ".join(str(a * b) for b in range(1, 16)) + " |" for a in range(1, 16)), "multiplication"
    yield "\n".join("| " + " | ".join("0" for _ in range(14)) + " |" for _ in range(40)), "a table of zeros"
    yield "\n".join(" ".join("0.00" for _ in range(10)) for _ in range(25)), "a grid of 0.00"
    yield "\n".join("| " + " | ".join("1" if a == b else "0" for b in range(20)) + " |" for a in range(20)), "identity"
    yield (
        "| Name | Item | |\n|---|---|---|\n"
        + "".join(f"| {rng.choice(NAMES)} | do. | do. | {rng.randint(1, 40)} |\n" for _ in range(45)),
        "ditto columns",
    )
    yield (
        "| Week | To | Sum |\n|---|---|---|\n"
        + "".join(
            f"| {i} | wages, two men | {18 + rng.randint(0, 3)}s {rng.randint(0, 11)}d |\n" for i in range(1, 53)
        ),
        "weekly wages",
    )
    yield (
        "| Date | Weather |\n|---|---|\n"
        + "".join(f"| {i} June | {rng.choice(['fair', 'fair', 'rain'])} |\n" for i in range(1, 31)),
        "weather diary",
    )
    yield (
        "| Pupil | M | T | W |\n|---|---|---|---|\n"
        + "".join(
            f"| {rng.choice(NAMES)} {rng.choice('ABCDEFG')}. | present | present | present |\n" for _ in range(40)
        ),
        "attendance",
    )
    yield (
        "<table>"
        + "".join(f"<tr><td>{i}</td><td>vacant</td><td>{rng.randint(20, 60)}</td></tr>" for i in range(1, 60))
        + "</table>",
        "house list, many vacant",
    )
    yield "| x | y |\n|---|---|\n" + "".join(f"| {i} | {i * i} |\n" for i in range(1, 60)), "squares"
    yield (
        "| 品名 | 数量 | 备注 |\n|---|---|---|\n"
        + "".join(
            f"| {rng.choice(['木料', '石灰', '麻绳', '桐油'])} | {rng.randint(1, 50)} | 无 |\n" for _ in range(40)
        ),
        "Chinese stores, remark always none",
    )
    yield "| 时间 | 一 | 二 |\n|---|---|---|\n" + "| 无 | 无 | 无 |\n" * 12, "twelve equal short rows"
    yield (
        "| Team | Res |\n|---|---|\n" + "".join(f"| {a} v {b} | 1-0 |\n" for a in NAMES[:7] for b in NAMES[7:13]),
        "results",
    )
    yield (
        "| Depart | Arrive |\n|---|---|\n"
        + "".join(f"| {h:02}.{m:02} | {h:02}.{m + 14:02} |\n" for h in range(6, 22) for m in (0, 30)),
        "timetable",
    )
    yield "\n".join(f"{a:08x}  {'00 ' * 16} |{'.' * 16}|" for a in range(0, 800, 16)), "hex dump of zeros"
    yield "\\begin{array}{cccc}\n" + "0 & 0 & 0 & 0 \\\\\n" * 8 + "\\end{array}", "zero matrix"
    yield (
        "| " + " | ".join(["No."] * 12) + " |\n" + "|---" * 12 + "|\n| " + " | ".join(map(str, range(12))) + " |",
        ("twelve equal headings"),
    )
    yield "<table>" + "<tr><td>Paid</td><td>Paid</td><td>Paid</td></tr>" * 12 + "</table>", "twelve rows of Paid"
    yield "| A | B |\n|---|---|\n" + "| - | - |\n" * 60, "sixty rows of dashes"
    yield "| A | B | C |\n|---|---|---|\n" + '| " | " | " |\n' * 60, "sixty rows of ditto marks"
    yield (
        "<table>"
        + "".join(
            f"<tr><td>{y}</td><td>{rng.randint(1, 9)}</td><td>{rng.randint(100, 999)}</td></tr>"
            for y in range(1850, 1940)
        )
        + "</table>",
        "yearly figures",
    )


def _verse() -> Iterator[tuple[str, str]]:
    chorus = "Heave away, my hearties, heave away,\nThe wind is in the west and we sail today,\n"
    verses = [f"{rng.choice(NAMES)} was our captain and {rng.choice(NAMES)} was our mate,\nWe carried {g} to the narrow strait,\n" for g in GOODS]  # fmt: skip # noqa: E501
    yield "\n".join(v + chorus for v in verses), "a shanty, chorus after each verse"
    yield PROSE["en"] + "\n\n" + chorus * 4, "chorus sung four times at the end"
    yield "Lord, have mercy.\n" * 12, "twelve times 'Lord, have mercy'"
    saints = [f"Saint {n}, pray for us.\n" for n in NAMES * 3]
    yield "".join(saints), "litany of the saints"
    yield "".join(f"{s}R. Hear us, O Lord.\n" for s in saints), "litany with a response"
    yield "Holy, holy, holy, Lord God of hosts. " * 3, "threefold sanctus"
    yield "Kyrie eleison. " * 6 + "Christe eleison. " * 3 + "Kyrie eleison. " * 6, "Kyrie"
    built = ["the house", "the malt", "the rat", "the cat", "the dog", "the cow"]
    yield (
        "\n\n".join("This is " + " that went with ".join(built[i::-1]) + "." for i in range(len(built))),
        "cumulative rhyme",
    )
    yield "Tra la la la la la la la la la la\n" * 3, "la la la"
    yield "la " * 20 + "\n" + PROSE["fr"] + "\n" + "la " * 20, "twenty la, twice"
    yield "bells, bells, bells, bells,\nBells, bells, bells,\nTo the rhyming of the bells!\n" * 2, "bells"
    yield "\n".join(f"{n} green bottles hanging on the wall,\n{n} green bottles hanging on the wall,\nAnd if one green bottle should accidentally fall,\nThere'll be {n - 1} green bottles hanging on the wall.\n" for n in range(10, 0, -1)), "ten green bottles"  # fmt: skip # noqa: E501
    yield "Amen. " * 9, "nine amens"
    yield (
        "采采芣苢，薄言采之。采采芣苢，薄言有之。\n采采芣苢，薄言掇之。采采芣苢，薄言捋之。\n采采芣苢，薄言袺之。采采芣苢，薄言襭之。",
        "ode",
    )
    yield "南无阿弥陀佛，" * 10, "Buddha's name ten times"
    yield "さくら さくら\n弥生の空は\n見渡す限り\n" * 2, "song, twice"
    yield "ha ha ha ha ha ha ha ha ha! " * 2, "laughter"
    yield (
        "e|--------------------|\nB|--------------------|\nG|--------------------|\nD|--------------------|\n\n" * 8,
        "tabs",
    )
    yield "K2, P2, " * 12 + "turn.\n" + "K1, P1, " * 10, "knitting"
    yield "ACT I.\n\n" + "".join(f"{rng.choice(['HAMISH', 'MORAG'])}. {words(6)}.\n" for _ in range(60)), "a play"


def _lists() -> Iterator[tuple[str, str]]:
    yield "".join(f"{i}. {rng.choice(NAMES)}, {rng.choice(NAMES)}: of {words(4)}. London, {rng.randint(1700, 1900)}.\n" for i in range(1, 60)), "bibliography"  # fmt: skip # noqa: E501
    yield "".join(f"———. {words(5)}. Oxford, {1900 + i}.\n" for i in range(25)), "same author by dashes"
    yield "".join(f"{n}, {', '.join(str(rng.randint(1, 400)) for _ in range(6))}\n" for n in NAMES * 3), "index"
    yield "".join(f"{i}.\n" for i in range(1, 61)), "line numbers of a legal sheet"
    yield "".join(f"Whereas the said {n} did on the {i}th day; and\n" for i, n in enumerate(NAMES, 4)), "whereas"
    yield "".join(f"Table {i}. Exports of {g}, {1880 + i}.\n" for i, g in enumerate(GOODS * 3, 1)), "list of tables"
    yield "".join(f"Lot {i}: {rng.choice(GOODS)}, {rng.randint(1, 30)} casks, sold to {rng.choice(NAMES)}.\n" for i in range(1, 70)), "auction"  # fmt: skip # noqa: E501
    yield "".join(f"Page {i} of 20\n\n{PROSE['en'][i * 20 : i * 20 + 80]}\n\n" for i in range(1, 21)), "running foot"
    yield "".join(f"{n} {rng.choice(NAMES)}, b. {rng.randint(1800, 1880)}, d. {rng.randint(1881, 1950)}\n" for n in NAMES * 4), "graves"  # fmt: skip # noqa: E501
    yield "".join(f"({i}) {'Yes' if rng.random() < 0.5 else 'No'}\n" for i in range(1, 60)), "answers"
    yield "".join(f"import module_{c}\n" for c in "abcdefghijklmnopqrstuvwxyz"), "imports"
    yield '{"a": 0, "b": [0, 0, 0, 0, 0, 0, 0, 0]}\n' * 3, "JSON"
    yield (
        "const unsigned char table[] = {\n"
        + "".join("  " + ", ".join(f"0x{rng.randint(0, 255):02x}" for _ in range(12)) + ",\n" for _ in range(30))
        + "};",
        "byte table",
    )
    yield "const unsigned char zero[] = {\n" + ("  " + "0x00, " * 8 + "\n") * 8 + "};", "byte table of zeros"
    yield "nop\n" * 16 + "ret\n", "sixteen nops"
    yield "".join(f"1st Ditto, {rng.choice(NAMES)}.\n" for _ in range(40)), "muster roll"
    yield "".join(f"– {rng.choice(['oui', 'non'])}, monsieur.\n" for _ in range(50)), "cross-examination, short answers"
    yield "".join(f"Q. {words(7)}?\nA. I do not recall.\n" for _ in range(40)), "cross-examination, same answer"
    yield "Item, j d.\n" * 9, "nine items of a penny"
    yield "idem, " * 14, "idem"
    yield "".join(f"§ {i}. (weggefallen)\n" for i in range(30, 48)), "repealed sections, eighteen"
    yield "".join(f"Art. {i}. Abrogé.\n" for i in range(101, 125)), "repealed articles, twenty-four"


def _science() -> Iterator[tuple[str, str]]:
    yield "CAG" * 40, "triplet expansion"
    yield "".join(rng.choice("ACGT") for _ in range(1500)), "DNA"
    yield PROSE["en"] + " AATAAA" + "A" * 200, "poly-A tail"
    yield "ATATATATAT" * 8 + "GC", "AT repeat"
    yield "1/7 = 0." + "142857" * 10, "repeating decimal"
    yield "1/3 = 0." + "3" * 60, "a third"
    yield "10^{100} = 1" + "0" * 100, "a googol"
    yield "".join(rng.choice("01") for _ in range(800)), "bits"
    yield "0101" * 32, "alternating bits"
    yield "$$" + " + ".join(f"a_{{{i}}}x^{{{i}}}" for i in range(40)) + "$$", "polynomial"
    yield "$$\\sqrt{2+\\sqrt{2+\\sqrt{2+\\sqrt{2+\\sqrt{2+\\sqrt{2}}}}}}$$", "nested roots"
    yield "$$1+\\cfrac{1}{1+\\cfrac{1}{1+\\cfrac{1}{1+\\cfrac{1}{1+\\cfrac{1}{1+\\ddots}}}}}$$", "continued fraction"
    yield "\\begin{pmatrix}" + " \\\\ ".join(" & ".join(str((a * b) % 5) for b in range(8)) for a in range(8)) + "\\end{pmatrix}", "matrix"  # fmt: skip # noqa: E501
    yield (
        "\\begin{align}\n" + "".join(f"x_{{{i}}} &= y_{{{i}}} + z \\\\\n" for i in range(30)) + "\\end{align}",
        "align",
    )
    yield "abc " + "\\quad " * 12 + "def", "spacing"
    yield "SOS ... --- ... ... --- ... ... --- ...", "Morse"
    yield "$(x+y)(x+y)(x+y)(x+y)(x+y)(x+y)(x+y)(x+y)$", "eighth power written out"
    yield "CH2-" * 18 + "CH3", "long chain"
    yield "Gly-Pro-" * 12, "peptide"
    yield "MKV" + "GPP" * 25 + "LLA", "collagen"
    yield "".join(f"$\\alpha_{{{i}}} = {i}/{i + 1}$, " for i in range(1, 50)), "sequence of values"


def _forms() -> Iterator[tuple[str, str]]:
    yield "Name: ________ Date: ________ Sum: ________\n" * 14, "form lines"
    yield "☐ Yes ☐ No\n" * 24, "boxes"
    yield "年　　月　　日\n" * 18, "Japanese date lines"
    yield "".join(f"{i}. {words(6)}? ( ) Yes ( ) No ( ) Not known\n" for i in range(1, 50)), "questionnaire"
    yield "ADMIT ONE\n" * 12, "sheet of tickets"
    receipt = "RECEIVED of ________ the sum of ________ pounds for harbour dues.\nSigned ________ for the Board.\n\n"
    yield receipt * 3, "receipt in three copies"
    yield "[ ] " * 60, "checkboxes"
    yield "□" * 100, "boxes for letters"
    yield "□□□-□□□□\n" * 30, "boxes for postcodes"
    yield "Mo Tu We Th Fr Sa Su\n" + " 1  2  3  4  5  6  7\n 8  9 10 11 12 13 14\n" * 2, "calendar"
    yield "# . # . # . # .\n. # . # . # . #\n" * 8, "chequers"
    yield "\n".join(f"Sample {i}: pass" for i in range(1, 60)), "test protocol"
    yield "\n".join(f"{h:02}:00 no entry" for h in range(24)), "log of a quiet day"
    yield "".join(f"<p>{rng.choice(NAMES)}</p>" for _ in range(80)), "paragraph tags"
    yield "**Note.** " * 5 + PROSE["en"], "five notes"
    yield "姓名＿＿＿＿＿＿＿＿性别＿＿＿＿年龄＿＿＿＿\n" * 12, "Chinese form lines"
    yield "Dear Sir, Dear Sir, Dear Sir, Dear Sir, Dear Sir, Dear Sir,", "pen trials"
    yield "1 2 3 4 5 6 7 8 9 0 " * 9, "ruler figures"
    yield "A B C D E\n" * 25, "answer sheet without numbers"
    yield "", "nothing"
    yield " \n \n", "blank space"
