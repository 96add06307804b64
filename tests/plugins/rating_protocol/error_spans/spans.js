// Marks the whole text as one error of a severity, and takes the fluency from a field of numbers.
WIDGETS.spans = class Spans extends Widget {
  constructor(board) {
    super(board);
    this.controls = board.items.map((_, i) => {
      const area = document.createElement("div");
      const mark = document.createElement("button");
      mark.type = "button";
      mark.textContent = "Mark a major error";
      mark.onclick = () => this.change(i, { spans: [[0, board.data.outputs[i].length, "major"]] });
      const label = document.createElement("label");
      const fluency = document.createElement("input");
      fluency.type = "number";
      fluency.oninput = () => this.change(i, { fluency: Number(fluency.value) });
      label.append("Fluency ", fluency);
      const told = document.createElement("output");
      area.append(mark, label, told);
      this.add(i, area);
      return { mark, fluency, told };
    });
  }

  change(i, part) {
    this.board.answer(i, { spans: [], ...this.board.answers[i], ...part });
  }

  isComplete(answer) {
    return "fluency" in answer;
  }

  show(answers, frozen) {
    this.controls.forEach(({ mark, fluency, told }, i) => {
      mark.disabled = fluency.disabled = frozen;
      if (answers[i]?.fluency !== undefined) fluency.value = answers[i].fluency;
      told.textContent = `${answers[i]?.spans.length ?? 0} errors`;
    });
  }

  focus(i) {
    this.controls[i].fluency.focus();
  }

  keys() {
    return [["Tab", "the next field"]];
  }
};
