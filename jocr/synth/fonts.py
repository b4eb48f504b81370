"""Which typefaces pages are drawn with, and where their files are.

Files are looked up by name in ``$JOCR_FONTS`` (folders, separated as in PATH), the usual system folders, matplotlib's
data folder and installed packages whose name contains "font". A family whose regular file is absent is left out, so
the same seed draws the same page only where the same fonts are installed.
"""

from __future__ import annotations

import os
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jocr.errors import ConfigError

_SYSTEM = (
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "/usr/share/texmf/fonts/opentype/public",
    "~/.fonts",
    "~/.local/share/fonts",
    "/System/Library/Fonts",
    "/Library/Fonts",
    "C:/Windows/Fonts",
)
_REMEDY = (
    "install some, for example: apt-get install fonts-dejavu fonts-liberation2 fonts-noto-core fonts-texgyre "
    "fonts-lmodern fonts-freefont-ttf fonts-crosextra-caladea fonts-crosextra-carlito fonts-ebgaramond "
    "fonts-sil-gentium fonts-linuxlibertine fonts-roboto-unhinted; or point JOCR_FONTS at a folder of fonts"
)


@dataclass(frozen=True, slots=True)
class Family:
    """One typeface: file stems of its faces; an empty string where a face is not used."""

    name: str
    regular: str
    bold: str = ""
    italic: str = ""


@dataclass(frozen=True, slots=True)
class MathFamily:
    """Faces of formulas. ``alphanumeric``: letters come from the mathematical italic block of ``upright``."""

    name: str
    upright: str
    italic: str
    alphanumeric: bool = False


TRAIN = (
    Family("DejaVu Sans", "DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique"),
    Family("DejaVu Serif", "DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-Italic"),
    Family("DejaVu Sans Mono", "DejaVuSansMono", "DejaVuSansMono-Bold", "DejaVuSansMono-Oblique"),
    Family("Liberation Sans", "LiberationSans-Regular", "LiberationSans-Bold", "LiberationSans-Italic"),
    Family("Liberation Serif", "LiberationSerif-Regular", "LiberationSerif-Bold", "LiberationSerif-Italic"),
    Family("Liberation Mono", "LiberationMono-Regular", "LiberationMono-Bold", "LiberationMono-Italic"),
    Family("Noto Sans", "NotoSans-Regular", "NotoSans-Bold", "NotoSans-Italic"),
    Family("Noto Serif", "NotoSerif-Regular", "NotoSerif-Bold", "NotoSerif-Italic"),
    Family("Latin Modern Roman", "lmroman10-regular", "lmroman10-bold", "lmroman10-italic"),
    Family("Latin Modern Sans", "lmsans10-regular", "lmsans10-bold", "lmsans10-oblique"),
    Family("TeX Gyre Pagella", "texgyrepagella-regular", "texgyrepagella-bold", "texgyrepagella-italic"),
    Family("TeX Gyre Schola", "texgyreschola-regular", "texgyreschola-bold", "texgyreschola-italic"),
    Family("TeX Gyre Adventor", "texgyreadventor-regular", "texgyreadventor-bold", "texgyreadventor-italic"),
    Family("Caladea", "Caladea-Regular", "Caladea-Bold", "Caladea-Italic"),
    Family("EB Garamond", "EBGaramond12-Regular", "EBGaramond12-Bold", "EBGaramond12-Italic"),
    Family("Gentium", "Gentium-R", "", "Gentium-I"),
    Family("Open Sans", "OpenSans-Regular", "OpenSans-Bold", "OpenSans-Italic"),
)
# Seen in training only: held-out pages never use them, so what is installed of these changes no held-out page.
EXTRA = (
    Family("DejaVu Sans Condensed", "DejaVuSansCondensed", "DejaVuSansCondensed-Bold", "DejaVuSansCondensed-Oblique"),
    Family(
        "DejaVu Serif Condensed", "DejaVuSerifCondensed", "DejaVuSerifCondensed-Bold", "DejaVuSerifCondensed-Italic"
    ),
    Family("Liberation Sans Narrow", "LiberationSansNarrow-Regular", "LiberationSansNarrow-Bold",
           "LiberationSansNarrow-Italic"),
    Family("TeX Gyre Heros Condensed", "texgyreheroscn-regular", "texgyreheroscn-bold", "texgyreheroscn-italic"),
    Family("TeX Gyre Termes", "texgyretermes-regular", "texgyretermes-bold", "texgyretermes-italic"),
    Family("TeX Gyre Cursor", "texgyrecursor-regular", "texgyrecursor-bold", "texgyrecursor-italic"),
    Family("Latin Modern Sans Condensed", "lmsansdemicond10-regular", "lmsansquot8-bold", "lmsansdemicond10-oblique"),
    Family("EB Garamond 8", "EBGaramond08-Regular", "EBGaramond12-Bold", "EBGaramond08-Italic"),
    Family("Gentium Basic", "GenBasR", "GenBasB", "GenBasI"),
    Family("Noto Serif Display", "NotoSerifDisplay-Regular", "NotoSerifDisplay-Bold", "NotoSerifDisplay-Italic"),
    Family("Cantarell", "Cantarell-Regular", "Cantarell-Bold"),
    Family("Old Standard", "OldStandard-Regular", "OldStandard-Bold", "OldStandard-Italic"),
    Family("Quattrocento", "Quattrocento-Regular"),
    Family("Junicode Condensed", "JunicodeTwoBeta-Condensed", "JunicodeTwoBeta-Bold",
           "JunicodeTwoBeta-CondensedItalic"),
    Family("Junicode Expanded", "JunicodeTwoBeta-Expanded", "JunicodeTwoBeta-ExpandedBold",
           "JunicodeTwoBeta-ExpandedItalic"),
    Family("Charis", "CharisSIL-Regular", "CharisSIL-Bold", "CharisSIL-Italic"),
    Family("Accanthis", "AccanthisADFStd-Regular", "AccanthisADFStd-Bold", "AccanthisADFStd-Italic"),
    Family("Gillius", "GilliusADF-Regular", "GilliusADF-Bold", "GilliusADF-Italic"),
    Family("Gillius Condensed", "GilliusADF-Cond", "GilliusADF-BoldCond", "GilliusADF-CondItalic"),
    Family("Universalis Condensed", "UniversalisADFStd-Cond", "UniversalisADFStd-BoldCond",
           "UniversalisADFStd-CondItalic"),
    Family("Romande", "RomandeADFStd-Regular", "RomandeADFStd-DemiBold", "RomandeADFStd-Italic"),
    Family("Berenis", "BerenisADFPro-Regular", "BerenisADFPro-Bold", "BerenisADFPro-Italic"),
    Family("Baskervald", "BaskervaldADFStd", "BaskervaldADFStd-Bold", "BaskervaldADFStd-Italic"),
    Family("Cardo", "Cardo104s", "Cardob101", "Cardoi99"),
    Family("Goudy Bookletter", "GoudyBookletter1911"),
    Family("Linden Hill", "LindenHill", "", "LindenHill-Italic"),
    Family("GFS Didot", "GFSDidot", "GFSDidotBold", "GFSDidotItalic"),
    Family("Play", "Play-Regular", "Play-Bold"),
    Family("Andika", "Andika-Regular", "Andika-Bold", "Andika-Italic"),
)  # fmt: skip
HELD_OUT = (
    Family("Linux Libertine", "LinLibertine_R", "LinLibertine_RB", "LinLibertine_RI"),
    Family("Carlito", "Carlito-Regular", "Carlito-Bold", "Carlito-Italic"),
    Family("Roboto Condensed", "RobotoCondensed-Regular", "RobotoCondensed-Bold", "RobotoCondensed-Italic"),
    Family("TeX Gyre Bonum", "texgyrebonum-regular", "texgyrebonum-bold", "texgyrebonum-italic"),
)
TRAIN_MATH = (
    MathFamily("Latin Modern Math", "latinmodern-math", "latinmodern-math", alphanumeric=True),
    MathFamily("TeX Gyre DejaVu Math", "DejaVuMathTeXGyre", "DejaVuMathTeXGyre", alphanumeric=True),
    MathFamily("Free Serif", "FreeSerif", "FreeSerifItalic"),
    MathFamily("DejaVu Serif", "DejaVuSerif", "DejaVuSerif-Italic"),
    MathFamily("STIX", "STIXGeneral", "STIXGeneralItalic"),
)
HELD_OUT_MATH = (MathFamily("Linux Libertine", "LinLibertine_R", "LinLibertine_RI"),)


