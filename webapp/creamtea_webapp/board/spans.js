// Marking errors: a panel for each output (panel.js). An answer is {spans, score}, each span {start, end, severity,
// category, proposed}. Without an answer nothing is said yet; `begun` says that all marks were taken away again.

WIDGETS.spans = class MarkedErrors extends Widget {
  constructor(board) {
    super(board);
    this.labels = board.data.scale?.labels ?? null;
    this.panels = board.items.map((_, i) => new MarkingPanel(this, i));
  }

  showText(i, marked) {
    this.panels[i].text.differing = marked;
    this.panels[i].text.render();
  }

  show(_, frozen) {
    for (const panel of this.panels) panel.show(frozen);
  }

  isComplete(answer) {
    const { scored } = this.board.data.marking;
    return (
      answer.begun !== true &&
      answer.spans.every((span) => this.panels[0].isDone(span)) &&
      (!scored || Number.isInteger(answer.score))
    );
  }

  key(key, i, event) {
    const [target] = event.composedPath();
    const panel = this.panels[i];
    if (key === " " && target.closest("button, summary")) return false;
    if (target.closest(".scale")) {
      // also on its buttons: keys typed after pressing one are a value, not a severity
      if (key !== "Escape") return panel.slider.key(key);
      panel.passage.focus();
      return true;
    }
    return panel.key(key, event.shiftKey);
  }

  enter(i) {
    const panel = this.panels[i];
    if (panel.isOpen || this.isComplete(panel.answer)) return false;
    panel.focus();
    return true;
  }

  focus(i) {
    this.panels[i].focus();
  }

  // Show the expected errors, found or not, under each output and in its text.
  teach({ spans, found, marked }) {
    this.panels.forEach((panel, i) => spans[i] && panel.teach(spans[i], found[i], marked[i]));
  }

  holds(target) {
    return target.closest(".passage, .marking") !== null;
  }

  keys() {
    const { marking, help } = this.board.data;
    const levels = marking.severities;
    return [
      ["← →", "in the text: the next word; with Shift the next character"],
      ["Space", "begin a mark at the cursor, and end it"],
      [levels.map((_, n) => n + 1).join(" "), levels.join(", ")],
      ...(marking.categories.length > 0 ? [["C", "the category of the error; Enter goes back"]] : []),
      ["↑ ↓", "previous error, next error"],
      ["End", `[${MISSING}]: something is missing in the translation`],
      ...(marking.special_marks.length > 0
        ? [
            [
              "End →",
              `${marking.special_marks.map((name) => `[${name}]`).join(", ")}: → from one to the next`,
            ],
          ]
        : []),
      ["Delete", "delete the mark"],
      ["W", "mark words or characters"],
      ["E", marking.scored ? "no errors, or no more: go to the score" : "no errors"],
      ...(marking.scored
        ? [
            ["Digits", `on the scale: ${help.typing}`],
            ["← →", "on the scale: one step down or up"],
            ["PgDn PgUp", `on the scale: ${help.page}`],
            ["Esc", "from the scale back to the text"],
          ]
        : []),
    ];
  }
};
