// The text of an output in which errors are marked. A place is {from, to} in UTF-16 units, as the browser counts
// them; an answer's spans count code points and include the last one (`placed`, `placeOf`). Behind the text are
// places for omissions and for each special mark of the campaign; an answer's spans have no position there.

const MISSING = "missing"; // the first mark behind the text, for omissions
const NEAR = 12; // px around a word that still count as on it

// The place of the nth mark behind a text.
const placeBehind = (n, text) => ({ from: text.length + 1 + n, to: text.length + 2 + n });

// The place in a text of an answer's span; `behind`: the names of the marks behind the text.
function placeOf(span, text, behind) {
  if (span.start === undefined) return placeBehind(behind.indexOf(span.special_mark ?? MISSING), text);
  const characters = [...text];
  const until = (count) => characters.slice(0, count).join("").length;
  return { from: until(span.start), to: until(span.end + 1) };
}

// The position of an answer's span at a place: a special mark has its name instead, an omission nothing.
function placed(place, text, behind) {
  const name = behind[place.from - text.length - 1];
  if (name !== undefined) return name === MISSING ? {} : { special_mark: name };
  const before = (offset) => [...text.slice(0, offset)].length;
  return { start: before(place.from), end: before(place.to) - 1 };
}

// Words and punctuation, or characters, without the white space between them.
function units(text, language, granularity) {
  return pieces(text, language, granularity)
    .filter(({ segment }) => !isSpace(segment))
    .map(({ segment, index }) => ({ from: index, to: index + segment.length }));
}

const covers = (place, other) => place.from <= other.from && other.to <= place.to;
const overlap = (place, other) => place.from < other.to && other.from < place.to;

class MarkedText {
  // `listener` has mark(place), choose(index of a mark) and moved(cursor). The cursor is a place; after the last
  // word it moves through the marks behind the text.
  constructor(element, text, language, behind, listener) {
    Object.assign(this, { element, text, language, listener });
    this.behind = behind.map((_, n) => placeBehind(n, text));
    this.granularity = granularityOf(language);
    this.marks = []; // {place, classes}
    this.chosen = null; // the number of a mark
    this.begun = null; // the first place of a mark that has no end yet
    this.cursor = null;
    this.differing = null; // pieces as `compared` gives them
    this.frozen = false;
    this.expected = []; // places where a practice item has errors
    this.listenToPointer();
  }

  get units() {
    return this.unitsOf(this.granularity);
  }

  unitsOf(granularity) {
    this.cut ??= {};
    this.cut[granularity] ??= units(this.text, this.language, granularity);
    return this.cut[granularity];
  }

  get isBehind() {
    return this.cursor !== null && this.cursor.from > this.text.length;
  }

  switchUnits() {
    this.granularity = this.granularity === "word" ? "grapheme" : "word";
    this.cursor = null;
    this.cancel();
  }

  // ------------------------------------------------------------ what the rater does

  // One end of a mark: the first begins it, the second makes it. On a mark that is not chosen: choose it.
  press(unit) {
    if (this.begun !== null) {
      this.complete(unit);
      return;
    }
    this.cursor = unit;
    const at = this.marks.findLastIndex(({ place }) => covers(place, unit));
    if (at >= 0 && at !== this.chosen) this.listener.choose(at);
    else if (at >= 0 && !this.listener.overlap) this.listener.moved();
    else {
      this.begun = unit;
      this.boxes = this.measured(); // a mouse may also extend a mark that a key has begun
      this.listener.moved();
    }
  }

  complete(unit = this.cursor) {
    const first = this.begun;
    this.begun = null;
    this.cursor = unit;
    this.listener.mark({ from: Math.min(first.from, unit.from), to: Math.max(first.to, unit.to) });
  }

  cancel() {
    this.begun = null;
    this.listener.moved();
  }

  // Move to the next (1) or previous (-1) word or character.
  move(by, granularity = this.granularity) {
    const all = [...this.unitsOf(granularity), ...(this.begun === null ? this.behind : [])];
    if (all.length === 0) return;
    const { cursor } = this;
    const inside = cursor === null ? [] : all.filter((unit) => covers(cursor, unit) && unit !== cursor);
    if (inside.length > 1) {
      this.moveTo(inside.at(by > 0 ? 0 : -1)); // into the word, by characters
      return;
    }
    let next = by > 0 ? 0 : all.length - 1;
    if (cursor !== null) {
      next =
        by > 0
          ? all.findIndex(({ from }) => from >= Math.max(cursor.to, cursor.from + 1))
          : all.findLastIndex(({ to, from }) => to <= cursor.from && from < cursor.from);
      if (next < 0) next = by > 0 ? all.length - 1 : 0;
    }
    this.cursor = all[next];
    this.listener.moved();
  }

  moveTo(place) {
    this.cursor = place;
    this.listener.moved();
  }

  // Move to the first or the last place.
  moveToEdge(by) {
    this.cursor = null;
    this.move(by);
  }

