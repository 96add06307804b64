// Draws the table, sorts it by a column on a click on its head, and shows its groups of columns as chosen. Texts
// are set by textContent only.

// By the holding element, so that a new run of the page changes no choice. order: {column: index or -1 for the
// original order, up: boolean}, of the columns with these titles; shown: by a group's title.
const states = new WeakMap();

export default function render({ parentElement, data }) {
  const state = states.get(parentElement) ?? { shown: new Map() };
  states.set(parentElement, state);
  const titles = JSON.stringify(data.columns.map((column) => column.title));
  if (titles !== state.titles) Object.assign(state, { titles, order: { column: -1, up: false } });
  for (const group of data.groups) {
    if (!state.shown.has(group.title)) state.shown.set(group.title, group.shown);
  }
  const scroller = parentElement.querySelector(".scroller");
  scroller.ariaLabel = data.label;
  const draw = () => {
    const columns = data.columns
      .map((column, index) => ({ ...column, index }))
      .filter((column) => column.group < 0 || state.shown.get(data.groups[column.group].title));
    const notes = [];
    parentElement.querySelector("thead tr").replaceChildren(...heads(data, columns, state.order, draw));
    parentElement
      .querySelector("tbody")
      .replaceChildren(...sorted(data.rows, state.order).map((row) => line(row, columns, notes)));
    parentElement.querySelector(".notes").replaceChildren(...notes.map((note) => make("li", "", note)));
    hint();
  };
  const hint = () => {
    const rest = scroller.scrollWidth - scroller.clientWidth - scroller.scrollLeft;
    parentElement.querySelector(".more").hidden = rest <= 1;
    scroller.classList.toggle("cut", rest > 1);
  };
  scroller.onscroll = hint;
  state.watcher?.disconnect();
  state.watcher = new ResizeObserver(hint);
  state.watcher.observe(scroller);
  choices(parentElement.querySelector(".choose"), data.groups, state.shown, draw);
  draw();
  return () => state.watcher.disconnect();
}

// A button for each group; of alternatives at most one is shown.
function choices(place, groups, shown, draw) {
  place.hidden = groups.length === 0;
  const buttons = groups.map((group) => {
    const made = button(group.title, group.oneOf ? `${group.oneOf}: one at a time` : "", () => {
      const next = !shown.get(group.title);
      for (const other of groups) {
        if (next && group.oneOf && other.oneOf === group.oneOf) shown.set(other.title, false);
      }
      shown.set(group.title, next);
      press();
      draw();
    });
    return made;
  });
  const press = () => {
    buttons.forEach((made, i) => {
      made.ariaPressed = String(shown.get(groups[i].title));
    });
  };
  press();
  place.replaceChildren(make("span", "label", "Columns"), ...buttons);
}

function heads(data, columns, order, draw) {
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
    ...columns.map((column) => {
      const head = make("th");
      head.scope = "col";
      if (order.column === column.index) head.ariaSort = order.up ? "ascending" : "descending";
      const sort = () => {
        order.up = order.column === column.index ? !order.up : column.better === "lower";
        order.column = column.index;
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

function line(row, columns, notes) {
  const tr = make("tr", row.baseline ? "baseline" : "");
  const head = make("th", "system");
  head.scope = "row";
  head.append(make("span", "name", row.name));
  if (row.baseline) head.append(make("span", "tag", "baseline"));
  head.append(make("span", "description", row.description));
  tr.append(head, ...columns.map((column) => box(row.cells[column.index], notes)));
  return tr;
}

function box(cell, notes) {
  const td = make("td", cell.words ? `words ${cell.state}` : cell.state);
  const value = make("span", cell.best ? "value best" : "value", cell.text);
  refer(value, cell.note, notes);
  td.append(value, ...cell.lines.map((text) => make("span", "small", text)));
  if (cell.deltas.length) {
    const [first, ...rest] = cell.deltas;
    const difference = make("span", `small delta ${cell.change}`, first);
    refer(difference, cell.deltaNote, notes);
    td.append(difference, ...rest.map((text) => make("span", "small", text)));
  }
  return td;
}

// Put the number of a note after what it is about; equal notes have one number.
function refer(element, note, notes) {
  if (!note) return;
  if (!notes.includes(note)) notes.push(note);
  element.append(make("sup", "", String(notes.indexOf(note) + 1)));
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
