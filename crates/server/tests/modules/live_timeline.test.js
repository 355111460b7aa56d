import assert from "node:assert/strict";
import { test } from "node:test";
import { Timeline } from "../../web/live_timeline.js";

/** A timeline that was loaded, with one metric that had a value from the start. */
function loaded() {
  const timeline = new Timeline();
  timeline.metrics = [{ name: "resident_bytes" }, { name: "old_bytes" }];
  timeline.rows = [[1, 10, null]];
  timeline.note(timeline.rows);
  return timeline;
}

test("a metric is known from its first value on", async () => {
  const timeline = loaded();
  assert.deepEqual([...timeline.present], ["resident_bytes"]);
  await timeline.take({ rows: [[1, 10, null], [2, 10, null]], last_event: null });
  assert.equal(timeline.known("old_bytes"), false);
  await timeline.take({ rows: [[2, 10, null], [3, 10, 0]], last_event: null });
  assert.equal(timeline.known("old_bytes"), true);
  assert.equal(timeline.known("no_such_bytes"), false);
  assert.equal(timeline.rows.length, 3);
});
