"""Image files (TIFF with all its pages, JPEG, PNG, JPEG 2000, WebP, BMP, GIF, HEIC) to upright RGB pixels."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import PIL
from PIL import Image, ImageFile, TiffImagePlugin, UnidentifiedImageError

from jocr.errors import DocumentError, PageError
from jocr.pages.colour import to_page
from jocr.pages.picture import Picture

RENDERER = f"pillow {PIL.__version__}"
Image.MAX_IMAGE_PIXELS = None  # the limit is ours, and it is an error instead of a warning
_ORIENTATION, _SUBFILE = 0x0112, 254
_TURNS = {3: 180, 4: 180, 5: 90, 6: 90, 7: 270, 8: 270}  # degrees clockwise; 2, 4, 5 and 7 are mirrored as well
_TRANSPOSE = {
    2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}  # fmt: skip
_FORMATS = {
    "png": ["PNG"], "jpeg": ["JPEG", "MPO"], "tiff": ["TIFF"], "jp2": ["JPEG2000"], "webp": ["WEBP"], "bmp": ["BMP"],
    "gif": ["GIF"], "heic": ["HEIF"],
}  # fmt: skip
_BROKEN = (OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, EOFError, struct.error, RuntimeError,
           ZeroDivisionError, OverflowError)  # fmt: skip  # what Pillow's plugins raise on damaged files


class RasterReader:
    """An open image file; only a TIFF has more than one page.

    Args:
        source: the file's path, or its bytes.
        kind: as ``sniff`` tells it.
        max_pixels: a frame that declares more is ``too_large`` before anything is decoded.

    Raises:
        DocumentError: corrupt, missing_package, no_pages.
    """

    def __init__(self, source: str | bytes, kind: str, max_pixels: int) -> None:
        self._source, self._kind, self._max_pixels = source, kind, max_pixels
        if kind == "heic":
            _register_heic()
        try:
            self._image = self._open()
            self._frames = _page_frames(self._image) if kind == "tiff" else [0]
        except UnidentifiedImageError:
            raise DocumentError("corrupt", f"it begins like {kind} and its header cannot be read") from None
        except _BROKEN as error:
            raise DocumentError("corrupt", f"its {kind} header is damaged ({error})") from None
        if not self._frames:
            raise DocumentError("no_pages", "every frame of the TIFF is a reduced-resolution copy of another")
        self.pages = len(self._frames)
        self._decoded = False

    def close(self) -> None:
        self._image.close()

    def draw(self, index: int, long_side: int) -> Picture:
        """One frame: decoded, isotropic, upright; reduced to ``long_side`` if larger and never enlarged beyond
        what makes its pixels square.

        Raises:
            PageError: too_large, zero_area, image_error.
        """
        notes: list[str] = []
        try:
            image = self._at(self._frames[index])
            stored = _stored_size(image)
            self._refuse_bombs(*stored)
            stretch = _stretch(image, notes)
            orientation = _orientation(image, notes)
            size = _fit(stored, stretch, long_side)
            upright, damage = self._decode(size)
        except PageError:
            raise
        except _BROKEN as error:
            raise PageError("image_error", f"the image cannot be decoded ({error})") from None
        if image.format == "TIFF" and orientation >= 5:
            size = size[::-1]  # Pillow turns a TIFF while decoding it
        page = to_page(upright, size, notes)
        if image.format != "TIFF" and orientation in _TRANSPOSE:
            page = page.transpose(_TRANSPOSE[orientation])
        if damage:
            notes.append(f"damaged image data, shown as far as it decodes ({damage})")
        width, height = map(float, stored)
        return Picture(np.asarray(page), width, height, None, _TURNS.get(orientation, 0), RENDERER, notes, damage)

    def unseen(self, index: int) -> list[str]:
        return []

    def _open(self) -> Any:
        source = self._source if isinstance(self._source, str) else io.BytesIO(self._source)
        return Image.open(source, formats=_FORMATS[self._kind])

    def _at(self, frame: int) -> Any:
        """The image at a frame of which nothing is decoded yet: decoding changes size, tags and mode in Pillow."""
        if self._decoded and self._image.tell() == frame:
            self._image.close()
            self._image, self._decoded = self._open(), False
        if self._image.tell() != frame:
            self._image.seek(frame)
        return self._image

    def _refuse_bombs(self, width: int, height: int) -> None:
        if width <= 0 or height <= 0:
            raise PageError("zero_area", f"it declares {width}x{height} pixels")
        if width * height > self._max_pixels:
            raise PageError(
                "too_large", f"it declares {width}x{height} pixels; the limit is {self._max_pixels:,} in all"
            )

    def _decode(self, size: tuple[int, int]) -> tuple[Image.Image, str]:
        """The current frame, at a fraction of its size where the decoder can, and what stopped the decoder."""
        image, self._decoded = self._image, True
        if image.format in ("JPEG", "MPO"):
            image.draft(image.mode, (2 * size[0], 2 * size[1]))  # the inverse DCT itself yields a smaller picture
        elif image.format == "JPEG2000":
            image.reduce = _levels(image.size, size)
        try:
            image.load()
        except _BROKEN as error:
            ImageFile.LOAD_TRUNCATED_IMAGES = True
            try:
                image.load()
            finally:
                ImageFile.LOAD_TRUNCATED_IMAGES = False
            return image, str(error) or type(error).__name__
        return image, ""


def _page_frames(image: Image.Image) -> list[int]:
    """Frames that are pages: a reduced-resolution copy (NewSubfileType bit 0) and a mask (bit 2) are not.

    A file may mark its only frame so: then it is a page all the same.
    """
    frames = getattr(image, "n_frames", 1)
    if frames == 1:
        return [0]
    pages = []
    for index in range(frames):
        image.seek(index)
        if not int(image.tag_v2.get(_SUBFILE, 0)) & 0b101:  # type: ignore[attr-defined]
            pages.append(index)
    return pages


def _stored_size(image: Image.Image) -> tuple[int, int]:
    """(width, height) as stored; Pillow already exchanges them for a turned TIFF."""
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        return image._tile_size
    return image.size


def _stretch(image: Image.Image, notes: list[str]) -> tuple[float, float]:
    """Factors (x, y) >= 1 that make the pixels square, from the stored resolution where it is believable."""
    x, y = image.info.get("dpi") or image.info.get("resolution") or (1, 1)
    ratio = float(x) / float(y) if x and y and float(x) > 0 and float(y) > 0 else 1.0
    if not 1.02 < max(ratio, 1 / ratio) <= 4.0:
        return 1.0, 1.0
    notes.append(f"anisotropic resolution {float(x):g} x {float(y):g} made square")
    return max(1.0, 1 / ratio), max(1.0, ratio)


def _orientation(image: Image.Image, notes: list[str]) -> int:
    """EXIF orientation 1 to 8; anything else counts as 1."""
    try:
        value = image.getexif().get(_ORIENTATION, 1)
    except _BROKEN as error:
        notes.append(f"unreadable EXIF block ignored ({error})")
        return 1
    if value in range(1, 9):
        return int(value)
    notes.append(f"EXIF orientation {value!r} is not one of 1 to 8 and was taken as 1")
    return 1


def _fit(stored: tuple[int, int], stretch: tuple[float, float], long_side: int) -> tuple[int, int]:
    width, height = stored[0] * stretch[0], stored[1] * stretch[1]
    scale = min(1.0, long_side / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


def _levels(stored: tuple[int, int], wanted: tuple[int, int]) -> int:
    """Wavelet levels a JPEG 2000 decoder may leave out and still give twice the pixels wanted."""
    levels = 0
    while min(stored[0] >> (levels + 1), stored[1] >> (levels + 1)) >= 2 * max(*wanted, 1) and levels < 5:
        levels += 1
    return levels


def _register_heic() -> None:
    try:
        import pillow_heif
    except ImportError:
        raise DocumentError("missing_package", "reading HEIC needs `pip install pillow-heif`") from None
    pillow_heif.register_heif_opener()
