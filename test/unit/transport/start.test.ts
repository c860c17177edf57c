import { describe, expect, test } from "bun:test";
import { notStarted } from "../../../src/transport/start.ts";

describe("notStarted()", () => {
  test.each([
    ["ENOENT", "fault"],
    ["ENOTDIR", "fault"],
    ["ENOEXEC", "fault"],
    ["EACCES", "fault"],
    ["EPERM", "fault"],
    ["ETXTBSY", "fault"],
    ["ELOOP", "fault"],
    ["ENAMETOOLONG", "fault"],
    ["EISDIR", "fault"],
    ["E2BIG", "rejected"],
    ["EMFILE", "released"],
    ["ENFILE", "released"],
    ["EAGAIN", "released"],
    ["ENOMEM", "released"],
    ["EWHATEVER", "rejected"],
  ])("takes %s for %s", (code, kind) => {
    const outcome = notStarted(Object.assign(new Error(`${code}: text`), { code }), "/bin/tool");
    expect<string>(outcome.kind).toBe(kind);
    expect("error" in outcome && outcome.error).toContain(code);
    expect("exhausted" in outcome && outcome.exhausted).toBe(kind === "released");
  });
  test("words an error that is none of the system's", () => {
    expect(notStarted(new TypeError("odd"), "/bin/tool")).toEqual({
      kind: "rejected",
      report: null,
      error: "/bin/tool cannot be started: odd",
    });
  });
});
