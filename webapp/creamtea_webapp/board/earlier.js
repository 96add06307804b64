// The list of saved items, newest first. texts.js comes before this file in the one module.
export default function render({ parentElement, data, setTriggerValue }) {
  const find = (selector) => parentElement.querySelector(selector);
  const act = (kind, assignment) => setTriggerValue("act", { kind, assignment });
  const items = data.items.map(({ assignment_id, number, items, source, given, revision }) => {
    const item = newElement("li");
    const button = newButton("", () => act("again", assignment_id));
    const [place, text, changed] = ["number", "text", "changed"].map((className) =>
      newElement("span", { className }),
    );
    place.textContent = items > 1 ? `${number}–${number + items - 1}` : String(number);
    text.dir = "auto";
    showText(text, source, data.language);
    changed.textContent = revision > 1 ? `${given}, changed` : given;
    button.append(place, text, changed);
    item.append(button);
    return item;
  });
  find("ol").replaceChildren(...items);
  find(".none").hidden = items.length > 0;
  find(".close").onclick = () => act("current");
  const buttons = [...parentElement.querySelectorAll("button")]; // the first one closes
  const onKey = (event) => {
    const inside = event.composedPath().includes(find(".earlier"));
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!inside && event.composedPath()[0] !== document.body) return;
    const at = buttons.indexOf(event.composedPath()[0]);
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in moves) buttons[Math.min(buttons.length - 1, Math.max(0, at + moves[event.key]))].focus();
    else if (event.key === "Escape" || event.key.toLowerCase() === "b") act("current");
    else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", onKey);
  focusIfFree(buttons[1] ?? buttons[0]);
  return () => document.removeEventListener("keydown", onKey);
}
