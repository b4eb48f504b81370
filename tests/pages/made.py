"""Small documents made on the spot: PDFs from hand-written objects, images from Pillow."""

from __future__ import annotations

import hashlib
import struct

from PIL import Image, ImageDraw, ImageFont

WORDS = b"BT /F1 40 Tf 60 400 Td (Plain words here) Tj ET"
_PAD = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


class Pdf:
    """Builds PDF bytes object by object. ``page`` adds pages; ``bytes`` writes header, objects, xref and trailer."""

    def __init__(self) -> None:
        self.objects: dict[int, tuple[bytes, bytes | None]] = {}
        self.kids: list[int] = []
        self.catalog = b""
        self.next = 4
        self.objects[3] = (b"/Type /Font /Subtype /Type1 /BaseFont /Helvetica", None)

    def add(self, entries: bytes, stream: bytes | None = None) -> int:
        number, self.next = self.next, self.next + 1
        self.objects[number] = (entries, stream)
        return number

    def page(self, content: bytes = WORDS, box: str | None = "0 0 612 792", more: bytes = b"") -> Pdf:
        body = self.add(b"", content)
        media = b"" if box is None else b"/MediaBox [%s]" % box.encode()
        resources = b"" if b"/Resources" in more else b"/Resources << /Font << /F1 3 0 R >> >>"
        entries = b"/Type /Page /Parent 2 0 R %s %s /Contents %d 0 R %s" % (media, resources, body, more)
        self.kids.append(self.add(entries))
        return self

    def image(self, width: int, height: int, data: bytes, more: bytes = b"") -> int:
        head = b"/Type /XObject /Subtype /Image /Width %d /Height %d" % (width, height)
        return self.add(head + b" " + (more or b"/ColorSpace /DeviceGray /BitsPerComponent 8"), data)

    def bytes(self, user: bytes | None = None, owner: bytes = b"owner") -> bytes:
        """The file; with ``user`` not None it is encrypted (RC4, 40 bits: standard security handler, revision 2)."""
        self.objects[1] = (b"/Type /Catalog /Pages 2 0 R " + self.catalog, None)
        kids = b" ".join(b"%d 0 R" % kid for kid in self.kids)
        self.objects[2] = (b"/Type /Pages /Count %d /Kids [%s]" % (len(self.kids), kids), None)
        key, trailer = (None, b"") if user is None else self._lock(user, owner)
        out, places = bytearray(b"%PDF-1.7\n"), {}
        for number, (entries, stream) in sorted(self.objects.items()):
            places[number] = len(out)
            if stream is not None:
                stream = stream if key is None else rc4(_object_key(key, number), stream)
                body = b"<< %s /Length %d >>\nstream\n%s\nendstream" % (entries, len(stream), stream)
            else:
                body = b"<< %s >>" % entries if not entries.startswith(b"=") else entries[1:]
            out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
        start, count = len(out), max(places) + 1
        out += b"xref\n0 %d\n0000000000 65535 f \n" % count
        out += b"".join(b"%010d 00000 n \n" % places.get(number, 0) for number in range(1, count))
        out += b"trailer << /Root 1 0 R /Size %d %s >>\nstartxref\n%d\n%%%%EOF\n" % (count, trailer, start)
        return bytes(out)

    def _lock(self, user: bytes, owner: bytes) -> tuple[bytes, bytes]:
        identity, rights = b"0123456789abcdef", -4
        hidden = rc4(hashlib.md5((owner + _PAD)[:32]).digest()[:5], (user + _PAD)[:32])
        seed = (user + _PAD)[:32] + hidden + struct.pack("<i", rights) + identity
        key = hashlib.md5(seed).digest()[:5]
        entries = b"/Filter /Standard /V 1 /R 2 /P %d /O <%s> /U <%s>"
        self.objects[self.next] = (entries % (rights, hidden.hex().encode(), rc4(key, _PAD).hex().encode()), None)
        return key, b"/Encrypt %d 0 R /ID [<%s><%s>]" % (self.next, *[identity.hex().encode()] * 2)


def _object_key(key: bytes, number: int) -> bytes:
    return hashlib.md5(key + struct.pack("<I", number)[:3] + b"\0\0").digest()[: len(key) + 5]


def rc4(key: bytes, data: bytes) -> bytes:
    box, j = list(range(256)), 0
    for i in range(256):
        j = (j + box[i] + key[i % len(key)]) % 256
        box[i], box[j] = box[j], box[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + box[i]) % 256
        box[i], box[j] = box[j], box[i]
        out.append(byte ^ box[(box[i] + box[j]) % 256])
    return bytes(out)


def hanging_pdf() -> bytes:
    """Page 1 is plain; page 2 draws a form that draws a form twice, 28 levels deep; page 3 is plain."""
    pdf = Pdf().page()
    inner = pdf.add(b"/Type /XObject /Subtype /Form /BBox [0 0 600 700]", WORDS)
    for _ in range(28):
        resources = b"/Resources << /XObject << /X %d 0 R >> /Font << /F1 3 0 R >> >>" % inner
        inner = pdf.add(b"/Type /XObject /Subtype /Form /BBox [0 0 600 700] " + resources, b"/X Do /X Do")
    pdf.page(b"/X Do", more=b"/Resources << /XObject << /X %d 0 R >> >>" % inner)
    return pdf.page().bytes()


def words_image(size: tuple[int, int] = (600, 400), mode: str = "L", text: str = "Words to read") -> Image.Image:
    """Black text on white, larger at the top left than anywhere else."""
    image = Image.new("L", size, 255)
    ImageDraw.Draw(image).text((30, 20), text, fill=0, font=ImageFont.load_default(48))
    return image.convert(mode)