  listenToPointer() {
    const { element } = this;
    let down = null; // where a mouse or a finger came down
    element.onpointerdown = (event) => {
      down = null;
      if (event.button !== 0 || this.frozen) return;
      this.boxes = this.measured();
      const unit = this.unitAt(event, NEAR);
      if (unit === null) return;
      down = { unit, x: event.clientX, y: event.clientY, mouse: event.pointerType === "mouse" };
      if (down.mouse) element.setPointerCapture(event.pointerId);
    };
    element.onpointermove = (event) => {
      if (down === null) {
        if (this.begun !== null && event.pointerType === "mouse") this.extend(event);
        return;
      }
      if (!down.mouse) {
        // a finger that scrolls marks nothing
        if (Math.hypot(event.clientX - down.x, event.clientY - down.y) > SLACK) down = null;
        return;
      }
      down.drags ||= this.unitAt(event) !== down.unit;
      if (!down.drags) return;
      this.begun = down.unit;
      this.extend(event);
    };
    element.onpointerup = (event) => {
      if (down === null) return;
      const { unit, drags } = down;
      down = null;
      if (drags) this.complete(this.unitAt(event));
      else this.press(unit);
    };
    element.onpointercancel = () => {
      if (down?.drags) this.cancel();
      down = null;
    };
  }

  // Show the mark that is begun up to a mouse.
  extend(event) {
    const unit = this.unitAt(event);
    if (unit !== this.cursor) this.moveTo(unit);
  }

  // ------------------------------------------------------------ where words are on the screen

  // The boxes of each unit, from the element's corner: marks change no sizes, so a whole gesture can use them.
  measured() {
    const corner = this.element.getBoundingClientRect();
    const range = document.createRange();
    return this.units.map((unit) => {
      const [start, end] = [this.pointOf(unit.from), this.pointOf(unit.to)];
      range.setStart(...start);
      range.setEnd(...end);
      const boxes = [...range.getClientRects()].map((box) => ({
        left: box.left - corner.left,
        right: box.right - corner.left,
        top: box.top - corner.top,
        bottom: box.bottom - corner.top,
      }));
      return { unit, boxes };
    });
  }

  // The text node that holds a place, and the offset in it.
  pointOf(offset) {
    const walker = document.createTreeWalker(this.element, NodeFilter.SHOW_TEXT);
    let [left, node] = [offset, walker.nextNode()];
    while (node.length < left) {
      left -= node.length;
      node = walker.nextNode();
    }
    return [node, left];
  }

  // The nearest unit, lines before columns; null where it is further than `within` px away.
  unitAt({ clientX, clientY }, within = Infinity) {
    const corner = this.element.getBoundingClientRect();
    const [x, y] = [clientX - corner.left, clientY - corner.top];
    let [nearest, least] = [null, Infinity];
    for (const { unit, boxes } of this.boxes) {
      for (const { left, right, top, bottom } of boxes) {
        const across = Math.max(left - x, 0, x - right);
        const along = Math.max(top - y, 0, y - bottom);
        if (Math.max(across, along) <= within && along * 1000 + across < least) {
          [nearest, least] = [unit, along * 1000 + across];
        }
      }
    }
    return nearest;
  }

  // ------------------------------------------------------------ what is shown

  // Split the text at marks, cursor and differences into as few elements as possible: letters still connect.
  render() {
    const edges = new Set([0, this.text.length]);
    const layers = this.layers();
    for (const { from, to } of layers) edges.add(from).add(to);
    const sorted = [...edges].sort((one, other) => one - other);
    const runs = [];
    for (let n = 0; n + 1 < sorted.length; n += 1) {
      const run = { from: sorted[n], to: sorted[n + 1] };
      const classes = layers.filter((layer) => covers(layer, run)).map((layer) => layer.classes);
      const name = [...new Set(classes)].join(" ");
      if (runs.at(-1)?.name === name) runs.at(-1).to = run.to;
      else runs.push({ ...run, name });
    }
    this.element.replaceChildren(...runs.map((run) => this.shown(run)));
  }

  layers() {
    const layers = this.marks
      .map(({ place, classes }, n) => ({
        ...place,
        classes: n === this.chosen ? `${classes} chosen` : classes,
      }))
      .filter(({ from }) => from < this.text.length);
    let at = 0;
    for (const { piece, kind } of this.differing ?? []) {
      if (kind !== "") layers.push({ from: at, to: at + piece.length, classes: kind });
      at += piece.length;
    }
    layers.push(...this.expected.map((place) => ({ ...place, classes: "wanted" })));
    const { begun, cursor } = this;
    if (begun !== null && cursor !== null) {
      const [from, to] = [Math.min(begun.from, cursor.from), Math.max(begun.to, cursor.to)];
      layers.push({ from, to, classes: "begun" });
    }
    if (cursor !== null && !this.isBehind && !this.frozen) layers.push({ ...cursor, classes: "cursor" });
    return layers;
  }

  shown({ from, to, name }) {
    const text = this.text.slice(from, to);
    if (name === "") return document.createTextNode(text);
    return newElement(name === "cursor" ? "span" : "mark", { className: name, textContent: text });
  }
}
