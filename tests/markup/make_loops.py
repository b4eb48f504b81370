"""Writes ``data/loops.jsonl``: texts that loop and texts that repeat themselves for good reasons, labelled by hand.

The cases are written from what recognition models do when they run away and from what archive pages hold; each line is
``{"text", "loop", "why"}``. Run ``python tests/markup/make_loops.py`` to write the file anew (same seed, same bytes).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

OUT = Path(__file__).parent / "data" / "loops.jsonl"
Case = tuple[str, bool, str]

PROSE = {
    "en": "The harbour board met on the second Tuesday of the month and heard the report of its engineer. Dredging of "
    "the inner basin had begun in April; by the end of June some nine thousand cubic yards had been taken out and "
    "carried to sea. The east pier wants new fenders, and the clerk was told to ask for three tenders. Mr Aldous "
    "objected to the cost. A letter from the lighthouse keeper was read, in which he complains of the road after rain, "
    "and it was agreed that two loads of gravel be sent before the winter. The board then rose.",
    "de": "Der Gemeinderat trat am Abend zusammen und beriet über die Brücke am unteren Mühlbach. Das Holz ist morsch, "
    "die Pfeiler haben sich gesenkt, und der Müller fährt seit Ostern einen Umweg. Zwei Angebote lagen vor; das "
    "günstigere kam aus Regensburg. Man beschloss, im Herbst zu bauen, sofern das Wasser niedrig steht.",
    "fr": "Le notaire a dressé l'inventaire en présence des héritiers. On trouva dans la grande chambre un lit de "
    "noyer, deux coffres ferrés et une horloge arrêtée. Au grenier, du grain, des cordes et une selle usée. Le tout "
    "fut estimé à trois cent quarante livres, somme que la veuve jugea trop faible.",
    "ru": "Весной река вышла из берегов и затопила нижнюю улицу. Жители перебрались к родственникам на холм, скот "
    "угнали в лес. Через неделю вода спала, но мельница осталась без колеса, и зерно возили в соседнее село.",
    "zh": "县志记载,光绪年间此地连年大旱,百姓多往南方谋生。知县开仓放粮,又募工修渠,三年乃成。渠长四十余里,"
    "灌田万亩,至今仍在使用。城东有石碑一座,字迹多已漫漶,唯年号与捐资者姓名尚可辨认。",
    "ja": "明治二十年の春、村の小学校は新しい校舎に移った。屋根は瓦で葺かれ、教室は四つあった。"
    "先生は二人で、朝は鐘を鳴らして子供たちを集めた。冬になると雪が深く、遠い子は寺に泊まることもあった。",
    "ko": "마을 어귀에는 오래된 느티나무가 서 있었고 여름이면 노인들이 그 아래 모여 장기를 두었다. 장날이 되면 "
    "강 건너에서 배가 왔다. 소금과 생선을 싣고 와서 쌀과 바꾸어 갔다.",
    "ar": "كتب القاضي في السجل أن البستان الواقع شرق السور قد بيع بثلاثمائة درهم. وشهد على البيع اثنان من أهل الحارة. "
    "ثم ختم الصحيفة وأمر بحفظها في الخزانة.",
    "hi": "गाँव के पास एक पुराना कुआँ था जिसका पानी कभी नहीं सूखता था। लोग दूर से घड़े लेकर आते और पेड़ की छाया में बैठकर बातें करते।",
    "th": "ตลาดน้ำเปิดตั้งแต่เช้ามืด ชาวบ้านพายเรือมาจากคลองต่าง ๆ นำผักและผลไม้มาแลกเปลี่ยนกัน พอสายแดดแรงเรือก็ค่อย ๆ หายไป",
}
NAMES = (
    "Abbot Barlow Cotter Dunne Ellis Farrow Gaunt Hobbs Irving Jessop Kemp Larkin Mundy Nash Orde Pike Quill".split()
)
GOODS = "tallow;oak planks;white lead;rope;tar;nails;canvas;lamp oil;sea coal;salt beef;biscuit;candles".split(";")
rng = random.Random(20261129)


def words(n: int, letters: str = "abcdefghiklmnoprstuvw") -> str:
    return " ".join("".join(rng.choice(letters) for _ in range(rng.randint(2, 9))) for _ in range(n))


def unit_of(length: int) -> str:
    return words(length)[: length - 1] + " "


def loops() -> Iterator[tuple[str, str]]:
    """(text, why) of texts in which a model ran away."""
    for lang, text in PROSE.items():
        sentences = [s.strip() + "." for s in text.replace("。", ".").replace("।", ".").split(".") if s.strip()]
        last = sentences[-1]
        yield text + " " + (last + " ") * 25, f"{lang}: last sentence again and again at the tail"
        yield text + "\n\n" + (sentences[0] + "\n") * 30, f"{lang}: a line again and again"
        yield text + (last[: 2 + len(last) // 2]) * 24, f"{lang}: half a sentence, cut off at the token limit"
        yield (sentences[0] + " ") * 28 + "\n\n" + text, f"{lang}: loop first, then the page goes on"
        yield text + "\n\n" + (text + "\n\n") * 6, f"{lang}: the whole paragraph again and again"
    for period in (24, 61, 97, 150, 211, 256, 300, 333, 384, 411, 450, 477, 500, 511, 512):
        count = max(6, 900 // period)
        yield PROSE["en"] + " " + unit_of(period) * count, f"unit of {period} characters, tail"
        yield PROSE["de"] + " " + unit_of(period) * count + PROSE["fr"], f"unit of {period} characters, middle"
    for phrase, count in (
        ("the ", 120), ("of the ", 70), ("and ", 300), ("I ", 400), ("Mr. ", 90), ("see page ", 60), ("1. ", 300),
        ("0", 3000), ("0.0", 700), ("1,", 800), ("a", 2500), ("ha", 400), ("no. no. ", 100), ("\\quad ", 400),
        (". ", 2000), ("-", 3000), ("_", 4000), ("....", 900), ("* * ", 900), ("| ", 1500), ("|", 4000), ("…", 1200),
        ("<br>", 400), ("&nbsp;", 700), ("的", 400), ("一二", 200), ("ー", 900), ("、", 1500), ("はい、", 80), ("和", 90),
    ):  # fmt: skip
        yield PROSE["en"][:200] + "\n" + phrase * count, f"{phrase!r} x {count}"
    yield from _table_loops()
    yield from _markup_loops()


def _table_loops() -> Iterator[tuple[str, str]]:
    head = "<table><tr><th>Name</th><th>Goods</th><th>Sum</th></tr>"
    row = "<tr><td>Barlow</td><td>oak planks</td><td>12</td></tr>"
    start = "".join(f"<tr><td>{n}</td><td>{rng.choice(GOODS)}</td><td>{rng.randint(2, 90)}</td></tr>" for n in NAMES)
    yield head + start + row * 60, "HTML row again and again, one line, table never closed"
    yield head + "\n" + "\n".join([row] * 50) + "\n</table>", "HTML row again and again, a line each"
    yield head + (row + row.replace("Barlow", "Nash")) * 30 + "</table>\n" + PROSE["en"], "two HTML rows in turn"
    block = "".join(f"<tr><td>{n}</td><td>{rng.choice(GOODS)}</td><td>{rng.randint(2, 90)}</td></tr>" for n in NAMES)
    yield head + block * 5 + "</table>", "a block of 17 rows (longer than 512 characters) five times over"
    yield head + "<tr>" + "<td></td>" * 500, "empty HTML cells without end"
    yield head + "<tr><td></td><td></td><td></td></tr>" * 300, "empty HTML rows far beyond a page"
    yield head + "<tr><td>0</td><td>0</td><td>0</td></tr>" * 400, "rows of zeros far beyond a page"
    yield head + "<tr><td>Total</td><td>-</td><td>-</td></tr>" * 120, "Total row again and again"
    yield "| Date | Item | Sum |\n|---|---|---|\n" + "| 4 May | lamp oil, two casks | 12.50 |\n" * 60, "pipe row"
    yield "| a | b |\n|---|---|\n" + "|  |  |\n" * 400, "empty pipe rows far beyond a page"
    yield (
        "| Year | Rainfall |\n|---|---|\n" + "| 1887 | very dry | | |\n| 1888 | wet spring | | |\n" * 25,
        "two pipe rows",
    )
    rows = [f"| {n} | {rng.choice(GOODS)} | {rng.randint(1, 99)} |" for n in NAMES[:12]]
    yield "| N | G | S |\n|---|---|---|\n" + ("\n".join(rows) + "\n") * 6, "a block of 12 pipe rows six times over"
    yield "| 项目 | 金额 |\n|---|---|\n" + "| 购置木料 | 三十两 |\n" * 60, "Chinese pipe row"
    yield "<table>" + "<tr><td>氏名</td><td>住所不明</td><td>無職</td></tr>" * 40, "Japanese HTML row"
    yield "<table>" + "<tr><td>Итого</td><td>не указано</td></tr>\n" * 45 + "</table>", "Russian HTML row"
    yield "<table><tr>" + "<td>Remarks of the inspector</td>" * 40 + "</tr></table>", "one cell without end"
    yield "<table>" + '<tr><td colspan="2">The same as in the year before</td></tr>' * 30, "row with a span"
    yield (
        ("\\begin{tabular}{ll}\n" + "Barlow & oak planks, new \\\\\n" * 45 + "\\end{tabular}"),
        "LaTeX row again and again",
    )
    yield (
        "| No | Name |\n|---|---|\n" + "".join(f"| {i} | not stated in the register |\n" for i in range(1, 150)),
        ("row with a running number that only counts"),
    )
    yield (
        "<table>" + "".join(f"<tr><td>{i}</td><td>See the remarks above</td></tr>\n" for i in range(1, 90)),
        "HTML row with a running number that only counts",
    )
    yield head + "".join([row + ("\n" if i % 3 else " \n  ") for i in range(45)]), "same row, other blank space"


def _markup_loops() -> Iterator[tuple[str, str]]:
    yield PROSE["en"] + "\n" + "![figure](page_image.png)\n\n" * 60, "image link again and again"
    yield "# Report\n\n" + "## Summary of the results\n\n" * 40, "heading again and again"
    yield "".join(f"{i}. The committee resolved to adjourn.\n" for i in range(1, 120)), "list that only counts"
    yield "".join(f"{i}. \n" for i in range(1, 40)) + "The board rose at noon. " * 40, "numbers, then a loop"
    yield "".join(f"Figure {i}: View of the inner basin from the east pier.\n" for i in range(4, 80)), "captions count"
    yield "".join(f"- Item {i} of the list is not legible.\n\n" for i in range(1, 70)), "bullets that only count"
    yield "$$" + "\\frac{a}{b} + " * 60, "LaTeX fraction sum"
    yield "\\[ x = " + "\\left( \\alpha + \\beta \\right) " * 40 + "\\]", "LaTeX bracket"
    yield "$" + "\\mathbf{x}_{i} \\cdot " * 50 + "$", "LaTeX product without end"
    yield "x = " + "{" * 2000, "opening braces without end"
    yield "$$\\begin{array}{" + "c" * 1500, "column letters without end"
    yield "\\begin{matrix} " + "a_{11} & b_{12} \\\\ " * 70, "matrix row"
    yield PROSE["fr"] + "\n\n" + ("* article premier, voir plus haut\n" * 40), "bullet again and again"
    yield PROSE["en"] + "\n" + ("> He said no more.\n>\n" * 50), "quotation again and again"
    yield ("\n\n".join(PROSE["en"].split(". ")) + "\n\n") * 5, "a page of short paragraphs five times over"
    yield (
        PROSE["de"] + " " + "".join(rng.choice(["Zimmer ", "Zimmer  "]) for _ in range(4)) + "Keller, Boden, " * 60,
        ("room list"),
    )
    yield "```\n" + "return self._value\n" * 80 + "```", "code line again and again"
    yield "http://" + "www.example.org/archive/" * 60, "URL path"
    yield (
        ("The quick survey of the parish found nothing of note in that year,\nand the rector signed it. " * 20),
        ("sentence over two lines"),
    )
    wrapped = "It is hereby certified that the above is true and correct. " * 30
    text = wrapped.split(" ")
    out, line = [], ""
    for word in text:
        if len(line) + len(word) > 72:
            out.append(line.strip())
            line = ""
        line += word + " "
    yield "\n".join([*out, line.strip()]), "sentence wrapped at 72 columns"
    yield PROSE["en"] + "\n\n" + "<b>NOTE</b> Keep this side up. " * 30, "bold note"
    yield PROSE["ru"] + " " + "и так далее, " * 60, "Russian and so on"
    yield PROSE["zh"] + "以下空白。" * 60, "Chinese 'nothing below'"
    yield PROSE["ja"] + "と言った。" * 70, "Japanese 'he said'"
    yield "".join(f"{PROSE['en'][:90]}{' ' * (i % 2)}\n" for i in range(20)), "line with a stray blank"


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


def cases() -> Iterator[Case]:
    for text, why in loops():
        yield text, True, why
    for text, why in honest():
        yield text, False, why


def main() -> None:
    OUT.parent.mkdir(exist_ok=True)
    rows = [json.dumps({"text": t, "loop": loop, "why": why}, ensure_ascii=False) for t, loop, why in cases()]
    OUT.write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
