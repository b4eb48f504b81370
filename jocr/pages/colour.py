"""Any Pillow mode to grey or RGB on an opaque ground, at the size wanted."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image

_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)
_ROWS = 64  # looked at together
_MIN_CONTRAST = 12.0  # grey levels of standard deviation under which a page on white counts as invisible


def squeeze(rgb: np.ndarray) -> np.ndarray:
    """(H, W) or (H, W, 3) uint8 -> (H, W) where no pixel has a colour, else as it is: most scans are grey, and grey is
    a third of the bytes."""
    if rgb.ndim == 2:
        return rgb
    within = np.tile(np.array([255, 255, 0], np.uint8), _ROWS * rgb.shape[1])  # steps inside of a pixel
    for top in range(0, len(rgb), _ROWS):  # a page with colour shows it soon
        flat = rgb[top : top + _ROWS].reshape(-1)
        steps = flat[1:] ^ flat[:-1]  # from byte to byte: three times as quick as from channel to channel
        steps &= within[: steps.size]
        if steps.max(initial=0):
            return rgb
    return np.ascontiguousarray(rgb[..., 0])


def to_page(image: Image.Image, size: tuple[int, int], notes: list[str]) -> Image.Image:
    """``image`` in L or RGB at ``size`` (width, height); what had to be guessed is added to ``notes``.

    Transparency is laid on white, or on black where only that leaves something to see.
    """
    flat = _to_eight_bit(image, notes)
    if flat.mode == "RGBA":
        return _flatten(_resize(flat.convert("RGBa"), size).convert("RGBA"), notes)
    return _resize(flat, size)


def _resize(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    if image.size == size:
        return image
    return image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)


def _to_eight_bit(image: Image.Image, notes: list[str]) -> Image.Image:
    """To mode L, RGB or RGBA."""
    mode = image.mode
    if mode.startswith("I") or mode == "F":
        return _from_deep(image, notes)
    if mode == "CMYK":
        return _from_cmyk(image, notes)
    if mode == "LAB":
        return _from_lab(image)
    if mode in ("LA", "La", "PA", "RGBa", "RGBA") or "transparency" in image.info:
        return image.convert("RGBA")
    if mode in ("1", "L"):
        return image.convert("L")
    return image.convert("RGB")


def _from_cmyk(image: Image.Image, notes: list[str]) -> Image.Image:
    """Pillow takes every CMYK JPEG for inverted, which only those with an Adobe marker are."""
    if image.format in ("JPEG", "MPO") and "adobe" not in image.info:
        notes.append("CMYK without an Adobe marker: taken as not inverted")
        image = image.point([255 - level for level in range(256)] * 4)
    return image.convert("RGB")


def _from_lab(image: Image.Image) -> Image.Image:
    from PIL import ImageCms

    lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
    converted = ImageCms.profileToProfile(image, lab, srgb, outputMode="RGB")
    if converted is None:  # only where asked to work in place
        raise ValueError("LAB conversion returned nothing")
    return converted


def _from_deep(image: Image.Image, notes: list[str]) -> Image.Image:
    """16-bit, 32-bit and floating grey to 8 bits: by the range the type declares, or by the values' own range."""
    values = np.asarray(image)
    if image.mode.startswith("I;16"):
        top = float((1 << _declared_bits(image)) - 1)
    else:
        values = np.nan_to_num(values.astype(np.float64))
        top = _natural_top(values, notes)
        values = values - min(0.0, float(values.min(initial=0.0)))
    grey = np.clip(values * (255.0 / top) + 0.5, 0, 255).astype(np.uint8)
    if _tag(image, 262) == 0:  # WhiteIsZero, which Pillow leaves as it is at these depths
        grey = 255 - grey
    return Image.fromarray(grey)


def _natural_top(values: np.ndarray, notes: list[str]) -> float:
    span = float(values.max(initial=0.0)) - min(0.0, float(values.min(initial=0.0)))
    for top in (1.0, 255.0, 65535.0):
        if values.dtype.kind == "f" and span <= top and (top != 1.0 or span > 0):
            return top
    notes.append(f"grey values over a range of {span:g} were scaled to 8 bits")
    return max(span, 1.0)


def _declared_bits(image: Image.Image) -> int:
    """Bits a sample really has: 12-bit TIFF arrives in 16-bit words."""
    bits = _tag(image, 258)
    if isinstance(bits, tuple):
        bits = bits[0]
    return bits if isinstance(bits, int) and 8 < bits < 16 else 16


def _tag(image: Image.Image, number: int) -> Any:
    tags = getattr(image, "tag_v2", None)
    return tags.get(number) if tags is not None else None


def _flatten(image: Image.Image, notes: list[str]) -> Image.Image:
    on_white = _on(image, _WHITE)
    if float(np.asarray(on_white.convert("L")).std()) >= _MIN_CONTRAST:
        return on_white
    on_black = _on(image, _BLACK)
    seen_on_white, seen_on_black = (float(np.asarray(x.convert("L")).std()) for x in (on_white, on_black))
    if seen_on_black > 4 * seen_on_white and seen_on_black > 2.0:
        notes.append("light content on a transparent ground: laid on black")
        return on_black
    return on_white


def _on(image: Image.Image, ground: tuple[int, int, int]) -> Image.Image:
    flat = Image.new("RGB", image.size, ground)
    flat.paste(image, mask=image.getchannel("A"))
    return flat
