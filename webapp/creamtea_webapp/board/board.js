// The rating board: one item, its outputs and the answers about them. texts.js, widget.js, asides.js and the
// widgets come before this file in the one module that the browser gets.
const WAIT = 250; // ms without a change before the draft is sent
const LONG = 500; // characters
const PATIENCE = 8000; // ms until Save may be pressed again if nothing was heard
const AGAIN = 3000; // ms until a draft is sent again that the server does not show to have

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
  return () => boards.get(parentElement)?.leave();
}

class Board {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.assignment = data.assignment;
    this.revision = data.revision;
    this.answers = data.outputs.map((_, i) => data.draft[i] ?? null);
    this.asked = null; // what the server was asked to do and has not answered
    this.frozen = Boolean(data.feedback); // what is shown is saved: a tutorial's answer
    this.active = 0;
    this.section = this.find(".board");
    this.showSource();
    this.showOutputs();
    this.comment = new Comment(this.find(".comment"), data.comment, this.frozen, () => this.changed());
    this.skipping = new Skipping(this.find(".skipping"), (reason) => this.act("skip", { reason }));
    this.clock = new Clock();
    this.showButtons();
    if (data.feedback) showFeedback(this, data.feedback);
    this.differences(false);
    showKeys(this.find(".keys dl"), this.widget, data.outputs.length);
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
    this.show();
    this.begin();
  }

  find(selector) {
    return this.root.querySelector(selector);
  }

  // ------------------------------------------------------------ what is shown

  showSource() {
    const { source, context, sourceLanguage } = this.data;
    showText(this.find(".source .text"), source, sourceLanguage);
    this.find(".source .before").hidden = context.length === 0;
    this.find(".context").replaceChildren(
      ...context.map((text) => {
        const line = document.createElement("p");
        line.dir = "auto";
        showText(line, text, sourceLanguage);
        return line;
      }),
    );
  }

  showOutputs() {
    const { widget, stacked, outputs, targetLanguage, task } = this.data;
    const shown = outputs.length;
    this.find(".task").textContent = task;
    const list = this.find(".outputs");
    list.className = "outputs";
    list.classList.toggle("stacked", stacked);
    list.classList.toggle("long", outputs.some((text) => text.length > LONG));
    list.style.setProperty("--columns", shown <= 4 ? shown : Math.ceil(shown / 2));
    const template = this.find("template.output").content.firstElementChild;
    this.texts = [];
    const items = outputs.map((text, i) => {
      const item = template.cloneNode(true);
      item.querySelector(".letter").textContent = shown > 1 ? letterOf(i) : "";
      const empty = text.trim() === "";
      item.querySelector(".nothing").hidden = !empty;
      const element = item.querySelector(".text");
      element.classList.toggle("blank", empty);
      element.id = `text-${i}`;
      showText(element, text, targetLanguage);
      this.texts.push(element);
      return item;
    });
    list.replaceChildren(...items);
    this.items = items;
    this.find(".together").hidden = true;
    this.widget = new WIDGETS[widget](this);
    list.classList.toggle("separate", this.widget.separate);
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
    skip.onclick = () => this.skip();
    const toggle = this.find(".differences");
    toggle.hidden = this.data.outputs.length < 2;
    toggle.onclick = () => this.differences(!this.marked);
    const kind = this.find(".kind");
    kind.textContent = this.data.tutorial ? "Practice" : revising ? "Saved before" : "";
    kind.hidden = kind.textContent === "";
    this.find(".feedback").hidden = true;
  }

  progress({ item, total, left }) {
    this.find(".count").textContent = `Item ${item} of ${total}`;
    this.find(".meter .done").style.width = `${(100 * (item - 1)) / total}%`;
    this.find(".time").textContent = left;
  }

  // Texts are compared only when somebody asks.
  differences(marked) {
    this.marked = marked;
    this.find(".differences").setAttribute("aria-pressed", String(marked));
    this.find(".differences").textContent = marked ? "Hide differences" : "Show differences";
    this.find(".legend").hidden = !marked;
    const { outputs, targetLanguage } = this.data;
    if (marked) compared(outputs, targetLanguage).forEach((text, i) => showMarked(this.texts[i], text));
    else this.texts.forEach((element, i) => (element.textContent = outputs[i]));
  }

  show() {
    const frozen = this.frozen || this.asked !== null;
    this.widget.show(this.answers, frozen);
    const missing = this.answers.filter((_, i) => !this.isComplete(i)).length;
    this.save.disabled = this.asked !== null || missing > 0;
    this.save.textContent = this.asked === "save" ? "Saving…" : this.frozen ? "Continue" : "Save";
    const left = `${missing} translation${missing === 1 ? "" : "s"} left to rate`;
    this.find("footer .left").textContent = missing === 0 || !this.widget.separate ? "" : left;
  }

  isComplete(i) {
    return this.answers[i] !== null && this.widget.isComplete(this.answers[i]);
  }

  choose(i) {
    this.active = i;
    this.items.forEach((item, j) => item.classList.toggle("chosen", i === j));
  }

  // A new item begins at its source: read out, and in view where the last one had been scrolled.
  begin() {
    if (focusIsFree()) (this.frozen ? this.save : this.find(".source")).focus({ preventScroll: true });
    requestAnimationFrame(() => {
      if (this.section.getBoundingClientRect().top < 0) this.section.scrollIntoView({ block: "start" });
    });
  }

  // ------------------------------------------------------------ what the rater does

  answer(i, answer) {
    this.answerAll(this.answers.map((old, j) => (i === j ? answer : old)));
  }

  answerAll(answers) {
    if (this.asked || this.frozen || same(answers, this.answers)) return;
    this.answers = answers;
    this.show();
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
    this.send("draft", { assignment, revision, answers: [...answers], comment: this.comment.text });
    // What is sent while the server is away gets lost, and Streamlit asks for nothing when it is back.
    clearTimeout(this.unheard);
    if (!this.isKnown()) this.unheard = setTimeout(() => this.sendDraft(), AGAIN);
  }

  // The server has these answers and this comment.
  heard({ draft, comment }) {
    this.known = { answers: this.answers.map((_, i) => draft[i] ?? null), comment };
    if (!this.isKnown()) return;
    this.section.dataset.draft = "saved";
    clearTimeout(this.unheard);
  }

  isKnown() {
    const { answers, comment } = this.known;
    return comment === this.comment.text && same(answers, this.answers);
  }

  // Ask the server for something; until it answers, nothing else is asked.
  act(kind, more = {}) {
    if (this.asked) return;
    clearTimeout(this.unheard);
    if (kind === "save") {
      clearTimeout(this.timer);
      this.timer = undefined;
    } else if (this.timer !== undefined) this.sendDraft();
    this.asked = kind;
    this.show();
    this.send("act", { kind, assignment: this.assignment, ...more });
    // Saving the same answers again stores nothing new, so a lost answer may be repeated.
    this.again = setTimeout(() => {
      this.release();
      this.find(".notice").textContent = "No answer yet. What you set is still here: try again.";
    }, PATIENCE);
  }

  submit() {
    if (this.frozen) this.act("continue");
    else if (this.answers.every((_, i) => this.isComplete(i))) {
      const { revision, answers } = this;
      this.act("save", { revision, answers: [...answers], comment: this.comment.text, active_ms: this.clock.read() });
    }
  }

  back() {
    if (!this.find("footer .back").hidden) this.act(this.data.revising ? "current" : "earlier");
  }

  skip() {
    if (!this.find("footer .skip").hidden && !this.asked) this.skipping.open();
  }

  // A notice is why the server did not do what was asked: the answers stay, and it may be tried again.
  say({ text, number }) {
    if (number === this.noticed) return;
    this.noticed = number;
    this.find(".notice").textContent = text;
    if (!text) return;
    clearTimeout(this.unheard); // refused: sent again it would be refused again
    this.release();
  }

  release() {
    clearTimeout(this.again);
    this.asked = null;
    this.show();
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

  // Keys work wherever the focus is, but in other widgets of the page and where somebody writes.
  key(event) {
    const [target] = event.composedPath();
    const inside = event.composedPath().includes(this.section);
    const free = target === document.body || target === document.documentElement;
    if (event.defaultPrevented || event.isComposing || event.altKey || !(inside || free)) return;
    if (this.skipping.isOpen || this.asked) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.submit();
    else if (event.ctrlKey || event.metaKey) return;
    else if (target instanceof HTMLTextAreaElement) {
      if (event.key !== "Escape") return;
      this.focusOutput(this.active);
    } else if (!this.plainKey(event, target)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  plainKey(event, target) {
    const pressing = target.closest("button, summary") !== null;
    const letters = {
      d: () => this.data.outputs.length > 1 && this.differences(!this.marked),
      s: () => this.skip(),
      b: () => this.back(),
      n: () => this.comment.write(),
    };
    const letter = event.key.toLowerCase();
    const digit = event.shiftKey && /^Digit[1-8]$/.test(event.code);
    if (digit && this.widget.separate) this.focusOutput(Number(event.code.at(-1)) - 1);
    else if (letter in letters) letters[letter]();
    else if (event.key === "Enter" && !(pressing && target.getAttribute("role") !== "radio")) this.enter();
    else if (this.frozen) return false;
    else if (!this.widget.key(event.key, this.active)) return false;
    else if (this.widget.separate && !this.widget.holds(target)) this.focusOutput(this.active);
    return true;
  }

  // Enter goes to the next output without an answer; when there is none, it saves.
  enter() {
    const order = this.answers.map((_, i) => (this.active + 1 + i) % this.answers.length);
    const next = order.find((i) => !this.isComplete(i));
    if (next === undefined) this.submit();
    else this.focusOutput(next);
  }

  focusOutput(i) {
    if (i >= this.items.length) return;
    this.widget.focus(i);
  }
}
