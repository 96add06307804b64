// Post-editing: a field with each output to correct. An answer is {text}; null until the rater changed it or
// said that nothing is to be changed.

WIDGETS.edit = class Edit extends Widget {
  writes = true;

  constructor(board) {
    super(board);
    const template = board.find("template.edit").content.firstElementChild;
    this.fields = board.items.map((_, i) => {
      const element = template.cloneNode(true);
      const area = element.querySelector("textarea");
      const [fine, undo] = ["fine", "undo"].map((name) => element.querySelector(`.${name}`));
      area.lang = locale(board.data.targetLanguage);
      area.maxLength = Math.max(area.maxLength, board.data.outputs[i].length); // a long output may be right
      area.oninput = () => board.answer(i, { text: area.value });
      fine.onclick = () => board.answer(i, { text: board.data.outputs[i] });
      undo.onclick = () => {
        board.answer(i, null);
        area.focus();
      };
      this.add(i, element);
      return { area, fine, undo };
    });
  }

  show(answers, frozen) {
    this.fields.forEach(({ area, fine, undo }, i) => {
      const output = this.board.data.outputs[i];
      const text = answers[i]?.text ?? output;
      if (area.value !== text) area.value = text; // setting the same text would move the cursor
      area.readOnly = frozen;
      fine.disabled = frozen || text !== output;
      fine.setAttribute("aria-pressed", String(answers[i] !== null && text === output));
      undo.disabled = frozen || answers[i] === null;
    });
  }

  isComplete({ text }) {
    return text.trim() !== "" || this.board.data.outputs.every((output) => output.trim() === "");
  }

  key(key, i) {
    if (key.toLowerCase() === "e") this.focus(i);
    else if (key === "=" && !this.fields[i].fine.disabled) this.fields[i].fine.click();
    else return false;
    return true;
  }

  focus(i) {
    this.fields[i].area.focus();
  }

  holds(target) {
    return target.closest(".edit") !== null;
  }

  keys() {
    return [
      ["E", "write in the translation; Esc leaves it"],
      ["=", "nothing to change"],
    ];
  }
};
