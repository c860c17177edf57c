import { expect, test } from "bun:test";
import { parseRef } from "../../../src/core/dispatch.ts";

const ID = "0123456789abcdef0123456789abcdef";

test.each([
  [ID, { id: ID }],
  ["1".repeat(32), { id: "1".repeat(32) }],
  ["417", { seq: 417 }],
  ["0", { seq: 0 }],
  ["007", { seq: 7 }],
  ["9".repeat(15), { seq: 999_999_999_999_999 }],
])("parseRef() reads %p", (text, ref) => expect(parseRef(text)).toEqual(ref));

test.each([
  "",
  " 1",
  "1 ",
  "-1",
  "+1",
  "1.0",
  "1e3",
  "0x10",
  "9".repeat(16),
  ID.slice(1),
  `${ID}0`,
  ID.toUpperCase(),
  ID.slice(-8),
  "#417",
  "١",
])("parseRef() finds no ID in %p", (text) => expect(parseRef(text)).toBeNull());
