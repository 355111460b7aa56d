import assert from "node:assert/strict";
import { test } from "node:test";
import { described, sortedHere, valueOf } from "../../web/columns.js";

const column = (name, kind, more = {}) => ({ name, kind, title: name.toUpperCase(), sorted: true, help: "", of: null, ...more });

test("a column that these modules have never heard of is shown as its kind says", () => {
  const answer = {
    columns: [column("class", "name"), column("live", "count"), column("age.mean", "mean"), column("loader", "detail", { sorted: false })],
    rows: [{ class: "a.B", live: 1234567, age: { mean: 2.25 }, loader: "app" }],
  };
  const shown = described(answer, (row) => row.class);
  assert.deepEqual(shown.map((c) => [c.title, c.sort]), [["CLASS", "name"], ["LIVE", "live"], ["AGE.MEAN", "age.mean"]]);
  assert.deepEqual(shown.map((c) => [c.cell(answer.rows[0])].flat()[0]), ["a.B", "1,234,567", "2.3"]);
});

test("a column without values is left out, and a field of an object that is not there has none", () => {
  const answer = { columns: [column("class", "name"), column("size.sum", "count"), column("live", "count")], rows: [{ class: "a.B", size: null, live: 0 }] };
  assert.equal(valueOf(answer.rows[0], "size.sum"), null);
  assert.deepEqual(described(answer, (row) => row.class).map((c) => c.title), ["CLASS", "LIVE"]);
});

test("rows that are all here are sorted by the values of columns, the first one under its own name", () => {
  const answer = { columns: [column("class", "name"), column("size.sum", "count")], rows: [{ class: "a.B", size: { sum: 3 } }] };
  const keys = sortedHere(described(answer, (row) => row.class), answer).map((c) => c.sort(answer.rows[0]));
  assert.deepEqual(keys, ["a.B", 3]);
});
