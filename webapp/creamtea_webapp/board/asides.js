// Everything around the answers: comment, skipping, working time, keys, and the answer to a practice item.

const PAUSE = 60_000; // ms without any movement that still count as work

const REASONS = [
  "I do not understand the source",
  "The source is broken or in another language",
  "The translations are not in my language",
  "I do not want to read this text",
  "Another reason",
];

class Comment {
  constructor(element, text, frozen, changed) {
    const button = element.querySelector("button");
    this.label = element.querySelector("label");
    this.field = element.querySelector("textarea");
    this.button = button;
    this.field.value = text;
    this.field.oninput = changed;
    button.onclick = () => this.write();
    element.hidden = frozen;
    this.open(text !== "");
  }

  open(is) {
    this.label.hidden = !is;
    this.button.hidden = is;
    this.button.setAttribute("aria-expanded", String(is));
  }

  write() {
    this.open(true);
    this.field.focus();
  }

  get text() {
    return this.field.value;
  }
}

class Skipping {
  constructor(dialog, thing, skip) {
    this.dialog = dialog;
    dialog.setAttribute("aria-label", `Skip this ${thing}`);
    dialog.querySelector("h2").textContent = `Why skip this ${thing}?`;
    dialog.querySelector(".note").textContent = `You will not see a skipped ${thing} again.`;
    const reasons = dialog.querySelector(".reasons");
    const words = dialog.querySelector("textarea");
    const confirm = dialog.querySelector(".skips");
    words.value = "";
    confirm.disabled = true;
    const radios = REASONS.map((reason) => {
      const label = newElement("label");
      label.append(newElement("input", { type: "radio", name: "reason", value: reason }), reason);
      return label;
    });
    reasons.replaceChildren(...radios);
    const chosen = () => dialog.querySelector("input:checked")?.value;
    // "Another reason" needs words
    const ready = () => chosen() !== undefined && (chosen() !== REASONS.at(-1) || words.value.trim() !== "");
    const check = () => (confirm.disabled = !ready());
    reasons.onchange = words.oninput = check;
    dialog.querySelector(".cancel").onclick = () => this.close();
    dialog.querySelector("form").onsubmit = (event) => {
      event.preventDefault();
      if (!ready()) return;
      this.close();
      skip([chosen(), words.value.trim()].filter(Boolean).join(": "));
    };
  }

  get isOpen() {
    return this.dialog.open;
  }

  open() {
    if (!this.dialog.open) this.dialog.showModal();
  }

  close() {
    if (this.dialog.open) this.dialog.close();
  }
}

// How long somebody worked on the item, without the time that the page lay open unused. It goes on when the
// board is built again: after the earlier items, or a reload of the page.
class Clock {
  constructor(assignment) {
    this.name = `creamtea-worked-${assignment}`;
    this.total = Number(sessionStorage.getItem(this.name)) || 0;
    this.last = performance.now();
    this.tick = () => {
      const now = performance.now();
      this.total += Math.min(now - this.last, PAUSE);
      this.last = now;
    };
    this.keep = () => sessionStorage.setItem(this.name, String(this.read()));
  }

  start() {
    for (const name of Clock.SIGNS) document.addEventListener(name, this.tick, { passive: true });
    window.addEventListener("pagehide", this.keep);
  }

  read() {
    this.tick();
    return Math.round(this.total);
  }

  stop() {
    this.keep();
    for (const name of Clock.SIGNS) document.removeEventListener(name, this.tick);
    window.removeEventListener("pagehide", this.keep);
  }
}
Clock.SIGNS = ["pointerdown", "pointermove", "keydown", "wheel", "touchmove", "visibilitychange"];

function showKeys(list, widget, shown, thing) {
  const several = shown > 1 && widget.separate;
  const choosing = [
    ["Tab, Shift+Tab", "next, previous translation"],
    [`Shift+1 … Shift+${shown}`, "that translation"],
  ];
  const rows = [
    ...widget.keys(),
    ...(several ? choosing : []),
    ...(thing === "page" ? [["J, K", "next, previous segment"]] : []),
    ["Enter", several || thing === "page" ? "the next unrated one; at the end: save" : "save"],
    ["Ctrl+Enter", "save, from anywhere"],
    ...(shown > 1 ? [["D", "show or hide differences"]] : []),
    ["N", "write a comment; Esc leaves it"],
    ["S", `skip this ${thing}`],
    ["B", "earlier items, and back"],
  ];
  list.replaceChildren(
    ...rows.flatMap(([keys, meaning]) => [
      newElement("dt", { textContent: keys }),
      newElement("dd", { textContent: meaning }),
    ]),
  );
}

// The answer to a practice item: for each output the values that were expected, and why.
function showFeedback(board, feedback) {
  const { accepted, right, marked, explanation } = feedback;
  const { labels } = board.widget;
  const all = [...right, ...marked].every(Boolean);
  const area = board.find(".feedback");
  area.hidden = false;
  area.classList.toggle("within", all);
  area.querySelector("h2").textContent = all ? "✓ As expected" : "Not quite as expected";
  const expected = board.widget.expected(accepted);
  area.querySelector(".explanation").textContent = [all ? "" : expected, explanation]
    .filter(Boolean)
    .join(" ");
  board.widget.teach(feedback);
  if (labels === null) return;
  board.items.forEach((item, i) => {
    if (!accepted[i]) return;
    const [low, high] = accepted[i].map((step) => labels[step]);
    const verdict = item.querySelector(".verdict");
    verdict.hidden = false;
    verdict.classList.toggle("within", right[i]);
    verdict.textContent = `${right[i] ? "✓" : "✗"} expected ${low === high ? low : `${low} to ${high}`}`;
  });
}
