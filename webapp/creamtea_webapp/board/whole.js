// The score of a whole document, asked for after its last segments: a scale for each text, and the segments of
// earlier pages to read again.

class Whole extends Place {
  constructor(page, { letters, draft, before }) {
    super();
    const { scale, help } = page.data;
    Object.assign(this, { page, active: 0, answers: draft, data: { scale, help, letters } });
    this.element = page.find(".whole");
    this.element.hidden = false;
    this.showBefore(before, letters);
    const item = page.find("template.score").content.firstElementChild;
    const list = this.element.querySelector(".outputs");
    list.style.setProperty("--columns", letters.length <= 4 ? letters.length : Math.ceil(letters.length / 2));
    list.classList.toggle("stacked", letters.length === 1);
    this.items = this.texts = letters.map((letter) => {
      const element = item.cloneNode(true);
      element.querySelector(".letter").textContent = letter;
      return element;
    });
    this.widget = new WIDGETS.slider(this);
    this.widget.sliders.forEach(([{ track }], i) => {
      const of = letters[i] === "" ? "" : `, translation ${letters[i]}`;
      track.setAttribute("aria-label", `Score of the text as a whole${of}`);
      track.removeAttribute("aria-describedby");
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
}
