// Where KaTeX puts each piece of text, worked out from its box tree without a browser.
// jocrLayout(latex, em) -> JSON: {mathml, spans: [[text, x, y, width, height], ...]} in pixels (y down), or {error}.
// Rules are those of katex.css in display mode: vertical lists shift each row by top + strut, rows are centred unless a
// class says otherwise; every text box is as high as the fallback serif font makes it.

const ASCENT = 0.891, DESCENT = 0.216; // of the serif font a browser without KaTeX's fonts falls back to
const SIZES = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.44, 1.728, 2.074, 2.488];
const ALIGN = {msupsub: "left", "col-align-l": "left", "col-align-c": "center", "col-align-r": "right"};

const ems = (value) => (typeof value === "string" && value.endsWith("em") ? parseFloat(value) : 0);
const has = (node, name) => (node.classes || []).includes(name);

function scale(node) {
  let from = 0, to = 0;
  for (const name of node.classes || []) {
    const reset = /^reset-size(\d+)$/.exec(name), size = /^size(\d+)$/.exec(name);
    if (reset) from = +reset[1];
    if (size) to = +size[1];
  }
  return from && to ? SIZES[to - 1] / SIZES[from - 1] : 1;
}

function shift(spans, start, dx) {
  for (let i = start; i < spans.length; i++) spans[i][1] += dx;
}

function text(node, em, x, y, spans) {
  const width = (node.width || 0.5) * em * Math.max(1, node.text.length);
  const shown = node.text.trim();
  if (shown && shown !== "\u200b") spans.push([shown, x, y - ASCENT * em, width, (ASCENT + DESCENT) * em]);
  return width + (node.italic > 0 ? node.italic * em : 0);
}

// Symbols without a class of their own become one text in their parent's box ("lim").
const bare = (node) => node.children.length > 1 &&
  node.children.every((child) => child.text !== undefined && !child.classes.length && !(child.italic > 0));

function merged(node, em, x, y, spans) {
  const joined = node.children.map((child) => child.text).join("");
  const width = node.children.reduce((sum, child) => sum + (child.width || 0.5) * child.text.length, 0) / joined.length;
  return text({text: joined, width, italic: 0}, em, x, y, spans);
}

function vlist(node, em, align, x, y, spans) {
  const list = node.children[0].children[0];
  const rows = [];
  let width = 0;
  for (const row of list.children) {
    const start = spans.length, style = row.style || {};
    const strut = (row.children || []).find((child) => has(child, "pstrut"));
    const base = y + (ems(style.top) + (strut ? ems(strut.style.height) : 0)) * em;
    let wide = ems(style.marginLeft) * em;
    for (const child of row.children || []) if (child !== strut) wide += walk(child, em, align, x + wide, base, spans);
    wide += ems(style.marginRight) * em;
    rows.push([start, spans.length, wide]);
    width = Math.max(width, wide);
  }
  const share = {left: 0, center: 0.5, right: 1}[align];
  for (const [start, end, wide] of rows) for (let i = start; i < end; i++) spans[i][1] += (width - wide) * share;
  return width;
}

function walk(node, em, align, x, y, spans) {
  if (node.text !== undefined) return text(node, em, x, y, spans);
  if (!node.children || has(node, "strut")) return 0;
  const style = node.style || {};
  em *= scale(node);
  for (const name of node.classes || []) align = ALIGN[name] || align;
  const start = spans.length;
  const pad = has(node, "x-arrow-pad") ? 0.4 : has(node, "boxpad") ? 0.3 : 0;
  const root = has(node, "root");
  const before = (ems(style.marginLeft) + ems(style.paddingLeft) + pad + (root ? 5 / 18 : 0)) * em;
  const after = (ems(style.marginRight) + ems(style.paddingRight) + pad - (root ? 10 / 18 : 0)) * em;
  const at = x + before + ems(style.left) * em;
  y += (ems(style.top) - ems(style.verticalAlign)) * em;
  let width = 0;
  if (has(node, "vlist-t")) width = vlist(node, em, align, at, y, spans);
  else if (bare(node)) width = merged(node, em, at, y, spans);
  else for (const child of node.children) width += walk(child, em, align, at + width, y, spans);
  if (has(node, "nulldelimiter")) width = 0.12 * em;
  width = Math.max(width, ems(style.width) * em, ems(style.minWidth) * em);
  if (has(node, "accent-body") && !has(node, "accent-full")) return 0;
  if (has(node, "rlap")) return 0;
  if (has(node, "llap")) shift(spans, start, -width);
  if (has(node, "clap")) shift(spans, start, -width / 2);
  if (has(node, "llap") || has(node, "clap")) return 0;
  return before + width + after;
}

function lines(html, em, spans) {
  let y = 0, depth = 0, widest = 0, fresh = true, x = 0, start = 0;
  const rows = [], tags = [];
  const close = () => { rows.push([start, spans.length, x]); widest = Math.max(widest, x); start = spans.length; x = 0; };
  for (const part of html.children) {
    if (has(part, "newline")) { close(); y += depth + 1.2 * em + ems((part.style || {}).marginTop) * em; depth = 0; fresh = false; continue; }
    if (!fresh) { y += Math.max(0, part.height - 0.7) * em; fresh = true; }
    depth = Math.max(depth, part.depth * em);
    if (has(part, "tag")) tags.push(part);
    else x += walk(part, em, "center", x, y, spans);
  }
  close();
  for (const [from, to, wide] of rows) for (let i = from; i < to; i++) spans[i][1] += (widest - wide) / 2;
  for (const tag of tags) { // stands at the right edge of the equation
    const from = spans.length;
    shift(spans, from, widest - walk(tag, em, "center", 0, y, spans));
  }
}

function find(node) {
  if (has(node, "katex-html")) return node;
  for (const child of node.children || []) { const found = find(child); if (found) return found; }
  return null;
}

function jocrLayout(latex, em) {
  const options = {displayMode: true, throwOnError: true, strict: "ignore", maxExpand: 1000, maxSize: 100};
  try {
    const mathml = katex.renderToString(latex, {...options, output: "mathml"});
    const spans = [];
    lines(find(katex.__renderToHTMLTree(latex, {...options, output: "html"})), em, spans);
    return JSON.stringify({mathml, spans});
  } catch (error) {
    return JSON.stringify({error: String(error.message)});
  }
}
