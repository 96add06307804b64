// One segment of the page: its source, its outputs and the widget that answers about them.
const LONG = 500; // characters

// A place on the page where the rater answers: a segment, or a document as a whole (whole.js). It is the `board`
// of its `widget` (widget.js): `data`, `items`, `texts`, `answers`, `find`, `letter`, `answer`, `answerAll`,
// `choose`.
class Place {
  // An element of the place, or one that the page has once.
  find(selector) {
    return this.element.querySelector(selector) ?? this.page.find(selector);
  }

  letter(i) {
    return this.data.letters[i] || letterOf(i);
  }

  choose(i) {
    this.active = i;
    this.page.chose(this);
    this.items.forEach((item, j) => item.classList.toggle("chosen", i === j));
  }

  leave() {
    this.element.classList.remove("current");
    for (const item of this.items) item.classList.remove("chosen");
  }

  show(frozen) {
    this.widget.show(this.answers, frozen);
  }

  isComplete(i) {
    return this.answers[i] !== null && this.widget.isComplete(this.answers[i]);
  }

  // What is to be answered on its own: each output, or all of them at once.
  get places() {
    return this.widget.separate ? [...this.answers.keys()] : [0];
  }

  answer(i, answer) {
    this.answerAll(this.answers.map((old, j) => (i === j ? answer : old)));
  }

  answerAll(answers) {
    if (this.page.isFixed || same(answers, this.answers)) return;
    this.answers = answers;
    this.page.answered(this);
  }

  focus(i) {
    if (i < this.items.length) this.widget.focus(i);
  }
}

class Segment extends Place {
  // `data` is the page's with this segment's source, context, outputs, letters and draft.
  constructor(page, data, number) {
    super();
    Object.assign(this, { page, data, number, active: 0 });
    this.element = page.find("template.segment").content.firstElementChild.cloneNode(true);
    page.find(".segments").append(this.element);
    this.answers = data.draft;
    for (const sign of ["focusin", "pointerdown"])
      this.element.addEventListener(sign, () => page.chose(this));
    this.showSource();
    this.showOutputs();
  }

  get source() {
    return this.element.querySelector(".source");
  }

  plays = () => this.page.clock.tick();

  showSource() {
    const { source, context, references, sourceLanguage, several } = this.data;
    showText(this.find(".source .text"), source, sourceLanguage);
    if (several) {
      this.find(".source .here").textContent = `Segment ${this.number}`;
      this.element.setAttribute("role", "group");
      this.element.setAttribute("aria-label", `Segment ${this.number}`);
    }
    this.find(".source .media").replaceChildren(...shownFiles(this.data.media, this.plays));
    this.showReferences(references);
    new ResizeObserver(([{ target }]) =>
      target.classList.toggle("tall", target.offsetHeight > window.innerHeight / 3),
    ).observe(this.source);
    this.find(".source .before").hidden = context.length === 0;
    this.find(".context").replaceChildren(
      ...context.map((text) => {
        const line = newElement("p", { dir: "auto" });
        showText(line, text, sourceLanguage);
        return line;
      }),
    );
  }

  showReferences(references) {
    const list = references.flatMap((text, i) => {
      const head = references.length > 1 ? `Reference ${i + 1}` : "Reference";
      const line = newElement("p", { className: "text", dir: "auto" });
      showText(line, text, this.data.targetLanguage);
      return [newElement("h2", { textContent: head }), line];
    });
    this.find(".references").replaceChildren(...list);
  }

  showOutputs() {
    const { widget, stacked, outputs, files, letters, targetLanguage } = this.data;
    const shown = outputs.length;
    const list = this.find(".outputs");
    list.classList.toggle("stacked", stacked);
    list.classList.toggle(
      "long",
      outputs.some((text) => text.length > LONG),
    );
    list.style.setProperty("--columns", shown <= 4 ? shown : Math.ceil(shown / 2));
    const template = this.find("template.output").content.firstElementChild;
    this.texts = [];
    this.items = outputs.map((text, i) => {
      const item = template.cloneNode(true);
      item.querySelector(".letter").textContent = letters[i];
      const empty = text.trim() === "";
      item.querySelector(".nothing").hidden = !empty || files[i].length > 0;
      item.querySelector(".media").replaceChildren(...shownFiles(files[i], this.plays, letters[i]));
      const element = item.querySelector(".text");
      element.classList.toggle("blank", empty);
      element.id = this.data.several ? `text-${this.number}-${i}` : `text-${i}`;
      showText(element, text, targetLanguage);
      this.texts.push(element);
      return item;
    });
    list.replaceChildren(...this.items);
    this.widget = new WIDGETS[widget](this);
    list.classList.toggle("separate", this.widget.separate);
  }

  // Texts are compared only when somebody asks.
  differences(marked) {
    const { outputs, targetLanguage } = this.data;
    const texts = marked ? compared(outputs, targetLanguage) : outputs.map(() => null);
    texts.forEach((text, i) => this.widget.showText(i, text));
  }
}
