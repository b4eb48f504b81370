"""OmniDocBench v1.5 (to the digit of the official scorer) and v1.6: page elements against annotations."""

from jocr.evaluation.omnidocbench.runner import run, score

__all__ = ["run", "score"]
