// How answers are given: a widget for each way, by the name that a protocol's page data has. A plug-in's
// script adds its own with `WIDGETS.name = class extends Widget {…}`.

const WIDGETS = {};

const letterOf = (i) => String.fromCharCode(65 + i);

// Whether two JSON values are equal. A database may hand the keys of an object back in another order.
function same(answer, other) {
  if (answer === null || other === null || typeof answer !== "object" || typeof other !== "object") {
    return answer === other;
  }
  const keys = Object.keys(answer);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => key in other && same(answer[key], other[key]))
  );
}

// The interface of widgets; each segment of a page has its own widget. An answer is any JSON value but null,
// which is "none yet". The widget reports it with board.answer(i, answer), or with board.answerAll(answers) if
// one act gives all answers.
class Widget {
  // `board` is the segment: `board.data` is what the server sent of it, `board.items` are the elements of the
  // outputs, `board.letter(i)` is what output i is called.
  constructor(board) {
    this.board = board;
    this.separate = true; // each output has an answer of its own
    this.labels = null; // labels of the steps, to show a practice item's answer; null: `expected` shows it
  }

  // Put an element under the text of output i; using it chooses the output.
  add(i, element) {
    const item = this.board.items[i];
    for (const sign of ["focusin", "pointerdown"]) item.addEventListener(sign, () => this.board.choose(i));
    item.querySelector(".said").after(element);
  }

  // Show the text of output i; `marked` has its pieces with how they differ from the others', or is null.
  showText(i, marked) {
    const element = this.board.texts[i];
    if (marked === null) element.textContent = this.board.data.outputs[i];
    else showMarked(element, marked);
  }

  // Show these answers; frozen ones cannot be changed.
  show() {
    throw new Error("a widget shows its answers");
  }

  // Whether answer i, which is not null, is complete.
  isComplete() {
    return true;
  }

  // Returns whether a plain key (of this event) was for the control of output i.
  key() {
    return false;
  }

  // Returns whether Enter was for output i: to complete its answer before going to the next output.
  enter() {
    return false;
  }

  // Whether the control of an output is a field, in which letters are text.
  writes = false;

  // Set the focus on the control of output i.
  focus() {}

  // Whether the focused element already is a control.
  holds() {
    return false;
  }

  // [keys, what they do] for the list of keys.
  keys() {
    return [];
  }

  // Show what a practice item expected, beyond scores.
  teach() {}

  // What a practice item accepts, in words; `ranges` has the lowest and the highest step of each output.
  expected() {
    return "";
  }
}
