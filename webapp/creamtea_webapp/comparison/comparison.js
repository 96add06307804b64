// Draws the table and sorts it by a column on a click on its head. Texts are set by textContent only.
const sorting = new WeakMap(); // by the holding element: {column: index or -1 for the original order, up: boolean}

export default function render({ parentElement, data }) {
  const order = sorting.get(parentElement) ?? { column: -1, up: false };
  sorting.set(parentElement, order);
  parentElement.querySelector(".scroller").ariaLabel = data.label;
  const draw = () => {
    const notes = [];
    parentElement.querySelector("thead tr").replaceChildren(...heads(data, order, draw));
    parentElement
      .querySelector("tbody")
      .replaceChildren(...sorted(data.rows, order).map((row) => line(row, notes)));
    parentElement.querySelector(".notes").replaceChildren(...notes.map((note) => make("li", "", note)));
  };
  draw();
}

function heads(data, order, draw) {
  const system = make("th", "system");
  system.scope = "col";
  system.append(
    button(data.heading, "In the original order", () => {
      order.column = -1;
      draw();
    }),
  );
  return [
    system,
    ...data.columns.map((column, i) => {
      const head = make("th");
      head.scope = "col";
      if (order.column === i) head.ariaSort = order.up ? "ascending" : "descending";
      const sort = () => {
        order.up = order.column === i ? !order.up : column.better === "lower";
        order.column = i;
        draw();
      };
      head.append(button(column.title, column.note, sort));
      return head;
    }),
  ];
}

function sorted(rows, { column, up }) {
  if (column < 0) return rows;
  const value = (row) => row.cells[column].sort;
  const sign = up ? 1 : -1;
  // rows without a value stay at the end, whichever way
  return [...rows].sort((a, b) => {
    if (value(a) === null || value(b) === null) return (value(a) === null) - (value(b) === null);
    return sign * (value(a) - value(b));
  });
}

function line(row, notes) {
  const tr = make("tr", row.baseline ? "baseline" : "");
  const head = make("th", "system");
  head.scope = "row";
  head.append(make("span", "name", row.name));
  if (row.baseline) head.append(make("span", "tag", "baseline"));
  head.append(make("span", "description", row.description));
  tr.append(head, ...row.cells.map((cell) => box(cell, notes)));
  return tr;
}

function box(cell, notes) {
  const td = make("td", cell.state);
  const value = make("span", cell.best ? "value best" : "value", cell.text);
  td.append(value, ...cell.lines.map((text) => make("span", "small", text)));
  if (cell.deltas.length) {
    const [difference, ...rest] = cell.deltas;
    td.append(
      make("span", `small delta ${cell.change}`, difference),
      ...rest.map((text) => make("span", "small", text)),
    );
  }
  if (cell.note) {
    if (!notes.includes(cell.note)) notes.push(cell.note);
    value.append(make("sup", "", String(notes.indexOf(cell.note) + 1)));
  }
  return td;
}

function button(text, title, act) {
  const made = make("button", "", text);
  made.type = "button";
  made.title = title;
  made.onclick = act;
  return made;
}

function make(tag, classes = "", text = "") {
  const made = document.createElement(tag);
  if (classes) made.className = classes;
  if (text) made.textContent = text;
  return made;
}
