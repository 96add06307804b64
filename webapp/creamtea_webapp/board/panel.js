// The marks of one output: its text, the list of its errors and, if the protocol asks for one, a score. The score
// waits until the rater has marked errors or said that there are none, because it must be based on them. Proposed
// errors are shown from the beginning; they become the answer when the rater changes one of them or says that
// these are all.

const FIRST_MARK = "Mark the errors first; if there are none, press “No errors” (key E).";

class MarkingPanel {
  constructor(widget, i) {
    const { board } = widget;
    Object.assign(this, { widget, board, i, output: board.data.outputs[i] });
    this.proposals = board.data.proposals[i].map((span, number) => ({ ...span, proposed: number }));
    this.marking = board.data.marking;
    this.letter = board.letter(i);
    this.behind = [MISSING, ...this.marking.special_marks];
    this.passage = newElement("div", { className: "passage", tabIndex: 0 });
    this.text = new MarkedText(board.texts[i], this.output, board.data.targetLanguage, this.behind, {
      overlap: this.marking.overlap,
      mark: (place) => this.mark(place),
      choose: (n) => this.choose(n),
      moved: () => this.moved(),
    });
    this.list = new ErrorList(this.marking, this.letter, {
      change: (n, part) => this.change(n, part),
      remove: (n) => this.remove(n),
      choose: (n) => this.choose(n),
      leave: () => this.passage.focus(),
    });
    this.makePassage();
    this.makeControls();
  }

  makePassage() {
    const { passage } = this;
    const text = this.board.texts[this.i];
    passage.setAttribute("role", "application"); // screen readers leave the arrow keys, which move the cursor
    passage.setAttribute("aria-label", `Mark the errors of translation ${this.letter}`);
    this.buttons = this.behind.map((name, n) => {
      const button = newButton(`[${name}]`, () => {
        passage.focus({ preventScroll: true });
        this.pressBehind(this.text.behind[n]);
      });
      button.tabIndex = -1;
      if (name === MISSING) button.title = "Part of the source is missing from the translation";
      return button;
    });
    text.before(passage);
    passage.append(text, ...this.buttons);
    // the cursor is where keys act: it is there from the first moment
    passage.onfocus = () => {
      if (this.text.cursor === null && !this.frozen) this.text.moveToEdge(1);
    };
  }

  makeControls() {
    const controls = newElement("div", { className: "marking" });
    this.none = newButton("", () => this.done(), { className: "quiet none" });
    this.cut = newButton("", () => this.switchUnits(), { className: "quiet" });
    this.hint = newElement("p", { className: "hint", role: "status" });
    this.spoken = newElement("p", { className: "spoken", ariaLive: "polite" }); // the cursor, for screen readers
    const line = newElement("div", { className: "line" });
    line.append(this.none, this.cut);
    controls.append(this.list.element, line, this.hint, this.spoken);
    if (this.marking.scored) {
      const template = this.board.find("template.slider").content.firstElementChild;
      this.slider = new Slider(template, this.board.data.scale, this.letter, (step) => this.setScore(step));
      this.slider.track.setAttribute("aria-describedby", this.board.texts[this.i].id);
      controls.append(this.slider.element);
    }
    this.widget.add(this.i, controls);
  }

  // ------------------------------------------------------------ the answer

  get answer() {
    return this.board.answers[this.i];
  }

  get spans() {
    return this.answer?.spans ?? this.proposals;
  }

  // Whether the rater has yet to say what is wrong with the translation.
  get isOpen() {
    return this.answer === null || this.answer.begun === true;
  }

  set(spans, more = {}) {
    const { begun, ...rest } = this.answer ?? {};
    const nothing = spans.length === 0 ? { begun: true } : {};
    this.board.answer(this.i, { ...rest, spans, ...nothing, ...more });
  }

  // The rater has marked all errors: these spans, even if there are none, are the answer.
  done() {
    if (this.frozen) return;
    const { begun, ...rest } = this.answer ?? {};
    this.board.answer(this.i, { ...rest, spans: this.spans });
    this.say("");
    this.widget.focus(this.i);
  }

  setScore(step) {
    if (this.frozen) return;
    if (this.isOpen) this.say(FIRST_MARK);
    else this.board.answer(this.i, { ...this.answer, score: step });
  }

