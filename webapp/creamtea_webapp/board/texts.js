// Texts of users and models. They become text nodes; nothing in this folder sets markup.

const BY_CHARACTER = new Set(["zh", "yue", "wuu", "lzh", "gan", "ja", "th", "lo", "km", "my", "bo", "dz"]); // without blanks: words.py
const MAX_CELLS = 4_000_000; // cells of the table that compares two texts

// A language as browsers know it; "und" if they do not.
function locale(language) {
  try {
    return Intl.getCanonicalLocales(language.replaceAll("_", "-"))[0] ?? "und";
  } catch {
    return "und";
  }
}

function showText(element, text, language) {
  element.textContent = text;
  element.lang = locale(language);
}

function newElement(tag, properties = {}) {
  return Object.assign(document.createElement(tag), properties);
}

// A button that acts and sends no form.
function newButton(text, onclick, properties = {}) {
  return newElement("button", { type: "button", textContent: text, onclick, ...properties });
}

const isSpace = (piece) => piece.trim() === "";

// Whether the language, or the script in its code (nan-Hant), writes no spaces.
function byCharacter(language) {
  const [main, ...parts] = locale(language).split("-");
  return BY_CHARACTER.has(main) || parts.some((part) => ["Hans", "Hant", "Hani"].includes(part));
}

const granularityOf = (language) => (byCharacter(language) ? "grapheme" : "word");

// Words and the text between them, or characters as people see them ("grapheme").
function pieces(text, language, granularity = granularityOf(language)) {
  return [...new Intl.Segmenter(locale(language), { granularity }).segment(text)];
}

// Which words of `a` and of `b` are in their longest common subsequence.
function shared(a, b) {
  const inA = new Array(a.length).fill(false);
  const inB = new Array(b.length).fill(false);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) [endA, endB] = [endA - 1, endB - 1];
  inA.fill(true, 0, start).fill(true, endA);
  inB.fill(true, 0, start).fill(true, endB);
  const [n, m] = [endA - start, endB - start];
  if ((n + 1) * (m + 1) > MAX_CELLS) return [inA, inB]; // the whole middle counts as different
  const at = (i, j) => i * (m + 1) + j;
  const longest = new Uint32Array((n + 1) * (m + 1)); // of a[start + i …] and b[start + j …]
  for (let i = n - 1; i >= 0; i -= 1) {
    for (let j = m - 1; j >= 0; j -= 1) {
      longest[at(i, j)] =
        a[start + i] === b[start + j]
          ? longest[at(i + 1, j + 1)] + 1
          : Math.max(longest[at(i + 1, j)], longest[at(i, j + 1)]);
    }
  }
  for (let i = 0, j = 0; i < n && j < m; ) {
    if (a[start + i] === b[start + j]) {
      inA[start + i] = inB[start + j] = true;
      i += 1;
      j += 1;
    } else if (longest[at(i + 1, j)] >= longest[at(i, j + 1)]) i += 1;
    else j += 1;
  }
  return [inA, inB];
}

// For each text its pieces, each with how it differs in wording or order: "" (from no other text), "some", or
// "only" (from all others). The same rule holds for every text, so that none is the standard for the others;
// empty texts do not count.
function compared(texts, language) {
  const all = texts.map((text) => pieces(text, language).map(({ segment }) => segment));
  const words = all.map((some) => some.filter((piece) => !isSpace(piece)));
  const missing = words.map((some) => new Array(some.length).fill(0));
  for (let a = 0; a < texts.length; a += 1) {
    for (let b = a + 1; b < texts.length; b += 1) {
      if (words[a].length === 0 || words[b].length === 0) continue;
      const [inA, inB] = shared(words[a], words[b]);
      inA.forEach((is, i) => (missing[a][i] += is ? 0 : 1));
      inB.forEach((is, i) => (missing[b][i] += is ? 0 : 1));
    }
  }
  const others = words.filter((some) => some.length > 0).length - 1;
  const kind = (count) => (count === 0 ? "" : count === others ? "only" : "some");
  return all.map((some, t) => {
    let word = 0;
    const marked = some.map((piece) => ({ piece, kind: isSpace(piece) ? null : kind(missing[t][word++]) }));
    // white space between two marks of a kind belongs to them
    marked.forEach((part, i) => {
      const [before, after] = [marked[i - 1]?.kind, marked[i + 1]?.kind];
      part.kind ??= before && before === after ? before : "";
    });
    return marked;
  });
}

// Fill an element with pieces of a text, neighbours of a kind joined, so that letters still connect.
function showMarked(element, marked) {
  const joined = [];
  for (const { piece, kind } of marked) {
    const last = joined.at(-1);
    if (last?.kind === kind) last.text += piece;
    else joined.push({ text: piece, kind });
  }
  element.replaceChildren(
    ...joined.map(({ text, kind }) => {
      if (kind === "") return document.createTextNode(text);
      return newElement("mark", { className: kind, textContent: text });
    }),
  );
}

// Focus an element, unless somebody is elsewhere on the page. The button that led here may still be there, with
// the focus, as Streamlit takes away what it showed before only when the script ends: then wait until it is gone.
function focusIfFree(element) {
  const focused = document.activeElement;
  const focusNow = () => {
    const { activeElement } = document;
    const free = !activeElement || activeElement === document.body || activeElement.shadowRoot !== null;
    if (free) element.focus({ preventScroll: true });
    return free;
  };
  if (focusNow()) return;
  const observer = new MutationObserver(() => {
    if (focused.isConnected) return;
    observer.disconnect();
    focusNow();
  });
  observer.observe(document.body, { childList: true, subtree: true });
}
