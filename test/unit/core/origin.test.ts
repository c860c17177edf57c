import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { keptRoles, originProblem } from "../../../src/core/origin.ts";

describe("keptRoles()", () => {
  test.each([
    ["all of a short list", "reader,writer", "reader,writer"],
    ["all of 512 characters", `${"a".repeat(511)},`, `${"a".repeat(511)},`],
    ["what stands before a comma right behind them", `${"a".repeat(512)},b`, "a".repeat(512)],
    ["whole roles only", `reader,${"b".repeat(600)}`, "reader"],
    ["nothing of a role that is too long", "b".repeat(513), ""],
    ["nothing before a comma that begins the list", `,${"b".repeat(600)}`, ""],
    ["as many of two units each", `${"😀".repeat(512)},b`, "😀".repeat(512)],
  ])("keeps %s", (_, roles, kept) => {
    expect(keptRoles(roles)).toBe(kept);
  });

  test("never makes a role that was not in the list, and keeps as many as fit", () => {
    const role = fc.stringMatching(/^[a-z]{1,200}$/);
    fc.assert(
      fc.property(fc.array(role, { minLength: 1, maxLength: 30 }), (roles) => {
        const kept = keptRoles(roles.join(",")).split(",");
        expect(kept).toEqual(roles.slice(0, kept.length));
        expect(kept.join(",").length).toBeLessThanOrEqual(512);
        if (kept.length < roles.length) expect(roles.slice(0, kept.length + 1).join(",").length).toBeGreaterThan(512);
      }),
    );
  });
});

test("originProblem() says what is wrong in words that follow a field's or a variable's name", () => {
  expect(originProblem("tenant_id", "t")).toBeNull();
  expect(originProblem("tenant_id", "x".repeat(65))).toBe("has 65 characters; the limit is 64");
  expect(originProblem("user_roles", "a,".repeat(9_999))).toBeNull();
  expect(originProblem("user_roles", "x".repeat(513))).toBe("begins with a role of more than 512 characters");
});
