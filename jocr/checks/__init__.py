"""Page unit tests: questions to one page that a program answers (olmOCR-Bench's kinds), one definition for all uses."""

from jocr.checks.base import Check, Verdict
from jocr.checks.kinds import KINDS, dump_checks, load_checks, parse_check, run_checks
from jocr.checks.page import PageText

__all__ = ["KINDS", "Check", "PageText", "Verdict", "dump_checks", "load_checks", "parse_check", "run_checks"]
