// Sorts a table of a report by a column on a click on its head; the first head brings the original order back.

export default function render() {
  document.addEventListener("click", sort);
  return () => document.removeEventListener("click", sort);
}

function sort(event) {
  const head = event.target.closest(".ct .table thead button")?.parentElement;
  if (!head) return;
  const body = head.closest("table").tBodies[0];
  const rows = [...body.rows];
  rows.forEach((row, place) => {
    row.dataset.place ??= place;
  });
  const was = head.ariaSort;
  for (const other of head.parentElement.cells) other.ariaSort = null;
  if (head.cellIndex === 0) {
    rows.sort((a, b) => a.dataset.place - b.dataset.place);
  } else {
    const up = was ? was === "descending" : head.dataset.better === "lower";
    head.ariaSort = up ? "ascending" : "descending";
    const value = (row) => row.cells[head.cellIndex].dataset.value;
    // rows without a value stay at the end in either direction
    rows.sort((a, b) => {
      if (!value(a) || !value(b)) return !value(a) - !value(b);
      return (up ? 1 : -1) * (value(a) - value(b));
    });
  }
  body.append(...rows);
}
