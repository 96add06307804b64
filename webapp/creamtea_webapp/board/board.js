// The rating board: a page of one segment, or of a document's, and the answers about their outputs. texts.js,
// widget.js, segment.js, asides.js and the widgets come before this file in the one module that the browser gets.
const WAIT = 250; // ms without a change before the draft is sent
const PATIENCE = 8000; // ms until Save may be pressed again if the server has not answered
const LETTERS = "A letter stands for the same translator on the whole page.";
const AGAIN = 3000; // ms until a draft is sent again if the server does not show that it has it

// What is on the screen, by the element that holds it. Streamlit calls the renderer again whenever the
// data changed; the answers of the same item then stay as the rater has them.
const boards = new WeakMap();

export default function render({ parentElement, data, setStateValue, setTriggerValue }) {
  let board = boards.get(parentElement);
  const same = board?.assignment === data.assignment && board.revision === data.revision;
  if (!same || Boolean(data.feedback) !== board.frozen) {
    board?.leave();
    board = new Board(parentElement, data);
    boards.set(parentElement, board);
  }
  board.send = (name, value) => (name === "draft" ? setStateValue : setTriggerValue)(name, value);
  board.progress(data);
  board.heard(data);
  board.say(data.notice);
  // Streamlit cleans up after a call that a newer one has overtaken, before or after the newer call.
  const call = board.stay();
  return () => call === board.calls && board.leave();
}

