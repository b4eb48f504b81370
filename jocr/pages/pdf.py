"""PDF pages to pixels with pdfium. Runs only inside the rendering process: this code may hang or crash on bad files."""

from __future__ import annotations

import ctypes
import io
import mmap
import re
from typing import Any

import numpy as np
import pypdfium2 as pdfium
import pypdfium2.raw as raw

from jocr.errors import DocumentError, PageError
from jocr.pages.picture import Picture

RENDERER = f"pypdfium2 {pdfium.PYPDFIUM_INFO.tag}, pdfium {pdfium.PDFIUM_INFO.build}"
LOW_DPI = 50.0
_SIDE = re.compile(rb"/(?:Width|Height)\s+(\d+)")
_ROTATE = re.compile(rb"/Rotate\s*([+-]?\d+)(\s+\d+\s+R\b)?")  # a number, or a reference to one
_SECURITY = re.compile(rb"/Filter\s*/Standard\b")
_PLACEHOLDER = re.compile(
    r"please wait|not eventually replaced|later version of|does not support|viewer may not be able|adobe", re.IGNORECASE
)


class PdfReader:
    """An open PDF.

    Args:
        data: the file's bytes, or a read-only map of them (kept open as long as the reader).
        password: user or owner password, or None.
        max_pixels: an image on a page that declares more pixels than this makes the page ``too_large``.

    Raises:
        DocumentError: encrypted, wrong_password, corrupt, no_pages, xfa_unsupported.
    """

    def __init__(self, data: bytes | mmap.mmap, password: str | None, max_pixels: int) -> None:
        self._max_pixels = max_pixels
        self._notes: list[str] = []
        self._data: Any = np.frombuffer(data, np.uint8)
        self._pdf = self._load(password or None)
        if not raw.FPDF_DocumentHasValidCrossReferenceTable(self._pdf):
            self._notes.append("damaged cross-reference table, rebuilt by pdfium")
        self._pdf.init_forms()
        self.pages = len(self._pdf)
        sides = sorted((int(side) for side in _SIDE.findall(data)), reverse=True)[:2]
        self._suspect_images = len(sides) == 2 and sides[0] * sides[1] > max_pixels
        self._odd_rotations = any(reference or int(value) % 90 for value, reference in _ROTATE.findall(data))
        self._refuse_placeholder()

    def close(self) -> None:
        self._pdf.close()
        self._data = None

    def draw(self, index: int, long_side: int) -> Picture:
        """One page, its long side ``long_side`` pixels, whatever its size in points.

        Raises:
            PageError: zero_area, too_large, render_error.
        """
        try:
            page = self._pdf[index]
        except pdfium.PdfiumError as error:
            raise PageError("render_error", f"pdfium cannot load the page: {error}") from None
        try:
            return self._draw(page, index, long_side)
        finally:
            page.close()

    def unseen(self, index: int) -> list[str]:
        """Text on a page that nevertheless looks blank: it may be a loss that its reader should know of."""
        page = self._pdf[index]
        count = page.get_textpage().count_chars()
        page.close()
        hint = "a font neither embedded nor installed, or text meant to be invisible"
        return [f"the page holds {count} characters and shows nothing to read: {hint}"] if count > 0 else []

    def _draw(self, page: pdfium.PdfPage, index: int, long_side: int) -> Picture:
        notes = list(self._notes)
        rotation = self._rotation(page, index, notes)
        width, height = _area(page, notes)
        if self._suspect_images:
            self._refuse_bombs(page)
        scale = long_side / max(width, height)
        if 72 * scale < LOW_DPI:
            notes.append(f"low effective resolution: {72 * scale:.1f} dpi for {width:.0f}x{height:.0f} pt")
        size = max(1, round(width * scale)), max(1, round(height * scale))
        if rotation % 180:
            width, height = height, width
        return Picture(_raster(page, *size), width, height, 72 * scale, rotation, RENDERER, notes)

    def _load(self, password: str | None) -> pdfium.PdfDocument:
        document, code = _open(self._data, password)
        if document is None and password is not None and code == raw.FPDF_ERR_PASSWORD:
            document, code = _open(self._data, None)  # a password meant for other files must not lock this one
            if code == raw.FPDF_ERR_PASSWORD:
                raise DocumentError("wrong_password", "the password given opens neither as user nor as owner")
        if document is None and code == raw.FPDF_ERR_PASSWORD:
            raise DocumentError("encrypted", "the PDF is encrypted and no password was given")
        if document is None and code == raw.FPDF_ERR_SECURITY:
            raise DocumentError("encrypted", "the PDF uses an encryption scheme that pdfium does not know")
        if document is None:
            document = self._repair(password)
        if not len(document):
            raise DocumentError("no_pages", "the PDF opens and its page tree is empty")
        return document

    def _repair(self, password: str | None) -> pdfium.PdfDocument:
        """Rewrite what pdfium refuses with qpdf, where pikepdf is installed."""
        try:
            import pikepdf
        except ImportError:
            hint = "pdfium finds no usable structure in it; `pip install pikepdf` adds a second parser"
            raise DocumentError("corrupt", hint) from None
        try:
            ended = bytes(self._data) + b"\n%%EOF\n"  # without an end, qpdf overlooks the last object
            with pikepdf.open(io.BytesIO(ended), password=password or "") as damaged:
                if _SECURITY.search(self._data) and not damaged.is_encrypted:
                    raise ValueError("its encryption dictionary is lost")
                mended = io.BytesIO()
                damaged.save(mended)
            self._data = np.frombuffer(mended.getvalue(), np.uint8)
        except (pikepdf.PdfError, OSError, ValueError) as error:
            why = re.sub(r"<[^>]* at 0x[0-9a-f]+>:? ?", "", str(error))  # an address would differ from run to run
            raise DocumentError("corrupt", f"neither pdfium nor qpdf can open it ({why})") from None
        document, _ = _open(self._data, None)
        if document is None:
            raise DocumentError("corrupt", "pdfium cannot open it even as qpdf rewrites it")
        self._notes.append(f"repaired with pikepdf {pikepdf.__version__} before rendering")
        return document

    def _refuse_placeholder(self) -> None:
        """A dynamic XFA form holds one page that asks for another viewer: that text is not the document's."""
        form = self._pdf.get_formtype()
        if form not in (raw.FORMTYPE_XFA_FULL, raw.FORMTYPE_XFA_FOREGROUND) or self.pages > 2:
            return
        page = self._pdf[0]
        text = page.get_textpage().get_text_bounded()  # only asked whether it is the placeholder; never used as content
        page.close()
        wanted = 1 if form == raw.FORMTYPE_XFA_FULL else 2
        if len(text) < 2000 and len({hit.lower() for hit in _PLACEHOLDER.findall(text)}) >= wanted:
            raise DocumentError("xfa_unsupported", f"its only page reads {' '.join(text.split())[:80]!r}")

    def _rotation(self, page: pdfium.PdfPage, index: int, notes: list[str]) -> int:
        """Degrees clockwise that /Rotate asks for; a value that is no multiple of 90 is undone and noted."""
        rotation = page.get_rotation()
        if rotation or self._odd_rotations:
            asked = self._declared_rotation(index)
            if asked is not None and asked % 90:
                notes.append(f"/Rotate {asked} is no multiple of 90 and was ignored")
                page.set_rotation(0)
                return 0
        return rotation

    def _declared_rotation(self, index: int) -> int | None:
        """/Rotate as written (pdfium only tells it rounded): read from a copy that holds this page alone."""
        copy, buffer = pdfium.PdfDocument.new(), io.BytesIO()
        try:
            copy.import_pages(self._pdf, [index])
            copy.save(buffer)
        except pdfium.PdfiumError:
            return None
        finally:
            copy.close()
        found = _ROTATE.search(buffer.getvalue())
        if found and found[2]:
            found = re.search(rb"(?:^|[\r\n])%s \d+ obj\s*([+-]?\d+)" % found[1], buffer.getvalue())
        return int(found[1]) if found else None

    def _refuse_bombs(self, page: pdfium.PdfPage) -> None:
        for item in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE]):
            width, height = item.get_px_size()
            if width * height > self._max_pixels:
                detail = f"an image on it declares {width}x{height} pixels; the limit is {self._max_pixels:,} in all"
                raise PageError("too_large", detail)


