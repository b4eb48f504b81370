"""The rule that makes speculation lossless: keep drafted tokens while they are what the verifier chose itself."""

from __future__ import annotations

from collections.abc import Sequence


def accept(drafted: Sequence[int], chosen: Sequence[int]) -> tuple[list[int], int]:
    """Tokens to commit, and how many drafted tokens are among them.

    Args:
        drafted: K proposals.
        chosen: the verifier's K+1 choices: after the last committed token, and after each proposal.

    Returns:
        the accepted proposals followed by the verifier's own next token (so always at least one token).
    """
    n = 0
    while n < len(drafted) and drafted[n] == chosen[n]:
        n += 1
    return list(chosen[: n + 1]), n
