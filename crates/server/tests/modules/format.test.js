// Numbers, names and addresses as the pages write them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { address } from "../../web/api.js";
import { query, setOfQuery, setOfSet, to, visible } from "../../web/dom.js";
import { grouped, human, nameOf, percent, plural, sentence, setOf, titleOf } from "../../web/format.js";

test("sizes have one digit and the unit in which they are below 1024", () => {
  for (const [bytes, text] of [
    [0, "0 B"], [1023, "1023 B"], [1024, "1.0 KiB"], [1536, "1.5 KiB"],
    [1024 * 1024 - 1, "1.0 MiB"], [5 * 1024 ** 3, "5.0 GiB"], [1024 ** 6, "1024.0 PiB"],
  ]) assert.equal(human(bytes), text);
});

test("numbers are grouped, and one thing is not many", () => {
  assert.equal(grouped(1234567), "1,234,567");
  assert.equal(plural(1, "object", "objects"), "1 object");
  assert.equal(plural(1200, "object", "objects"), "1,200 objects");
});

test("a share that is there is not shown as none", () => {
  assert.equal(percent(0), "0.0 %");
  assert.equal(percent(0.0001), "<0.1 %");
  assert.equal(percent(0.1234), "12.3 %");
});

test("parameters without a value are left out of an address, others are escaped", () => {
  assert.equal(query({ a: "", b: null, c: undefined, d: false }), "");
  assert.equal(query({ filter: "a&b c", on: true }), "?filter=a%26b+c&on=1");
  assert.equal(to("objects", { set: "class:a.B" }), "#/objects?set=class%3Aa.B");
  assert.equal(new URLSearchParams(query({ set: "in:(a and b)" })).get("set"), "in:(a and b)");
  assert.match(address("leaks", { top: 3 }), /leaks.*top=3/);
});

test("characters that change how a text reads are escaped", () => {
  assert.equal(visible("a\u202Egpj.exe\u2066\u0007"), "a\\u{202e}gpj.exe\\u{2066}\\u{7}");
  assert.equal(visible("two\nlines\tü😀"), "two\nlines\tü😀");
});

test("a message begins with a capital, a name does not", () => {
  for (const [text, shown] of [
    ["no object 0x10 in this dump", "No object 0x10 in this dump."],
    ["shop.Sesion is not in this dump; did you mean shop.Session?", "shop.Sesion is not in this dump; did you mean shop.Session?"],
    ["heap:ap is not in this dump", "heap:ap is not in this dump."],
    ["by=Site: expected class", "by=Site: expected class."],
    ["cancelled", "Cancelled."],
  ]) assert.equal(sentence(text), shown);
});

test("a set of a set of several parts is put in brackets", () => {
  assert.equal(setOfSet("retained", "class:a.B"), "retained:class:a.B");
  assert.equal(setOfSet("in", "all and class:x"), "in:(all and class:x)");
});

test("brackets of a query do not end its set", () => {
  const set = setOfQuery("select f(a) from objects where n % 2", "sql");
  assert.equal(set.slice(0, 5), "sql:(");
  assert.equal(decodeURIComponent(set.slice(5, -1)), "select f(a) from objects where n % 2");
  assert.ok(!set.slice(5, -1).includes("("));
});

test("a row is the set of its group", () => {
  for (const [row, by, set, name] of [
    [{ class: "a.B", class_id: "0x10" }, "class", "class:0x10", "a.B"],
    [{ class: "a.B", class_id: "0x0" }, "class", "class:a.B", "a.B"],
    [{ class: "a.B", class_id: "0x10" }, "superclass", "sub:0x10", "a.B"],
    [{ loader: "app", object: "0x20" }, "loader", "loader:0x20", "app @ 0x20"],
    [{ package: "" }, "package", "package:", "<no package>"],
    [{ heap: "zygote" }, "heap", "heap:zygote", "zygote"],
    [{ trace: 7, frames: ["a.b", "c.d"] }, "site", "site:7", "a.b < c.d"],
  ]) assert.deepEqual([setOf(row, by), nameOf(row)], [set, name]);
  assert.equal(titleOf({ kind: "class", value: "a.B", class: "java.lang.Class" }), "class a.B");
});
