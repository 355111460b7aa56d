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

/** A server with rows from the first second on: a request of the whole time gets one of each minute. */
function served(seconds) {
  const all = Array.from({ length: seconds }, (_, n) => [1000 * n, 10, n]);
  globalThis.fetch = async (address) => {
    const from = Number(new URL(address, "http://x/").searchParams.get("from") || 0);
    const rows = from ? all.filter((row) => row[0] >= from) : all.filter((row) => row[2] % 60 === 59);
    return { ok: true, status: 200, json: async () => ({ metrics: [{ name: "resident_bytes" }, { name: "old_bytes" }], rows, events: [] }) };
  };
  return all;
}

test("the last minutes are there as they were measured, and what is older in part", async () => {
  const all = served(7200);
  const timeline = loaded();
  await timeline.load();
  const times = timeline.rows.map((row) => row[0]);
  assert.deepEqual(times.slice(-600), all.slice(-600).map((row) => row[0]));
  assert.equal(times[0], 59000);
  assert.deepEqual(times, [...times].sort((a, b) => a - b));
  assert.equal(new Set(times).size, times.length);
});

test("a page that is open for long keeps the oldest rows", async () => {
  const all = served(30000);
  const timeline = loaded();
  await timeline.load();
  const first = timeline.rows[0][0];
  timeline.rows = all.slice(0, 20001);
  await timeline.take({ rows: all.slice(20000, 20016), last_event: null });
  assert.equal(timeline.rows[0][0], first);
  assert.ok(timeline.rows.length < 2000);
});