  mark(place) {
    const { at_most: most, overlap: overlaps } = this.marking;
    const clash = this.places.some((one) => overlap(one, place));
    let trouble = "";
    if (most !== null && this.spans.length >= most) trouble = `At most ${most} errors can be marked.`;
    else if (clash && !overlaps) trouble = "Errors must not overlap: delete the other one first.";
    this.say(trouble);
    if (trouble) {
      this.moved();
      return;
    }
    const span = { ...placed(place, this.output, this.behind), severity: UNDECIDED };
    const spans = [...this.spans, span].sort((one, other) => {
      const [a, b] = [this.placeOf(one), this.placeOf(other)];
      return a.from - b.from || a.to - b.to;
    });
    this.text.chosen = spans.indexOf(span);
    this.set(spans);
    const { severities } = this.marking;
    this.say(`How severe? ${severities.map((level, n) => `${n + 1} ${level}`).join(", ")}`);
  }

  // At a mark behind the text: choose its error, or make one.
  pressBehind(place) {
    if (this.frozen) return;
    this.text.begun = null;
    this.text.cursor = place;
    const known = this.places.findIndex((one) => covers(one, place));
    if (known >= 0 && (!this.marking.overlap || known !== this.text.chosen)) this.choose(known);
    else this.mark(place);
  }

  change(n, part) {
    this.say("");
    this.set(this.spans.map((span, at) => (at === n ? { ...span, ...part } : span)));
  }

  remove(n) {
    this.say("");
    this.text.chosen = null;
    this.set(this.spans.filter((_, at) => at !== n));
    this.passage.focus({ preventScroll: true });
  }

  isDone(span) {
    const { severities, categories } = this.marking;
    return severities.includes(span.severity) && (categories.length === 0 || Boolean(span.category?.length));
  }

  placeOf(span) {
    return placeOf(span, this.output, this.behind);
  }

  // The text at a place: words, or the name of a mark behind the text.
  words({ from, to }) {
    const name = this.behind[from - this.output.length - 1];
    return name === undefined ? this.output.slice(from, to) : `[${name}]`;
  }

  // ------------------------------------------------------------ the cursor

  choose(n) {
    if (this.text.chosen === n) return;
    this.text.chosen = n;
    this.draw();
  }

  moved() {
    const { cursor } = this.text;
    const holds = (place) => covers(place, cursor);
    if (cursor !== null && !(this.text.chosen in this.places && holds(this.places[this.text.chosen]))) {
      const under = this.places.findLastIndex(holds);
      this.text.chosen = under < 0 ? null : under;
    }
    this.draw();
  }

  spokenCursor() {
    const { cursor, begun, chosen } = this.text;
    if (cursor === null) return "";
    const marked = chosen === null ? "" : `, ${this.spans[chosen].severity} error`;
    return `${this.words(cursor)}${marked}${begun === null ? "" : ", marking"}`;
  }

  jump(by) {
    if (this.spans.length === 0) return;
    const { chosen } = this.text;
    const next = chosen === null ? (by > 0 ? 0 : this.spans.length - 1) : chosen + by;
    this.text.chosen = Math.min(this.spans.length - 1, Math.max(0, next));
    this.text.begun = null;
    const place = this.places[this.text.chosen];
    this.text.cursor = { from: place.from, to: place.to };
    this.moved();
  }

  switchUnits() {
    this.text.switchUnits();
    this.draw();
  }

  say(text) {
    this.hint.textContent = text;
  }

  // ------------------------------------------------------------ keys

  // Returns whether the key was for marking.
  key(key, byCharacters) {
    const { text, marking } = this;
    const forward = getComputedStyle(text.element).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const level = marking.severities[Number(key) - 1];
    const acts = {
      ArrowUp: () => this.jump(-1),
      ArrowDown: () => this.jump(1),
      Home: () => text.moveToEdge(1),
      End: () => text.moveTo(text.behind[0]),
      " ": () => this.press(),
      e: () => this.done(),
      w: () => this.switchUnits(),
      c: () => this.list.rows[text.chosen]?.category?.focus(),
      Delete: () => text.chosen !== null && this.remove(text.chosen),
    };
    if (key === "ArrowLeft" || key === "ArrowRight") {
      text.move(key === forward ? 1 : -1, byCharacters ? "grapheme" : text.granularity);
    } else if (level !== undefined) this.setSeverity(level);
    else if (key === "Escape" && text.begun !== null) text.cancel();
    else if (key === "Backspace") acts.Delete();
    else if (key in acts) acts[key]();
    else if (key.toLowerCase() in acts) acts[key.toLowerCase()]();
    else return false;
    return true;
  }

