// The score of a whole document, asked for after its last segments: a scale for each text, and the segments of
// earlier pages to read again.

class Whole extends Place {
  constructor(page, { letters, draft, before }) {
    super();
    Object.assign(this, { page, active: 0, answers: draft, widget: this });
    this.separate = true;
    this.element = page.find(".whole");
    this.element.hidden = false;
    this.showBefore(before, letters);
    const [item, scale] = ["score", "slider"].map((name) => page.find(`template.${name}`).content);
    const list = this.element.querySelector(".outputs");
    list.style.setProperty("--columns", letters.length <= 4 ? letters.length : Math.ceil(letters.length / 2));
    list.classList.toggle("stacked", letters.length === 1);
    this.items = letters.map((letter) => {
      const element = item.firstElementChild.cloneNode(true);
      element.querySelector(".letter").textContent = letter;
      return element;
    });
    this.sliders = letters.map((letter, i) => {
      const made = new Slider(scale.firstElementChild, page.data.scale, letter, (step) =>
        this.answer(i, step),
      );
      const of = letter === "" ? "" : `, translation ${letter}`;
      made.track.setAttribute("aria-label", `Score of the text as a whole${of}`);
      this.items[i].append(made.element);
      for (const sign of ["focusin", "pointerdown"])
        this.items[i].addEventListener(sign, () => this.choose(i));
      return made;
    });
    list.replaceChildren(...this.items);
  }

  // Folded: the rater has read most of it on the pages before.
  showBefore(before, letters) {
    const { sourceLanguage, targetLanguage } = this.page.data;
    const [folded, count] = [this.element.querySelector(".read"), before.length];
    folded.hidden = count === 0;
    folded.querySelector("summary").textContent =
      count === 1 ? "Read the segment before this page" : `Read the ${count} segments before this page`;
    const line = (text, language, letter = "") => {
      const element = newElement("p", { dir: "auto" });
      showText(element, text, language);
      if (letter === "") return element;
      const row = newElement("div");
      row.append(newElement("span", { className: "letter", textContent: letter }), element);
      return row;
    };
    folded.querySelector("ol").replaceChildren(
      ...before.map(({ source, outputs, files }) => {
        const entry = newElement("li");
        const shown = outputs.flatMap((text, i) => [
          line(text || (files[i].length > 0 ? "" : "(empty)"), targetLanguage, letters[i]),
          ...shownFiles(files[i], () => this.page.clock.tick(), letters[i]),
        ]);
        entry.append(line(source, sourceLanguage), ...shown);
        return entry;
      }),
    );
  }

  answer(i, step) {
    if (this.page.isFixed || this.answers[i] === step) return;
    this.answers = this.answers.map((old, j) => (i === j ? step : old));
    this.page.answered(this);
  }

  show(frozen) {
    this.sliders.forEach((slider, i) => slider.show(this.answers[i], frozen));
  }

  isComplete(i) {
    return this.answers[i] !== null;
  }

  get places() {
    return [...this.answers.keys()];
  }

  key(key, i, event) {
    return this.sliders[i].keyFrom(event.composedPath()[0], key);
  }

  enter() {
    return false;
  }

  focus(i) {
    this.sliders[i]?.track.focus();
  }

  holds(target) {
    return target.closest(".track") !== null;
  }
}
