r"""Names of LaTeX: which commands mean the same, which show nothing, and how many arguments they take."""

from __future__ import annotations

TEXT = frozenset(
    r"\text \textrm \textnormal \mbox \hbox \textit \textbf \textsf \texttt \textsc \operatorname \operatorname* \tag \tag*".split()
)
ONE_ARGUMENT = frozenset(
    r"""\sqrt \hat \widehat \tilde \widetilde \bar \overline \underline \vec \overrightarrow \overleftarrow \dot \ddot
    \check \breve \acute \grave \mathring \overbrace \underbrace \mathbf \mathrm \mathit \mathbb \mathcal \mathfrak
    \mathscr \mathsf \mathtt \boldsymbol \boxed \cancel \xrightarrow \xleftarrow \pmod \phantom \vphantom \hphantom
    \substack \mathop \mathbin \mathrel \mathop""".split()
)
TWO_ARGUMENTS = frozenset(r"\frac \binom \overset \underset \stackrel".split())
DROPPED = frozenset(
    r"""\, \; \: \! \> \quad \qquad \thinspace \medspace \thickspace \enspace \enskip \negthinspace \negmedspace
    \negthickspace \space \nobreakspace \displaystyle \textstyle \scriptstyle \scriptscriptstyle \limits \nolimits
    \notag \nonumber \nobreak \allowbreak \relax \strut \mathstrut \hfill \hfil \null""".split()
) | {"\\ ", "\\\n", "\\\t"}
DROPPED_WITH_ARGUMENT = frozenset(r"\hspace \hspace* \vspace \vspace* \label \mspace \hskip \kern".split())
SIZES = frozenset(
    r"""\left \right \middle \big \Big \bigg \Bigg \bigl \bigr \bigm \Bigl \Bigr \Bigm \biggl \biggr \biggm \Biggl
    \Biggr \Biggm""".split()
)

_PAIRS = r"""
\dfrac \frac | \tfrac \frac | \cfrac \frac | \dbinom \binom | \tbinom \binom | \le \leq | \ge \geq | \ne \neq
\leqslant \leq | \geqslant \geq | \to \rightarrow | \gets \leftarrow | \iff \Leftrightarrow | \implies \Rightarrow
\lbrace \{ | \rbrace \} | \lbrack [ | \rbrack ] | \lvert \vert | \rvert \vert | \mid \vert | \lVert \| | \rVert \|
\Vert \| | \land \wedge | \lor \vee | \lnot \neg | \dots \ldots | \dotsc \ldots | \dotsb \cdots | \dotsm \cdots
\owns \ni | \bm \boldsymbol | \textrm \text | \textnormal \text | \mbox \text | \hbox \text | \varnothing \emptyset
\ast * | \colon : | \lt < | \gt > | \prime ' | \operatorname* \operatorname | \tag* \tag | \frak \mathfrak
\doublecap \Cap | \doublecup \Cup | \dasharrow \dashrightarrow | \And \& | \R \mathbb{R} | \N \mathbb{N} | \Z \mathbb{Z}
\longrightarrow \rightarrow | \longleftarrow \leftarrow | \Longrightarrow \Rightarrow | \Longleftrightarrow \Leftrightarrow
"""


def _pairs(source: str) -> dict[str, tuple[str, ...]]:
    out: dict[str, tuple[str, ...]] = {}
    for pair in source.replace("\n", "|").split("|"):
        if pair.strip() and len(pair.split()) == 2:
            name, value = pair.split()
            out[name] = (
                (value[: value.index("{")], "{", value[-2], "}") if value.endswith("}") and len(value) > 2 else (value,)
            )
    return out


ALIASES: dict[str, tuple[str, ...]] = _pairs(_PAIRS.replace("\\| |", "\\|  |")) | {
    "\\vert": ("|",),
    "\\lvert": ("|",),
    "\\rvert": ("|",),
    "\\mid": ("|",),
    "\\Vert": ("\\|",),
    "\\lVert": ("\\|",),
    "\\rVert": ("\\|",),
}

_GREEK = """α alpha β beta γ gamma δ delta ε varepsilon ϵ epsilon ζ zeta η eta θ theta ϑ vartheta ι iota κ kappa λ lambda
μ mu ν nu ξ xi π pi ρ rho σ sigma ς varsigma τ tau υ upsilon φ varphi ϕ phi χ chi ψ psi ω omega Γ Gamma Δ Delta Θ Theta
Λ Lambda Ξ Xi Π Pi Σ Sigma Υ Upsilon Φ Phi Ψ Psi Ω Omega"""
_SYMBOLS = """∑ sum ∏ prod ∫ int ∮ oint ∞ infty ∂ partial ∇ nabla × times ÷ div · cdot ⋅ cdot ± pm ∓ mp ≤ leq ≥ geq ≠ neq ≈ approx
≡ equiv ∼ sim ≃ simeq ≅ cong ∝ propto ∈ in ∉ notin ∋ ni ⊂ subset ⊆ subseteq ⊃ supset ⊇ supseteq ∪ cup ∩ cap ∅ emptyset
∀ forall ∃ exists ¬ neg ∧ wedge ∨ vee ⊕ oplus ⊗ otimes → rightarrow ← leftarrow ↔ leftrightarrow ⇒ Rightarrow ⇐ Leftarrow
⇔ Leftrightarrow ↦ mapsto … ldots ⋯ cdots ⋮ vdots ⋱ ddots ∘ circ ∙ bullet ⟨ langle ⟩ rangle ℓ ell ℏ hbar ⊥ perp ∥ parallel
∠ angle △ triangle † dagger ‡ ddagger ≪ ll ≫ gg ⌊ lfloor ⌋ rfloor ⌈ lceil ⌉ rceil"""
_words = f"{_GREEK} {_SYMBOLS}".split()
UNICODE: dict[str, str] = {symbol: "\\" + name for symbol, name in zip(_words[::2], _words[1::2], strict=True)} | {
    "−": "-",
    "–": "-",
    "′": "'",
    "‖": "\\|",
    "∣": "|",
    "∗": "*",
    "µ": "\\mu",
    "∆": "\\Delta",
}

ENVIRONMENTS = frozenset(
    f"{name}{star}"
    for name in ("equation", "align", "gather", "multline", "eqnarray", "displaymath", "alignat", "flalign")
    for star in ("", "*")
)