  press() {
    if (this.text.cursor === null) this.text.moveToEdge(1);
    else if (this.text.isBehind) this.pressBehind(this.text.cursor);
    else this.text.press(this.text.cursor);
  }

  // Set the severity of the chosen error. An error that is begun ends at the cursor.
  setSeverity(level) {
    if (this.text.begun !== null) this.text.complete();
    const { chosen } = this.text;
    if (chosen === null) this.say("Choose an error first: ↑ and ↓ go from one to the next.");
    else {
      this.change(chosen, { severity: level });
      if (!this.isDone(this.spans[chosen])) this.list.rows[chosen].category.focus();
    }
  }

  // Focus the first missing part: a severity, a category, the marks, the score.
  focus() {
    const open = this.spans.findIndex((span) => !this.isDone(span));
    if (this.isOpen && open < 0) {
      if (this.passage.matches(":focus")) this.say(FIRST_MARK); // Enter, and nothing is marked
      this.passage.focus({ preventScroll: true });
    } else if (open >= 0) {
      this.text.chosen = open;
      this.draw();
      const decided = this.marking.severities.includes(this.spans[open].severity);
      this.say(decided ? "Choose a category." : "Choose how severe the error is.");
      if (decided) this.list.rows[open].category.focus();
      else this.passage.focus({ preventScroll: true });
    } else if (this.slider && !Number.isInteger(this.answer.score)) this.slider.track.focus();
    else this.passage.focus({ preventScroll: true });
  }

  // ------------------------------------------------------------ what is shown

  // Show the errors that a practice item expected. If it accepts a range of places, show the widest.
  teach(spans, found, right) {
    const list = newElement("ul", { className: "expected" });
    list.setAttribute("aria-label", `Expected errors of translation ${this.letter}`);
    const places = spans.map(({ start, end, special_mark }) =>
      this.placeOf(start === undefined ? { special_mark } : { start: start[0], end: end[1] }),
    );
    const isBehind = (place) => place.from > this.output.length;
    const said = (n) => {
      const words = isBehind(places[n]) ? this.words(places[n]) : `“${this.words(places[n])}”`;
      const { severity, category = [] } = spans[n];
      return [`${found[n] ? "✓" : "✗"} ${words}`, severity, category.join(", ")].filter(Boolean).join(", ");
    };
    const lines = spans.map((_, n) => [said(n), found[n]]);
    if (spans.length === 0) lines.push([`${right ? "✓" : "✗"} no errors`, right]);
    list.append(
      ...lines.map(([text, is]) => {
        const line = newElement("li", { textContent: text, dir: "auto" });
        line.classList.toggle("within", is);
        return line;
      }),
    );
    const head = newElement("p", { textContent: "Expected errors", className: "expected-head" });
    this.list.element.after(head, list);
    this.text.expected = places.filter((place) => !isBehind(place));
    this.text.render();
  }

  show(frozen) {
    this.frozen = frozen;
    this.places = this.spans.map((span) => this.placeOf(span));
    if (this.text.chosen !== null && this.text.chosen >= this.spans.length) this.text.chosen = null;
    const { none, spans, isOpen } = this;
    none.hidden = frozen || (spans.length > 0 && !isOpen);
    none.textContent = spans.length > 0 ? "No more errors" : "No errors";
    none.setAttribute("aria-pressed", String(!isOpen));
    this.slider?.show(this.answer?.score ?? null, frozen || isOpen);
    this.slider?.element.classList.toggle("waiting", isOpen);
    this.draw();
  }

  draw() {
    const { text, spans, places, frozen } = this;
    text.frozen = frozen;
    text.marks = spans.map((span, n) => ({
      place: places[n],
      classes: span.proposed === undefined ? span.severity : `${span.severity} proposed`,
    }));
    text.render();
    const errors = spans.map((span, n) => ({ span, words: this.words(places[n]) }));
    this.list.show(errors, text.chosen, frozen);
    this.buttons.forEach((button, n) => {
      const place = text.behind[n];
      const error = spans[places.findIndex((one) => covers(one, place))];
      button.disabled = frozen;
      button.className = `behind ${error?.severity ?? ""}`;
      button.classList.toggle("cursor", text.isBehind && covers(place, text.cursor));
    });
    const spoken = this.spokenCursor();
    if (this.spoken.textContent !== spoken) this.spoken.textContent = spoken;
    this.cut.hidden = frozen;
    this.cut.textContent = text.granularity === "word" ? "Mark characters" : "Mark words";
  }
}
