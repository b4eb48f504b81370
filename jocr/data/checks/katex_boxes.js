// In the browser: render one equation and read where each innermost piece of text came to stand.
// jocrBoxes(latex) -> {mathml, spans: [[text, x, y, width, height], ...]} in pixels, or {error}.
function jocrBoxes(latex) {
  const host = document.getElementById("equation");
  const options = {displayMode: true, throwOnError: true, strict: "ignore", maxExpand: 1000, maxSize: 100};
  let mathml;
  try {
    mathml = katex.renderToString(latex, {...options, output: "mathml"});
    host.innerHTML = katex.renderToString(latex, {...options, output: "html"});
  } catch (error) {
    return {error: String(error.message)};
  }
  const spans = [];
  for (const element of host.querySelectorAll(".katex-html span")) {
    const text = element.children.length ? "" : element.textContent.trim();
    if (!text || text === "\u200b") continue; // the second is what gives a vertical list its depth
    const box = element.getBoundingClientRect();
    spans.push([text, box.x, box.y, box.width, box.height]);
  }
  return {mathml, spans};
}
