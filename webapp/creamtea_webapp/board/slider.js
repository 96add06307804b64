// A scale under each output. An answer is a whole step of the protocol's scale, whose labels come with the
// data; null is "no score yet", and nothing is set beforehand. If the campaign asks for further scales, each
// output has a slider for each of them, too, and an answer is {score, scales: {name: step}}.

const SLACK = 8; // px that a finger moves before it drags or scrolls
const SCROLLING = ["ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"];
const TYPED_TOGETHER = 1500; // ms between the characters of one typed value

class Slider {
  // `scale` is {labels, marks, points, page}; `set(step)` gets the rater's choice. A name is shown.
  constructor(template, scale, letter, set, name = "") {
    this.element = template.cloneNode(true);
    const find = (selector) => this.element.querySelector(selector);
    this.scale = scale;
    this.last = scale.labels.length - 1;
    this.set = set;
    this.step = null;
    this.typed = "";
    this.track = find(".track");
    this.value = find(".value");
    this.track.setAttribute("aria-label", `${name || "Score"} of translation ${letter}`);
    find(".name").textContent = name;
    this.element.classList.toggle("named", name !== "");
    this.track.setAttribute("aria-valuemin", scale.labels[0]);
    this.track.setAttribute("aria-valuemax", scale.labels[this.last]);
    const between = this.last <= 30 ? scale.labels.keys() : scale.marks; // 101 would be a grey line
    find(".marks").append(...[...between].map((step) => this.mark(step)));
    find(".points").hidden = scale.points.length === 0;
    find(".points").append(...scale.points.map((point) => this.point(point)));
    find(".less").onclick = () => this.move(-1);
    find(".more").onclick = () => this.move(1);
    this.listenToPointer();
  }

  mark(step) {
    const mark = newElement("span");
    mark.style.left = `${(100 * step) / this.last}%`;
    if (this.scale.marks.includes(step)) mark.dataset.whole = this.scale.labels[step].replace(/\.0$/, "");
    return mark;
  }

  // A labelled point of the scale, which can be pressed.
  point([step, text]) {
    const item = newElement("li");
    item.append(newButton(`${this.scale.labels[step]}: ${text}`, () => this.set(step), { tabIndex: -1 }));
    return item;
  }

  listenToPointer() {
    const { track } = this;
    const stepAt = (event) => {
      const box = track.getBoundingClientRect();
      const share = (event.clientX - box.left) / box.width;
      return Math.min(this.last, Math.max(0, Math.round(share * this.last)));
    };
    // A finger sets a value by a tap or by moving sideways, but not by scrolling the page over a track.
    let start = null; // where a finger came down, and whether it drags
    track.onpointerdown = (event) => {
      if (event.button !== 0) return;
      track.setPointerCapture(event.pointerId);
      track.focus({ preventScroll: true });
      start = event.pointerType === "touch" ? { x: event.clientX, y: event.clientY, drags: false } : null;
      if (start === null) this.set(stepAt(event));
    };
    track.onpointermove = (event) => {
      if (!track.hasPointerCapture(event.pointerId)) {
        if (event.pointerType === "mouse") this.preview(stepAt(event));
        return;
      }
      if (start !== null) {
        const [across, along] = [Math.abs(event.clientX - start.x), Math.abs(event.clientY - start.y)];
        start.drags ||= across > SLACK && across > along;
        start.scrolls ||= !start.drags && along > SLACK;
      }
      if (start === null || start.drags) this.set(stepAt(event));
    };
    track.onpointerup = (event) => {
      if (start !== null && !start.scrolls) this.set(stepAt(event));
      start = null;
    };
    track.onpointercancel = () => (start = null);
    track.onpointerleave = () => this.show(this.step, this.frozen);
  }

  // The same for a key pressed elsewhere on the page; there, a key that scrolls the page sets no first value.
  keyFrom(target, key) {
    const scrolls = this.step === null && target.closest(".track") === null && SCROLLING.includes(key);
    return !scrolls && this.key(key);
  }

