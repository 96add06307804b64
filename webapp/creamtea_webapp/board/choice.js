// One choice between two outputs: it gives the steps of both (2 better, 1 the same, 0 worse).

WIDGETS.choice = class Choice extends Widget {
  constructor(board) {
    super(board);
    this.separate = false;
    this.choices =
      board.items.length === 2
        ? [
            { text: "A is better", steps: [2, 0], keys: ["ArrowLeft", "1"] },
            { text: "The same", steps: [1, 1], keys: ["ArrowDown", "2", "0"] },
            { text: "B is better", steps: [0, 2], keys: ["ArrowRight", "3"] },
          ]
        : [{ text: "The same", steps: [1], keys: ["ArrowDown", "2", "0"] }];
    this.buttons = this.choices.map(({ text, steps }) =>
      newButton(text, () => board.answerAll(steps), { role: "radio" }),
    );
    const area = board.find(".together");
    area.hidden = false;
    area.className = "together choice";
    area.setAttribute("role", "radiogroup");
    area.setAttribute("aria-label", "Which translation is better?");
    area.replaceChildren(...this.buttons);
  }

  key(key) {
    const at = this.choices.findIndex((choice) => choice.keys.includes(key));
    if (at < 0) return false;
    this.board.answerAll(this.choices[at].steps);
    this.buttons[at].focus({ preventScroll: true });
    return true;
  }

  focus(i) {
    this.buttons[i].focus();
  }

  show(answers, frozen) {
    const chosen = this.choices.findIndex((choice) => same(choice.steps, answers));
    this.buttons.forEach((button, i) => {
      button.setAttribute("aria-checked", String(i === chosen));
      button.tabIndex = i === Math.max(0, chosen) ? 0 : -1;
      button.disabled = frozen;
    });
  }

  keys() {
    return [["← ↓ →", "A is better, the same, B is better"]];
  }

  expected(ranges) {
    const within = ({ steps }) =>
      steps.every((step, i) => !ranges[i] || (ranges[i][0] <= step && step <= ranges[i][1]));
    const texts = this.choices.filter(within).map((choice) => choice.text);
    return `Expected: ${texts.join(", or ")}.`;
  }
};
