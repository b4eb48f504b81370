"""Texts in which a model ran away, as recognition models do."""

from __future__ import annotations

import random
from collections.abc import Iterator

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
        ("<br>", 400), ("&nbsp;", 700), ("的", 400),
        ("一二", 200), ("ー", 900), ("、", 1500), ("はい、", 80), ("和", 90),
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
