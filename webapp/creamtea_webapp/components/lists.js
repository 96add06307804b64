// Sorts and filters the rows of the table with the id `data.table`, which the page draws as HTML. On a phone the
// table has no heads: a field chooses the column.

// By the holding element, so that a new run of the page changes no choice. column: -1 for the original order.
const states = new WeakMap();

export default function render({ parentElement, data }) {
  const find = (selector) => parentElement.querySelector(selector);
  const state = states.get(parentElement) ?? { column: -1, up: true, table: null, rows: [] };
  states.set(parentElement, state);
  const apply = () => {
    const { rows, table } = state;
    if (table === null) return;
    const words = find("input").value.toLowerCase().split(/\s+/);
    const kept = rows.filter((row) => words.every((word) => row.textContent.toLowerCase().includes(word)));
    const shown = new Set(kept);
    for (const row of rows) row.hidden = !shown.has(row);
    table.tBodies[0].append(...sorted(rows, state));
    find(".count").textContent = kept.length === rows.length ? "" : `${kept.length} of ${rows.length}`;
    find("select").value = state.column < 0 ? "" : String(state.column);
    for (const [index, head] of [...table.tHead.rows[0].cells].entries()) {
      head.ariaSort = index !== state.column ? null : state.up ? "ascending" : "descending";
    }
  };
  const sortBy = (column) => {
    // numbers from the highest down first, text from A to Z
    const first = column < 0 || !state.rows.some((row) => typeof key(row.cells[column]) === "number");
    Object.assign(state, { column, up: column === state.column ? !state.up : first });
    apply();
  };
  // Streamlit draws the table anew when its text changes.
  const look = () => {
    const table = document.getElementById(data.table);
    if (table === null || table === state.table) return;
    Object.assign(state, { table, rows: [...table.tBodies[0].rows] });
    const options = [];
    for (const [index, head] of [...table.tHead.rows[0].cells].entries()) {
      if (!head.textContent) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.onclick = () => sortBy(index);
      head.replaceChildren(button);
      options.push(new Option(button.textContent, String(index)));
    }
    find("select").replaceChildren(new Option("original order", ""), ...options);
    apply();
  };
  find("input").oninput = apply;
  find("select").onchange = ({ target }) => sortBy(target.value === "" ? -1 : Number(target.value));
  state.watcher?.disconnect();
  state.watcher = new MutationObserver(look);
  state.watcher.observe(document.body, { childList: true, subtree: true });
  look();
  return () => state.watcher.disconnect();
}

function sorted(rows, { column, up }) {
  if (column < 0) return rows;
  const sign = up ? 1 : -1;
  const keyed = rows.map((row) => [key(row.cells[column]), row]);
  // cells without a value come last in either direction
  keyed.sort(([a], [b]) => (a === "") - (b === "") || sign * compared(a, b));
  return keyed.map(([, row]) => row);
}

function compared(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}

// A number, if the cell begins with one and is not a date.
function key(cell) {
  const { sort } = cell.dataset;
  if (sort && !Number.isNaN(Number(sort))) return Number(sort);
  const text = sort ?? cell.textContent.trim();
  const number = /^[-−]?[\d,]*\.?\d+(?=$| |%)/.exec(text);
  return number ? Number(number[0].replaceAll(",", "").replace("−", "-")) : text;
}