  // Returns whether the key was for this scale.
  key(key) {
    const { page } = this.scale;
    const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: page, PageDown: -page };
    if (key in moves) this.move(moves[key]);
    else if (key === "Home") this.set(0);
    else if (key === "End") this.set(this.last);
    else if (/^[0-9.,]$/.test(key)) this.type(key === "," ? "." : key);
    else return false;
    return true;
  }

  // "4" is 4.0, and with ".", "6" after it 4.6; "7" and "5" are 75. A character that continues no value begins one.
  type(character) {
    const stepOf = (text) => {
      const exact = this.scale.labels.indexOf(text);
      return exact >= 0 ? exact : this.scale.labels.indexOf(`${text}.0`);
    };
    const begins = (text) => this.scale.labels.some((label) => label.startsWith(text));
    const now = performance.now();
    const recent = now - (this.typedAt ?? -Infinity) < TYPED_TOGETHER ? this.typed : "";
    this.typedAt = now;
    if (begins(recent + character)) this.typed = recent + character;
    else if (recent.endsWith("."))
      return; // 4.5 is not on the scale from 1 by 0.2
    else this.typed = character;
    const step = stepOf(this.typed);
    if (step >= 0) this.set(step);
  }

  // Without a score, a move up starts at the lowest value and a move down at the highest.
  move(by) {
    if (this.step === null) this.set(by > 0 ? 0 : this.last);
    else this.set(Math.min(this.last, Math.max(0, this.step + by)));
  }

  preview(step) {
    if (this.step !== null || this.frozen) return;
    this.value.textContent = this.scale.labels[step];
    this.value.classList.add("preview");
  }

  show(step, frozen) {
    this.step = step;
    this.frozen = frozen;
    const { element, track, value } = this;
    const label = step === null ? null : this.scale.labels[step];
    element.classList.toggle("scored", label !== null);
    element.style.setProperty("--at", `${(100 * (step ?? 0)) / this.last}%`);
    value.classList.remove("preview");
    value.textContent = label ?? "–";
    track.setAttribute("aria-valuetext", label ?? "no score yet");
    track.setAttribute("aria-disabled", String(frozen));
    track.ariaValueNow = label; // null: no attribute
  }
}

WIDGETS.slider = class Sliders extends Widget {
  constructor(board) {
    super(board);
    const { scale, scales = [] } = board.data;
    const template = board.find("template.slider").content.firstElementChild;
    this.labels = scale.labels;
    this.scales = scales;
    const names = scales.length > 0 ? ["Overall", ...scales] : [""];
    this.sliders = board.items.map((_, i) => {
      const made = names.map((name, n) => {
        const points = n === 0 ? scale.points : []; // these describe values of the score only
        const set = (step) => board.answer(i, this.withStep(board.answers[i], n, step));
        const slider = new Slider(template, { ...scale, points }, board.letter(i), set, name);
        slider.track.setAttribute("aria-describedby", board.texts[i].id);
        return slider;
      });
      for (const slider of [...made].reverse()) this.add(i, slider.element);
      return made;
    });
  }

  // The answer with another step on scale n; scale 0 is the score.
  withStep(answer, n, step) {
    if (this.scales.length === 0) return step;
    const { scales = {}, ...score } = answer ?? {};
    return n === 0
      ? { scales, score: step }
      : { ...score, scales: { ...scales, [this.scales[n - 1]]: step } };
  }

  // The steps of an answer, the score first; null for a missing step.
  steps(answer) {
    if (this.scales.length === 0) return [answer];
    return [answer?.score ?? null, ...this.scales.map((name) => answer?.scales?.[name] ?? null)];
  }

  show(answers, frozen) {
    this.sliders.forEach((sliders, i) => {
      const steps = this.steps(answers[i]);
      sliders.forEach((slider, n) => slider.show(steps[n], frozen));
    });
  }

  isComplete(answer) {
    return !this.steps(answer).includes(null);
  }

  // The slider that has the focus, or else the score's.
  at(i, target) {
    return this.sliders[i].find(({ element }) => element.contains(target)) ?? this.sliders[i][0];
  }

  key(key, i, event) {
    const [target] = event.composedPath();
    return this.at(i, target).keyFrom(target, key);
  }

  // Go from a scale of a begun answer to the next scale without a value.
  enter(i) {
    const open = this.sliders[i].find(({ step }) => step === null);
    if (this.board.answers[i] === null || open === undefined) return false;
    open.track.focus();
    return true;
  }

  focus(i) {
    this.sliders[i][0].track.focus();
  }

  holds(target) {
    return target.closest(".track") !== null;
  }

  keys() {
    const { help } = this.board.data;
    return [
      ["Digits", help.typing],
      ["← →", "one step down or up"],
      ["PgDn PgUp", help.page],
      ["Home End", "lowest, highest score"],
      ...(this.scales.length > 0 ? [["Enter", "the next scale without a value"]] : []),
    ];
  }
};
