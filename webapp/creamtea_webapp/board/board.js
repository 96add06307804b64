// The rating board. Scores are whole steps 0 … 25, shown as 1.0 … 6.0; null is "no score yet".
const LAST = 25;
const WAIT = 250; // ms without a change before the draft is sent
const PATIENCE = 8000; // ms until Save may be pressed again if nothing was heard

const label = (step) => {
  const tenths = 10 + 2 * step;
  return `${Math.floor(tenths / 10)}.${tenths % 10}`;
};

// What is on the screen, by the element that holds it. Streamlit calls the renderer again after every
// run of the script; the scores of the same assignment then stay as the rater has them.
const boards = new WeakMap();

export default function render({ parentElement, data, setStateValue, setTriggerValue }) {
  let board = boards.get(parentElement);
  if (board?.assignment !== data.assignment) {
    board = new Board(parentElement, data);
    boards.set(parentElement, board);
  }
  board.say(data.notice);
  board.send = (name, value) =>
    name === "saved" ? setTriggerValue(name, value) : setStateValue(name, value);
  return () => board.leave();
}

class Board {
  constructor(root, data) {
    this.assignment = data.assignment;
    this.steps = data.outputs.map((_, i) => data.draft[i] ?? null);
    this.saving = false;
    const find = (selector) => root.querySelector(selector);
    find(".count").textContent = `Item ${data.item} of ${data.total}`;
    find(".meter .done").style.width = `${(100 * (data.item - 1)) / data.total}%`;
    showText(find(".source .text"), data.source, data.sourceLanguage);
    const template = find("template.output").content.firstElementChild;
    this.rows = data.outputs.map((text, i) => new Row(template, text, data.targetLanguage, i, this));
    find(".outputs").replaceChildren(...this.rows.map((row) => row.element));
    this.notice = find(".notice");
    this.left = find(".left");
    this.save = find(".save");
    this.save.onclick = () => this.submit();
    find(".board").onkeydown = (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.submit();
    };
    this.show();
  }

  score(i, step) {
    if (this.saving || this.steps[i] === step) return;
    this.steps[i] = step;
    this.show();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.sendDraft(), WAIT);
  }

  sendDraft() {
    this.timer = undefined;
    this.send("draft", { assignment: this.assignment, steps: [...this.steps] });
  }

  submit() {
    if (this.saving || this.steps.includes(null)) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.saving = true;
    this.show();
    this.send("saved", { assignment: this.assignment, steps: [...this.steps] });
    // Saving the same scores again stores nothing new, so a lost answer may be repeated.
    this.again = setTimeout(() => this.release(), PATIENCE);
  }

  // A notice is why the server did not save: the scores stay and may be saved again.
  say(notice) {
    this.notice.textContent = notice;
    if (notice) this.release();
  }

  release() {
    clearTimeout(this.again);
    this.saving = false;
    this.show();
  }

  leave() {
    if (this.timer !== undefined) {
      clearTimeout(this.timer);
      this.sendDraft();
    }
    clearTimeout(this.again);
  }

  show() {
    this.rows.forEach((row, i) => row.show(this.steps[i]));
    const missing = this.steps.filter((step) => step === null).length;
    this.save.disabled = this.saving || missing > 0;
    this.save.textContent = this.saving ? "Saving…" : "Save";
    this.left.textContent = missing === 0 ? "" : `${missing} still without a score`;
  }
}

class Row {
  constructor(template, text, language, i, board) {
    const element = template.cloneNode(true);
    const find = (selector) => element.querySelector(selector);
    const letter = String.fromCharCode(65 + i);
    this.element = element;
    this.board = board;
    this.i = i;
    this.track = find(".track");
    this.value = find(".value");
    find(".letter").textContent = letter;
    showText(find(".said .text"), text, language);
    this.track.setAttribute("aria-label", `Score of translation ${letter}`);
    for (let step = 0; step <= LAST; step += 1) {
      const mark = document.createElement("span");
      mark.style.left = `${(100 * step) / LAST}%`;
      if (step % 5 === 0) mark.dataset.whole = String(1 + step / 5);
      find(".marks").append(mark);
    }
    find(".less").onclick = () => this.move(-1);
    find(".more").onclick = () => this.move(1);
    this.track.onkeydown = (event) => this.key(event);
    this.listenToPointer();
  }

  listenToPointer() {
    const { track } = this;
    const stepAt = (event) => {
      const box = track.getBoundingClientRect();
      const share = (event.clientX - box.left) / box.width;
      return Math.min(LAST, Math.max(0, Math.round(share * LAST)));
    };
    track.onpointerdown = (event) => {
      if (event.button !== 0) return;
      track.setPointerCapture(event.pointerId);
      this.set(stepAt(event));
    };
    track.onpointermove = (event) => {
      if (track.hasPointerCapture(event.pointerId)) this.set(stepAt(event));
      else if (event.pointerType === "mouse") this.preview(stepAt(event));
    };
    track.onpointerleave = () => this.show(this.step);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 5, PageDown: -5 };
    if (event.key in moves) this.move(moves[event.key]);
    else if (event.key === "Home") this.set(0);
    else if (event.key === "End") this.set(LAST);
    else if (/^[1-6]$/.test(event.key)) this.set(5 * (Number(event.key) - 1));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // Without a score, a move up starts at the lowest value and a move down at the highest.
  move(by) {
    const from = this.step ?? (by > 0 ? -by : LAST - by);
    this.set(Math.min(LAST, Math.max(0, from + by)));
  }

  set(step) {
    this.board.score(this.i, step);
  }

  preview(step) {
    if (this.step !== null || this.board.saving) return;
    this.value.textContent = label(step);
    this.value.classList.add("preview");
  }

  show(step) {
    this.step = step;
    const { element, track, value } = this;
    const scored = step !== null;
    element.classList.toggle("scored", scored);
    element.style.setProperty("--at", `${(100 * (step ?? 0)) / LAST}%`);
    value.classList.remove("preview");
    value.textContent = scored ? label(step) : "–";
    track.setAttribute("aria-valuetext", scored ? label(step) : "no score yet");
    if (scored) track.setAttribute("aria-valuenow", label(step));
    else track.removeAttribute("aria-valuenow");
  }
}

function showText(element, text, language) {
  element.textContent = text;
  element.lang = language;
  element.classList.toggle("empty", text.trim() === "");
}
