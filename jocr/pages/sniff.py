"""What a file is, judged from its first bytes; names and extensions are not asked."""

from __future__ import annotations

SNIFF_BYTES = 1024 + 8  # junk may precede ``%PDF`` within the first KiB (ISO 32000-1, annex H, implementation note 13)

_HEIC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1"})
_CONTAINERS = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"WARC/")
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"II*\x00", "tiff"),
    (b"MM\x00*", "tiff"),
    (b"II+\x00", "tiff"),  # BigTIFF
    (b"MM\x00+", "tiff"),
    (b"\x00\x00\x00\x0cjP  \r\n\x87\n", "jp2"),
    (b"\xff\x4f\xff\x51", "jp2"),  # a bare JPEG 2000 codestream
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
)
EXTENSIONS: dict[str, str] = {
    "pdf": "pdf", "png": "png", "jpg": "jpeg", "jpeg": "jpeg", "jpe": "jpeg", "tif": "tiff", "tiff": "tiff",
    "jp2": "jp2", "j2k": "jp2", "j2c": "jp2", "jpf": "jp2", "jpx": "jp2", "webp": "webp", "bmp": "bmp", "dib": "bmp",
    "gif": "gif", "heic": "heic", "heif": "heic",
}  # fmt: skip


def sniff(head: bytes) -> str | None:
    """The kind of document that starts with ``head``, or None.

    Args:
        head: the first bytes of the file, at least ``SNIFF_BYTES`` of them where the file is that long.

    Returns:
        pdf (also behind up to 1 KiB of junk), png, jpeg, tiff, jp2, webp, bmp, gif, heic, or None.
    """
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "webp"
    if head[4:8] == b"ftyp" and _brands(head) & _HEIC_BRANDS:
        return "heic"
    if _is_bmp(head):
        return "bmp"
    if head.startswith(_CONTAINERS) or head[257:262] == b"ustar":
        return None  # a PDF that begins inside one is another file
    if b"%PDF" in head[:SNIFF_BYTES]:
        return "pdf"
    return None


def _brands(head: bytes) -> set[bytes]:
    end = min(int.from_bytes(head[:4], "big"), len(head), 256)
    return {head[8:12], *(head[at : at + 4] for at in range(16, end - 3, 4))}


def _is_bmp(head: bytes) -> bool:
    """``BM`` alone begins many texts: the size of the second header must be one that exists."""
    return head[:2] == b"BM" and int.from_bytes(head[14:18], "little") in (12, 16, 40, 52, 56, 64, 108, 124)
