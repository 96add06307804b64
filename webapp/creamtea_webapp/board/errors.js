// The marked errors of an output as a list: what each is called, how severe it is, and a button to delete it.

const UNDECIDED = "undecided"; // the severity of a mark until the rater chooses one

class ErrorList {
  // `listener` has change(index, part of the span), remove(index), choose(index) and leave().
  constructor(marking, letter, listener) {
    Object.assign(this, { marking, listener });
    this.element = newElement("ul", { className: "errors", ariaLabel: `Errors of translation ${letter}` });
    this.rows = [];
  }

  // `errors` are {span, words}; elements are kept, so that the focus stays where it is.
  show(errors, chosen, frozen) {
    while (this.rows.length > errors.length) this.rows.pop().element.remove();
    while (this.rows.length < errors.length) {
      const row = this.row(this.rows.length);
      this.rows.push(row);
      this.element.append(row.element);
    }
    this.element.hidden = errors.length === 0;
    errors.forEach(({ span, words }, n) => {
      const { element, quote, levels, category, remove } = this.rows[n];
      element.className = `error ${span.severity}`;
      element.classList.toggle("current", n === chosen);
      element.classList.toggle("proposed", span.proposed !== undefined);
      quote.textContent = words;
      for (const [level, button] of levels) {
        button.setAttribute("aria-pressed", String(span.severity === level));
        button.disabled = frozen;
      }
      if (category !== null) {
        category.value = JSON.stringify(span.category ?? []);
        category.disabled = frozen;
        category.setAttribute("aria-label", `Category of the error “${words}”`);
      }
      remove.disabled = frozen;
      remove.hidden = frozen;
      remove.setAttribute("aria-label", `Delete the error “${words}”`);
    });
  }

  row(n) {
    const { marking, listener } = this;
    const element = newElement("li");
    const quote = newButton("", () => listener.choose(n), { className: "quote", dir: "auto" });
    element.addEventListener("focusin", () => listener.choose(n));
    const group = { className: "severities", role: "group", ariaLabel: "Severity" };
    const severities = newElement("span", group);
    const levels = marking.severities.map((level) => {
      const choose = () => listener.change(n, { severity: level });
      return [level, newButton(level, choose, { className: level })];
    });
    severities.append(...levels.map(([, button]) => button));
    const category = marking.categories.length > 0 ? this.categories(n) : null;
    const remove = newButton("✕", () => listener.remove(n), { className: "remove" });
    element.append(quote, severities, ...(category === null ? [] : [category]), remove);
    return { element, quote, levels, category, remove };
  }

  // Both levels in one list, which phones show as a wheel and keyboards search by letters.
  categories(n) {
    const { marking, listener } = this;
    const select = newElement("select");
    const option = (path, text) => newElement("option", { value: JSON.stringify(path), textContent: text });
    select.append(option([], "category …"));
    select.options[0].disabled = true;
    for (const { name, kinds } of marking.categories) {
      if (kinds.length === 0) {
        select.append(option([name], name));
        continue;
      }
      const group = newElement("optgroup", { label: name });
      group.append(...kinds.map((kind) => option([name, kind], kind)));
      select.append(group);
    }
    select.onchange = () => listener.change(n, { category: JSON.parse(select.value) });
    // letters search the list; Enter and Esc go back to the text
    select.onkeydown = (event) => {
      if (event.ctrlKey || event.metaKey) return;
      event.stopPropagation();
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      listener.leave();
    };
    return select;
  }
}
