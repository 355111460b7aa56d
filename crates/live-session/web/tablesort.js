// Sorts a table by the column whose head is clicked; numbers as numbers, biggest first.
document.addEventListener("click", (event) => {
  const head = /** @type {HTMLTableCellElement} */ (/** @type {Element} */ (event.target).closest("table.sortable th"));
  if (!head) return;
  const table = head.closest("table");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const at = heads.indexOf(head);
  const down = head.dataset.order !== "down";
  for (const other of heads) delete other.dataset.order;
  head.dataset.order = down ? "down" : "up";
  const value = (row) => {
    const text = row.cells[at] ? row.cells[at].textContent.trim() : "";
    const number = Number(text.replace(/[,%]/g, ""));
    return text !== "" && !Number.isNaN(number) ? number : text;
  };
  const compare = (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (typeof x === "number" && typeof y === "number") return x - y;
    if (typeof x === "number") return 1;
    if (typeof y === "number") return -1;
    return x < y ? 1 : x > y ? -1 : 0;
  };
  const rows = [...body.rows].sort(compare);
  if (down) rows.reverse();
  rows.forEach((row) => body.append(row));
});