class Board {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.assignment = data.assignment;
    this.revision = data.revision;
    this.asked = null; // the request that the server has not answered
    this.frozen = Boolean(data.feedback); // shows the saved answer to a practice item
    this.section = this.find(".board");
    this.several = data.segments.length > 1;
    this.showSegments();
    this.comment = new Comment(this.find(".comment"), data.comment, this.frozen, () => this.changed());
    this.skipping = new Skipping(this.find(".skipping"), this.thing, (reason) =>
      this.act("skip", { reason }),
    );
    this.clock = new Clock(data.assignment);
    this.showButtons();
    if (data.feedback) showFeedback(this.current, data.feedback);
    this.differences(false);
    const most = Math.max(...this.segments.map(({ data: { outputs } }) => outputs.length));
    showKeys(this.find(".keys dl"), this.current.widget, most, this.thing);
    this.onKey = (event) => this.key(event);
    this.calls = 0; // of the renderer
    this.show();
    this.begin();
  }

  find(selector) {
    return this.root.querySelector(selector);
  }

  // All answers of the page, those of the first segment first.
  get answers() {
    return this.segments.flatMap((segment) => segment.answers);
  }

  get wholeAnswers() {
    return this.whole?.answers ?? [];
  }

  // Where an answer is given, as [segment, number of the output].
  get places() {
    return this.parts.flatMap((part) => part.places.map((i) => [part, i]));
  }

  get isFixed() {
    return this.asked !== null || this.frozen;
  }

  // The raters' word for what the board shows.
  get thing() {
    return this.several ? "page" : "item";
  }

  // ------------------------------------------------------------ what is shown

  showSegments() {
    const { segments, draft, task, ...page } = this.data;
    const [list, asked, legend] = [".segments", ".asked", ".legend"].map((selector) => this.find(selector));
    const lettered = this.several && segments.some(({ letters }) => letters.length > 1);
    this.find(".task").textContent = task + (lettered ? ` ${LETTERS}` : "");
    list.before(asked, legend);
    list.replaceChildren();
    list.classList.toggle("several", this.several);
    list.classList.toggle("stacked", page.stacked);
    let at = 0;
    this.segments = segments.map((segment, number) => {
      const own = segment.outputs.map((_, i) => draft[at + i] ?? null);
      at += own.length;
      return new Segment(this, { ...page, ...segment, draft: own, several: this.several }, number + 1);
    });
    [this.current] = this.segments;
    this.find(".whole").hidden = true;
    this.whole = this.data.document === null ? null : new Whole(this, this.data.document);
    this.parts = this.whole === null ? this.segments : [...this.segments, this.whole];
    if (!this.several) this.current.source.after(asked, legend); // above a document, in the middle of one segment
  }

  showButtons() {
    const { revising, earlier } = this.data;
    const [save, back, skip] = ["save", "back", "skip"].map((name) => this.find(`footer .${name}`));
    this.save = save;
    save.onclick = () => this.submit();
    back.textContent = revising ? "Leave it as it was" : "Earlier items";
    back.hidden = this.frozen || (!revising && !earlier);
    back.onclick = () => this.back();
    skip.hidden = this.frozen || revising || this.data.tutorial;
    skip.textContent = `Skip this ${this.thing}`;
    skip.onclick = () => this.skip();
    const toggle = this.find(".differences");
    toggle.hidden = !this.canCompare;
    toggle.onclick = () => this.differences(!this.marked);
    const kind = this.find(".kind");
    kind.textContent = this.data.tutorial ? "Practice" : revising ? "Saved before" : "";
    kind.hidden = kind.textContent === "";
    this.find(".feedback").hidden = true;
  }

  progress({ item, total, fewer, left }) {
    const last = item + this.segments.length - 1;
    this.item = item;
    this.total = total;
    const place = this.several ? `Items ${item} to ${last}` : `Item ${item}`;
    this.find(".count").textContent = `${place} of ${fewer ? "up to " : ""}${total}`;
    this.find(".time").textContent = left;
    this.showMeter();
  }

  // Complete segments of the page count, unless the page was saved before and is shown again.
  showMeter() {
    const complete = this.data.revising ? 0 : this.segments.filter((one) => this.isDone(one)).length;
    const done = this.item - 1 + (this.several ? complete : 0);
    this.find(".meter .done").style.width = `${(100 * done) / this.total}%`;
  }

  get canCompare() {
    const comparable = (texts) => texts.length > 1 && texts.some((text) => text.trim() !== "");
    return this.segments.some(({ data: { outputs } }) => comparable(outputs));
  }

  differences(marked) {
    this.marked = marked;
    this.find(".differences").setAttribute("aria-pressed", String(marked));
    this.find(".differences").textContent = marked ? "Hide differences" : "Show differences";
    this.find(".legend").hidden = !marked;
    for (const segment of this.segments) segment.differences(marked);
  }

  show() {
    for (const part of this.parts) part.show(this.isFixed);
    this.showMissing();
  }

  showMissing() {
    const missing = this.places.filter(([part, i]) => !part.isComplete(i)).length;
    const { separate } = this.segments[0].widget;
    this.save.disabled = this.asked !== null || missing > 0;
    this.save.textContent = this.asked === "save" ? "Saving…" : this.frozen ? "Continue" : "Save";
    const what = this.whole ? "score" : separate ? "translation" : "segment";
    const left = `${missing} ${what}${missing === 1 ? "" : "s"} left to ${this.whole ? "give" : "rate"}`;
    this.find("footer .left").textContent = missing === 0 || !(separate || this.several) ? "" : left;
    if (this.total) this.showMeter();
  }

  isDone(segment) {
    return segment.places.every((i) => segment.isComplete(i));
  }

  // Called by a segment that the rater works on.
  chose(segment) {
    if (segment !== this.current) this.current.leave();
    this.current = segment;
    segment.element.classList.add("current");
  }

  // A new item begins at its source, which is focused, so that it is read out, and scrolled into view. A page
  // that was begun goes on at its first open segment.
  begin() {
    const open = this.parts.find((part) => !this.isDone(part));
    const begun = this.several && open !== undefined && open !== this.current;
    if (begun) this.chose(open);
    focusIfFree(this.frozen ? this.save : (this.current.source ?? this.current.element));
    requestAnimationFrame(() => {
      if (begun) this.reveal();
      else if (this.section.getBoundingClientRect().top < 0) this.section.scrollIntoView({ block: "start" });
    });
  }

  // Scroll the current segment into view, a long one to its beginning.
  reveal() {
    if (!this.several) return;
    const { element } = this.current;
    const fits = element.getBoundingClientRect().height < window.innerHeight * 0.8;
    element.scrollIntoView({ block: fits ? "center" : "start" });
  }

  // ------------------------------------------------------------ what the rater does

  // Called by a segment whose answers changed.
  answered(segment) {
    segment.show(this.isFixed);
    this.showMissing();
    this.changed();
  }

  changed() {
    if (this.asked) return;
    this.section.dataset.draft = "changed";
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.sendDraft(), WAIT);
  }

  sendDraft() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.section.dataset.draft = "sent";
    const { assignment, revision, answers } = this;
    const { text } = this.comment;
    this.send("draft", { assignment, revision, answers, document: this.wholeAnswers, comment: text });
    // A draft sent while the server is away gets lost, and Streamlit does not ask for it afterwards.
    clearTimeout(this.unheard);
    if (!this.isKnown()) this.unheard = setTimeout(() => this.sendDraft(), AGAIN);
  }

  // The server has these answers and this comment.
  heard({ draft, document, comment }) {
    const answers = this.answers.map((_, i) => draft[i] ?? null);
    this.known = { answers, document: document?.draft ?? [], comment };
    if (!this.isKnown()) return;
    this.section.dataset.draft = "saved";
    clearTimeout(this.unheard);
  }

  isKnown() {
    const { answers, document, comment } = this.known;
    const asSent = same(answers, this.answers) && same(document, this.wholeAnswers);
    return comment === this.comment.text && asSent;
  }

  // Ask the server for something; until it answers, nothing else is asked.
  act(kind, more = {}) {
    if (this.asked) return;
    clearTimeout(this.unheard);
    if (kind === "save" || kind === "current") {
      // changes are saved with the answers, or discarded
      clearTimeout(this.timer);
      this.timer = undefined;
    } else if (this.timer !== undefined) this.sendDraft();
    this.asked = kind;
    this.show();
    this.send("act", { kind, assignment: this.assignment, ...more });
    // Saving the same answers again stores nothing new, so a lost answer may be repeated.
    this.again = setTimeout(() => {
      this.release();
      this.find(".notice").textContent = "No reply from the server. Nothing is lost: try again.";
    }, PATIENCE);
  }

  submit() {
    if (this.frozen) this.act("continue");
    else if (this.parts.every((part) => this.isDone(part))) {
      const { revision, answers } = this;
      this.act("save", {
        revision,
        answers,
        document: this.wholeAnswers,
        comment: this.comment.text,
        active_ms: this.clock.read(),
      });
    }
  }

  back() {
    if (!this.find("footer .back").hidden) this.act(this.data.revising ? "current" : "earlier");
  }

  skip() {
    if (!this.find("footer .skip").hidden && !this.asked) this.skipping.open();
  }

  // A notice says why the server refused a request: the answers stay, and the rater may try again.
  say({ text, number }) {
    if (number === this.noticed) return;
    this.noticed = number;
    this.find(".notice").textContent = text;
    if (!text) return;
    clearTimeout(this.unheard); // the server would refuse the draft again
    this.release();
  }

  release() {
    clearTimeout(this.again);
    this.asked = null;
    this.show();
  }

  // Listen, if the board does not already; return the number of the renderer's call.
  stay() {
    this.clock.start();
    document.addEventListener("keydown", this.onKey);
    return ++this.calls;
  }

  leave() {
    if (this.timer !== undefined) this.sendDraft();
    clearTimeout(this.unheard);
    clearTimeout(this.again);
    this.clock.stop();
    this.skipping.close();
    document.removeEventListener("keydown", this.onKey);
  }

  // ------------------------------------------------------------ keys

  // Keys work wherever the focus is, except in other widgets of the page and in text fields.
  key(event) {
    const [target] = event.composedPath();
    const inside = event.composedPath().includes(this.section);
    // a score may be typed while a text that was just opened has the focus
    const reading = /^[0-9]$/.test(event.key) && target.closest?.("summary");
    const free = target === document.body || target === document.documentElement || reading;
    if (event.defaultPrevented || event.isComposing || event.altKey || !(inside || free)) return;
    if (target instanceof HTMLMediaElement) return; // its keys play, seek and change the volume
    if (this.skipping.isOpen || this.asked) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.submit();
    else if (event.ctrlKey || event.metaKey) return;
    else if (target instanceof HTMLTextAreaElement) {
      if (event.key !== "Escape") return;
      this.leaveField();
    } else if (!this.plainKey(event, target)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  plainKey(event, target) {
    const pressing = target.closest("a, button, summary") !== null;
    const { widget, active } = this.current;
    const letters = {
      d: () => this.canCompare && this.differences(!this.marked),
      s: () => this.skip(),
      b: () => this.back(),
      n: () => this.comment.write(),
      ...(this.several ? { j: () => this.goBy(1), k: () => this.goBy(-1) } : {}),
    };
    const letter = event.key.toLowerCase();
    // not if the keyboard layout types digits with Shift
    const digit = event.shiftKey && /^Digit[1-8]$/.test(event.code) && !/^[0-9]$/.test(event.key);
    if (digit && widget.separate) this.focusOutput(Number(event.code.at(-1)) - 1);
    else if (letter in letters) letters[letter]();
    else if (event.key === "Enter" && !(pressing && target.getAttribute("role") !== "radio")) this.enter();
    else if (this.frozen) return false;
    else if (!widget.key(event.key, active, event)) return false;
    else if (widget.separate && !widget.writes && !widget.holds(target)) this.focusOutput(active);
    return true;
  }

  // Go to the next segment or the one before.
  goBy(step) {
    const part = this.parts[this.parts.indexOf(this.current) + step];
    if (part !== undefined) this.goTo(part, 0);
  }

  goTo(segment, i) {
    const elsewhere = segment !== this.current;
    this.chose(segment);
    segment.focus(i);
    if (elsewhere) this.reveal();
  }

  // Enter goes to the next output without an answer; when there is none, it saves.
  enter() {
    const { places, current } = this;
    if (!this.frozen && current.widget.enter(current.active)) return;
    const here = places.findIndex(([segment, i]) => segment === current && i === current.active);
    const order = places.map((_, k) => places[(here + 1 + k) % places.length]);
    const next = order.find(([segment, i]) => !segment.isComplete(i));
    if (next === undefined) this.submit();
    else this.goTo(...next);
  }

  focusOutput(i) {
    this.current.focus(i);
  }

  // Leave a text field, so that letters are keys again.
  leaveField() {
    const { widget, active, source, element } = this.current;
    if (widget.writes) (source ?? element).focus({ preventScroll: true });
    else this.focusOutput(active);
  }
}