def _folders() -> list[Path]:
    named = [p for p in os.environ.get("JOCR_FONTS", "").split(os.pathsep) if p]
    site = Path(sysconfig.get_paths()["purelib"])
    packaged = [site / "matplotlib/mpl-data/fonts/ttf"]
    if site.is_dir():
        packaged += sorted(p for p in site.iterdir() if "font" in p.name.lower() and p.is_dir())
    return [Path(p).expanduser() for p in (*named, *_SYSTEM)] + packaged


@cache
def font_files() -> dict[str, Path]:
    """File stem -> path of every TrueType or OpenType file found; earlier folders win."""
    found: dict[str, Path] = {}
    for folder in _folders():
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            if path.suffix.lower() in (".ttf", ".otf"):
                found.setdefault(path.stem, path)
    return found


@cache
def families(split: str) -> tuple[Family, ...]:
    """Installed text families of a split. Raises ConfigError if there are none."""
    wanted = HELD_OUT if split == "heldout_font" else TRAIN
    have = tuple(f for f in wanted if f.regular in font_files())
    if not have:
        kind = "held-out " if split == "heldout_font" else ""
        raise ConfigError(f"none of the {kind}fonts that pages are drawn with is installed; {_REMEDY}")
    return have


@cache
def extra_families() -> tuple[Family, ...]:
    """Installed text families that only training pages use; may be empty."""
    return tuple(f for f in EXTRA if f.regular in font_files())


@cache
def math_families(split: str) -> tuple[MathFamily, ...]:
    """Installed formula families of a split. Raises ConfigError if there are none."""
    wanted = HELD_OUT_MATH if split == "heldout_font" else TRAIN_MATH
    have = tuple(f for f in wanted if f.upright in font_files() and f.italic in font_files())
    if not have:
        raise ConfigError(f"none of the fonts that formulas are drawn with is installed; {_REMEDY}")
    return have
