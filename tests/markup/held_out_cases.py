"""Cases written after the detector's rules were settled, to see how it does on texts nobody tuned it on.

On its first run the detector, as it was then, found 48 of the 50 loops (missed: image tags, images with a counter) and
raised one false alarm (rows of rings) in 45 honest texts: recall 0.960, precision 0.980. The rules were mended after.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

rng = random.Random(77)
TOWNS = "Alnwick Bude Crail Diss Ely Frome Goole Hythe Irvine Keswick Louth Malton Nairn Oban Penrith Ripon".split()
LETTER = (
    "My dear brother, your letter of the ninth reached us only yesterday, the roads being under snow from here to the "
    "ferry. Father is better and asks for tobacco. The two heifers were sold at the Martinmas fair for less than we "
    "hoped, and I have put the money by until you write what is to be done about the roof.\n\n"
)


def honest() -> Iterator[tuple[str, str]]:
    yield "".join(f"{t:<12}{rng.randint(10, 99):>6}{rng.randint(10, 99):>6}\n" for t in TOWNS * 4), "columns by blanks"
    yield "".join(f"{t} ..... {rng.randint(1, 300)} ..... {rng.randint(1, 9)}s\n" for t in TOWNS * 3), "price list"
    yield LETTER + "x x x x x x x x x x x x\n\n" + LETTER.upper(), "row of kisses"
    yield "O O O O O O O O O O O O O O O O O O O O O O O O O\n" * 12, "dot matrix of rings"
    yield "".join(f"<tr><td>{t}</td><td>nil</td><td>nil</td><td>nil</td></tr>\n" for t in TOWNS * 4), "nil returns"
    yield "<table>" + "<tr><td>nil</td><td>nil</td></tr>" * 20 + "</table>", "twenty nil rows"
    yield "<table>" + '<tr><td>"</td><td>"</td><td></td></tr>\n' * 55 + "</table>", "ditto marks in HTML"
    yield "| Name | Mark |\n|---|---|\n" + "".join(f"| {t} | X |\n" for t in TOWNS * 3), "signed with a cross"
    yield "".join(f"{y}-{m:02}-01 balance carried forward {rng.randint(1000, 9999)}\n" for y in (1901, 1902, 1903) for m in range(1, 13)), "balances"  # fmt: skip # noqa: E501
    yield "Balance carried forward\n" * 8, "carried forward, eight times"
    yield "".join(f"Seat {r}{n}\n" for r in "ABCDEF" for n in range(1, 25)), "seats"
    yield "".join(f"{i} × 7 = {i * 7}\n" for i in range(1, 30)), "times table of seven"
    yield "".join(f"Psalm {i}\n" for i in range(1, 151)), "psalms by number"
    yield "\n".join(f"[{i}]" for i in range(1, 120)), "footnote marks"
    yield "".join(f"No. {i} .......... £{i}\n" for i in range(1, 50)), "numbered prices equal to the number"
    yield "Ora pro nobis.\n" * 9, "nine responses"
    yield "(Refrain)\n" + "".join(f"{LETTER[i : i + 60]}\n(Refrain)\n" for i in range(0, 240, 30)), "refrain marks"
    yield "Gloria " * 3 + "in excelsis Deo. " + "Gloria " * 3, "gloria"
    yield "Row, row, row your boat,\nGently down the stream,\nMerrily, merrily, merrily, merrily,\nLife is but a dream.\n\n" * 3, "a round sung thrice"  # fmt: skip # noqa: E501
    yield "tick tock " * 12 + "went the clock", "tick tock"
    yield "Buffalo buffalo Buffalo buffalo buffalo buffalo Buffalo buffalo.", "buffalo"
    yield "ATG" + "GCA" * 20 + "".join(rng.choice("ACGT") for _ in range(300)) + "TAA", "gene with a short repeat"
    yield "SEQUENCE\n" + "\n".join("".join(rng.choice("ACDEFGHIKLMNPQRSTVWY") for _ in range(60)) for _ in range(20)), "protein"  # fmt: skip # noqa: E501
    yield "0.5, 0.25, 0.125, 0.0625, 0.03125, " + ", ".join(f"{2.0**-i:.12f}" for i in range(6, 40)), "halves"
    yield "$$" + " ".join(f"\\binom{{{n}}}{{{k}}}" for n in range(9) for k in range(n + 1)) + "$$", "binomials"
    yield "\\begin{tabular}{llll}\n" + " & & & \\\\ \\hline\n" * 30 + "\\end{tabular}", "empty LaTeX form"
    yield "$$\\begin{bmatrix}" + "1 & 1 & 1 & 1 & 1 \\\\" * 6 + "\\end{bmatrix}$$", "matrix of ones"
    yield (
        "第一条　略。\n第二条　略。\n第三条　略。\n第四条　略。\n第五条　略。\n第六条　略。\n第七条　略。\n",
        "articles omitted",
    )
    yield "同上\n" * 15, "fifteen times 'as above'"
    yield "知之为知之，不知为不知，是知也。" * 2, "Analects"
    yield "○○○○○○○○○○○○○○○○○○○○\n" * 10, "Japanese blanks as circles"
    yield "| 日付 | 天気 |\n|---|---|\n" + "".join(f"| {i}日 | {rng.choice(['晴', '晴', '雨'])} |\n" for i in range(1, 32)), "weather in kanji"  # fmt: skip # noqa: E501
    yield "لا إله إلا الله " * 7, "dhikr, seven times"
    yield "ॐ शान्तिः शान्तिः शान्तिः ॥ " * 3, "shanti"
    yield "```\n" + "    }\n" * 9 + "```", "closing braces"
    yield "<ul>" + "".join(f"<li>{t}</li>" for t in TOWNS * 3) + "</ul>", "list tags"
    yield "".join(f"#{i:06x} " for i in range(0, 4096, 64)), "colour codes"
    yield "[....+....1....+....2....+....3....+....4....+....5....+....6....+....7....+....8]", "card ruler"
    yield "1....:....2....:....3....:....4....:\n" * 6, "ruler lines"
    yield "1011000110" * 20, "200 bits with period 10"
    yield "/\\" * 60 + "\n" + "\\/" * 60, "zigzag ornament"
    yield "-oOo-" * 20, "ornament"
    yield "Copy.\n\n" + LETTER + "Copy.\n\n" + LETTER, "letter and its copy"
    yield "12345678901234567890123456789012345678901234567890", "column numbers"
    yield "| | Jan | Feb |\n|---|---|---|\n" + "| closed | closed | closed |\n" * 14, "fourteen weeks closed"


def loops() -> Iterator[tuple[str, str]]:
    yield LETTER + "and the roof and the roof " * 40, "two words of a letter"
    yield LETTER + "".join(f"{i}) and the roof, ferry, tobacco\n" for i in range(1, 200)), "bracketed counter"
    yield LETTER + "I remain, as ever,\n\nyour loving sister\n\n" * 30, "close of the letter"
    yield LETTER * 12, "the letter twelve times"
    yield (LETTER.strip() + " ") * 5 + "The end.", "the letter five times in one paragraph"
    yield "<table>" + "".join(f"<tr><td>{t}</td><td>nil</td></tr>" for t in TOWNS) * 8, "block of sixteen rows"
    yield "<table><tr>" + "<td>nil</td>" * 200, "nil without end"
    yield "<table><tr><td>" + "Oban " * 300, "a word inside a cell"
    yield "<table><tr><td>" + "<br>Oban, Argyll" * 100, "line breaks inside a cell"
    yield "| Town | Toll |\n|---|---|\n" + "| Oban | toll paid by the ferryman |\n" * 35, "pipe row"
    yield "| Town | Toll |\n|---|---|\n| " + "Oban, " * 250, "a word inside a pipe cell"
    yield "| a | b |\n" + "|---|---|\n" * 300, "delimiter rows without end"
    yield "|" + "---|" * 900, "delimiter cells without end"
    yield "The following towns: " + "Alnwick, Bude, Crail, Diss, " * 40, "four towns in turn"
    yield "The following towns: " + (", ".join(TOWNS) + ", ") * 9, "sixteen towns in turn"
    yield "".join(f"{1900 + i}: no entry in the register of this parish\n" for i in range(120)), "years count up"
    yield "".join(f"{200 - i}. The seal is wanting here.\n" for i in range(90)), "counts down"
    yield "Chapter 1\n\n" + "Chapter the First of the Second Book\n\n" * 40, "title"
    yield LETTER + "!" * 1500, "exclamation marks"
    yield LETTER + "? " * 1200, "question marks"
    yield LETTER + "\u3000" * 5000, "ideographic blanks"
    yield LETTER + "\\_" * 900, "escaped underscores"
    yield LETTER + "**" * 1500, "stars"
    yield LETTER + "# " * 800, "hashes"
    yield LETTER + "🙂" * 900, "emoji"
    yield LETTER + "1 1 1 1 " * 200, "ones"
    yield LETTER + "2023-01-01 " * 80, "one date"
    yield "9" * 2000, "nines"
    yield LETTER + "x1y2z3" * 120, "letters and digits without a blank"
    yield "abcdefghijklmnopqrstuvwxyz" * 40, "alphabet"
    yield LETTER + "谢谢大家的支持和鼓励" * 40, "thanks in Chinese"
    yield LETTER + "\n".join(["以上、相違ありません。"] * 50), "Japanese attestation"
    yield LETTER + "다음 장에 계속 " * 60, "Korean, continued"
    yield LETTER + "и" * 900, "one Cyrillic letter"
    yield LETTER + "والله أعلم، " * 60, "Arabic 'God knows best'"
    yield LETTER + "शान्तिः " * 80, "Sanskrit"
    yield LETTER + "ครับ " * 100, "Thai"
    yield "$$ \\begin{array}{c} " + "x_{1} = 0 \\\\ " * 80, "array row"
    yield "$$ x = " + "x = " * 200, "equals"
    yield "$" + "a^{2}+b^{2}=c^{2},\\;" * 45 + "$", "Pythagoras"
    yield "\\[ " + "\\left\\{ " * 300, "left braces"
    yield "$$ \\sum" + "_{i}" * 400 + "$$", "subscripts without end"
    yield "```json\n" + '{"key": "value"},\n' * 60, "JSON objects"
    yield "".join(f"![](img_{i}.png)\n\n" for i in range(200)), "images with a counter"
    yield "<img src='a.png'/>\n" * 60, "image tags"
    yield "".join(f"[^{i}]: Ibid., see the note above.\n" for i in range(1, 90)), "footnotes that only count"
    yield "see ibid., " * 70 + LETTER, "ibid first, letter after"
    barn = "The roof of the east barn was mended, at the cost of the parish, by two men of Crail; "
    yield LETTER + (barn * 3 + "\n") * 8, "three times in a line, eight lines"
    yield LETTER + "".join("and the miller said so\n" if i % 2 else "and  the miller said so \n" for i in range(50)), "blanks vary"  # fmt: skip # noqa: E501
    yield LETTER + "\n\n".join([LETTER[:90], LETTER[90:200], LETTER[200:280]] * 8), "three paragraphs in turn"
