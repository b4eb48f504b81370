r"""Names of LaTeX: which commands mean the same, which show nothing, and how many arguments they take."""

from __future__ import annotations

TEXT = frozenset(
    r"""\text \textrm \textnormal \mbox \hbox \textit \textbf \textsf \texttt \textsc \operatorname \operatorname*
    \tag \tag*""".split()
)
ONE_ARGUMENT = frozenset(
    r"""\sqrt \hat \widehat \tilde \widetilde \bar \overline \underline \vec \overrightarrow \overleftarrow \dot \ddot
    \check \breve \acute \grave \mathring \overbrace \underbrace \mathbf \mathrm \mathit \mathbb \mathcal \mathfrak
    \mathscr \mathsf \mathtt \boldsymbol \boxed \cancel \xrightarrow \xleftarrow \pmod \phantom \vphantom \hphantom
    \substack \mathop \mathbin \mathrel""".split()
)
TWO_ARGUMENTS = frozenset(r"\frac \binom \overset \underset \stackrel".split())
DROPPED = frozenset(
    r"""\, \; \: \! \> \quad \qquad \thinspace \medspace \thickspace \enspace \enskip \negthinspace \negmedspace
    \negthickspace \space \nobreakspace \displaystyle \textstyle \scriptstyle \scriptscriptstyle \limits \nolimits
    \notag \nonumber \nobreak \allowbreak \relax \strut \mathstrut \hfill \hfil \null""".split()
) | {"\\ ", "\\\n", "\\\t", "~"}
LENGTHS = frozenset(r"\hspace \hspace* \vspace \vspace* \label \mspace \hskip \kern \mskip \mkern".split())
SIZES = frozenset(
    r"""\left \right \middle \big \Big \bigg \Bigg \bigl \bigr \bigm \Bigl \Bigr \Bigm \biggl \biggr \biggm \Biggl
    \Biggr \Biggm""".split()
)
COLUMNS = frozenset(f"\\begin{{{n}}}" for n in ("array", "tabular", "alignat", "alignat*", "alignedat", "subarray"))

_SAME = r"""
\dfrac \frac  \tfrac \frac  \cfrac \frac  \dbinom \binom  \tbinom \binom  \le \leq  \ge \geq  \ne \neq
\leqslant \leq  \geqslant \geq  \to \rightarrow  \gets \leftarrow  \iff \Leftrightarrow  \implies \Rightarrow
\longrightarrow \rightarrow  \longleftarrow \leftarrow  \Longrightarrow \Rightarrow  \Longleftarrow \Leftarrow
\Longleftrightarrow \Leftrightarrow  \longmapsto \mapsto  \dasharrow \dashrightarrow
\lbrace \{  \rbrace \}  \lbrack [  \rbrack ]  \lvert |  \rvert |  \vert |  \mid |  \lVert \|  \rVert \|  \Vert \|
\land \wedge  \lor \vee  \lnot \neg  \owns \ni  \varnothing \emptyset  \ast *  \colon :  \lt <  \gt >  \prime '
\dots \ldots  \dotsc \ldots  \dotsb \cdots  \dotsm \cdots  \bm \boldsymbol  \frak \mathfrak
\textrm \text  \textnormal \text  \mbox \text  \hbox \text  \operatorname* \operatorname  \tag* \tag
""".split()
ALIASES: dict[str, str] = dict(zip(_SAME[::2], _SAME[1::2], strict=True))

_SYMBOLS = """
α alpha β beta γ gamma δ delta ε varepsilon ϵ epsilon ζ zeta η eta θ theta ϑ vartheta ι iota κ kappa λ lambda
μ mu ν nu ξ xi π pi ρ rho σ sigma ς varsigma τ tau υ upsilon φ varphi ϕ phi χ chi ψ psi ω omega µ mu
Γ Gamma Δ Delta ∆ Delta Θ Theta Λ Lambda Ξ Xi Π Pi Σ Sigma Υ Upsilon Φ Phi Ψ Psi Ω Omega
∑ sum ∏ prod ∫ int ∮ oint ∞ infty ∂ partial ∇ nabla × times ÷ div · cdot ⋅ cdot ± pm ∓ mp ≤ leq ≥ geq ≠ neq
≈ approx ≡ equiv ∼ sim ≃ simeq ≅ cong ∝ propto ∈ in ∉ notin ∋ ni ⊂ subset ⊆ subseteq ⊃ supset ⊇ supseteq
∪ cup ∩ cap ∅ emptyset ∀ forall ∃ exists ¬ neg ∧ wedge ∨ vee ⊕ oplus ⊗ otimes → rightarrow ← leftarrow
↔ leftrightarrow ⇒ Rightarrow ⇐ Leftarrow ⇔ Leftrightarrow ↦ mapsto … ldots ⋯ cdots ⋮ vdots ⋱ ddots ∘ circ
∙ bullet ⟨ langle ⟩ rangle ℓ ell ℏ hbar ⊥ perp ∥ parallel ∠ angle △ triangle † dagger ‡ ddagger ≪ ll ≫ gg
⌊ lfloor ⌋ rfloor ⌈ lceil ⌉ rceil
""".split()
UNICODE: dict[str, str] = {symbol: "\\" + name for symbol, name in zip(_SYMBOLS[::2], _SYMBOLS[1::2], strict=True)}
UNICODE |= {"−": "-", "–": "-", "′": "'", "‖": "\\|", "∣": "|", "∗": "*"}

ENVIRONMENTS = frozenset(
    name + star
    for name in ("equation", "align", "gather", "multline", "eqnarray", "displaymath", "alignat", "flalign")
    for star in ("", "*")
)
