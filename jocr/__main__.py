"""``python -m jocr`` is ``jocr``."""

from jocr.cli import main

main()