def _open(data: np.ndarray, password: str | None) -> tuple[pdfium.PdfDocument | None, int]:
    """The document, or None and pdfium's error code. ``data`` is not copied: the caller keeps it alive."""
    view = (ctypes.c_char * len(data)).from_address(data.ctypes.data)
    secret = None if password is None else password.encode("utf-8", "surrogateescape") + b"\0"
    handle = raw.FPDF_LoadMemDocument64(view, len(data), secret)
    return (pdfium.PdfDocument(handle), 0) if handle else (None, raw.FPDF_GetLastError())


def _area(page: pdfium.PdfPage, notes: list[str]) -> tuple[float, float]:
    """Width and height in points, as turned; pdfium would draw a page without area at letter size."""
    media = page.get_mediabox(fallback_ok=False)
    width, height = page.get_size()
    if media and min(abs(media[2] - media[0]), abs(media[3] - media[1])) > 0 and not (width > 0 and height > 0):
        page.set_cropbox(*media)
        page.set_rotation(page.get_rotation())  # this makes pdfium measure the page again
        notes.append("the CropBox does not meet the MediaBox and was ignored")
        width, height = page.get_size()
    declared = (abs(media[2] - media[0]), abs(media[3] - media[1])) if media else (width, height)
    if min(declared) <= 0 or not width > 0 or not height > 0:
        raise PageError("zero_area", f"its MediaBox is {declared[0]:g} x {declared[1]:g} points")
    return width, height


def _raster(page: pdfium.PdfPage, width: int, height: int) -> np.ndarray:
    """The page drawn into exactly ``width`` x ``height`` pixels on white, forms and annotations included."""
    pixels = np.full((height, width, 3), 255, np.uint8)
    buffer = (ctypes.c_ubyte * pixels.size).from_buffer(pixels.data)
    bitmap = pdfium.PdfBitmap.new_native(width, height, raw.FPDFBitmap_BGR, rev_byteorder=True, buffer=buffer)
    area = (bitmap, page, 0, 0, width, height, 0, raw.FPDF_ANNOT | raw.FPDF_REVERSE_BYTE_ORDER)
    raw.FPDF_RenderPageBitmap(*area)
    if page.formenv:
        raw.FPDF_FFLDraw(page.formenv, *area)
    bitmap.close()  # here, not where the pixels are dropped: pdfium serves one thread at a time
    return pixels
