import { describe, expect, test } from "bun:test";
import { OutboxError } from "../../../src/core/errors.ts";
import { checkRequest, DEFAULT_LIMITS, type EnqueueRequest, type RequestLimits } from "../../../src/core/request.ts";
import { MAX_TIME } from "../../../src/core/time.ts";

const LEAST: EnqueueRequest = { kind: "ping", deliver_to: "seat-1" };

/** What is said against the request. As JavaScript or a batch line would pass it: any field may hold anything. */
function refusal(fields: Readonly<Record<string, unknown>>, limits?: RequestLimits, bodyText?: string): string {
  try {
    checkRequest({ ...LEAST, ...fields }, limits, bodyText);
  } catch (error) {
    if (error instanceof OutboxError && error.kind === "data") return error.hint === "" ? error.message : `${error.message}; ${error.hint}`;
    throw error;
  }
  return "accepted";
}

describe("checkRequest()", () => {
  test("fills in what is not asked for", () => {
    expect(checkRequest(LEAST)).toEqual({
      kind: "ping",
      deliver_to: "seat-1",
      body: "{}",
      dedup_key: null,
      ordering_key: null,
      ack_required: false,
      max_attempts: 8,
      expires_at: null,
      not_before: null,
      session_id: null,
      schedule_run_id: null,
      emitter_role: null,
      tenant_id: null,
      user_id: null,
      user_roles: null,
      correlation_id: null,
      asked: new Set(["kind", "deliver_to"]),
    });
  });

  test("keeps what is asked for, and remembers what that was", () => {
    const request = {
      kind: "k",
      deliver_to: "d",
      body: { a: 1 },
      dedup_key: "x",
      ordering_key: "o",
      ack_required: true,
      max_attempts: 1,
      expires_at: 20.5,
      not_before: 10,
      session_id: "s",
      schedule_run_id: "r",
      emitter_role: "e",
      tenant_id: "t",
      user_id: "u",
      user_roles: "a,b",
      correlation_id: "c",
    };
    expect(checkRequest(request)).toEqual({ ...request, body: '{"a":1}', asked: new Set(Object.keys(request)) });
  });

  test("null and undefined are not asked for", () => {
    const nothing = { body: null, dedup_key: null, ack_required: undefined, max_attempts: null, expires_at: undefined, not_before: null };
    expect(checkRequest({ ...LEAST, ...nothing })).toEqual(checkRequest(LEAST));
  });

  test("takes the number of attempts from the settings where none is asked for", () => {
    expect(checkRequest(LEAST, { ...DEFAULT_LIMITS, maxAttempts: 149 }).max_attempts).toBe(149);
    expect(checkRequest({ ...LEAST, max_attempts: 3 }, { ...DEFAULT_LIMITS, maxAttempts: 149 }).max_attempts).toBe(3);
  });

  test.each([[null], [undefined], ["text"], [5], [[LEAST]]])("refuses the request %p", (request) => {
    expect(() => checkRequest(request as unknown as EnqueueRequest)).toThrow(
      /^the request is (null|undefined|text|5|a list), not an object$/,
    );
  });

  const FIELDS =
    "kind, deliver_to, dedup_key, ordering_key, session_id, schedule_run_id, emitter_role, tenant_id, user_id, user_roles, correlation_id, body, ack_required, max_attempts, expires_at, not_before";
  test.each(["knid", "ordering", "id", "payload", "toString"])("refuses the unknown field %p, but not its absence", (name) => {
    expect(refusal({ [name]: 1 })).toBe(`"${name}" is no field of a request; the fields are ${FIELDS}`);
    expect(refusal({ [name]: undefined })).toBe("accepted");
  });

  const TEXTS: readonly (readonly [string, number])[] = [
    ["kind", 255],
    ["deliver_to", 8_192],
    ["dedup_key", 1_024],
    ["ordering_key", 1_024],
    ["session_id", 255],
    ["schedule_run_id", 255],
    ["emitter_role", 255],
  ];
  test.each(TEXTS)("%s is a text of at most %p bytes", (field, limit) => {
    expect(refusal({ [field]: "" })).toBe(`${field} is empty`);
    expect(refusal({ [field]: "a\0b" })).toBe(`${field} holds a NUL character`);
    expect(refusal({ [field]: "a\uDC00" })).toBe(`${field} is not valid Unicode (a lone surrogate)`);
    for (const wrong of [1, true, ["x"], {}]) expect(refusal({ [field]: wrong })).toBe(`${field} is not a text`);
    expect(refusal({ [field]: "x".repeat(limit) })).toBe("accepted");
    expect(refusal({ [field]: "x".repeat(limit + 1) })).toBe(`${field} has ${limit + 1} bytes; the limit is ${limit}`);
    expect(refusal({ [field]: `é${"x".repeat(limit - 1)}` })).toBe(`${field} has ${limit + 1} bytes; the limit is ${limit}`);
    for (const fine of [" ", "-x", "\n", "😀", "\uFEFF", "\uFFFD"]) expect(refusal({ [field]: fine })).toBe("accepted");
  });

  test.each(["tenant_id", "user_id", "correlation_id"])("%s is a text of at most 64 characters, whatever their bytes", (field) => {
    expect(refusal({ [field]: "" })).toBe(`${field} is empty`);
    expect(refusal({ [field]: "a\0b" })).toBe(`${field} holds a NUL character`);
    expect(refusal({ [field]: "a\uDC00" })).toBe(`${field} is not valid Unicode (a lone surrogate)`);
    expect(refusal({ [field]: 7 })).toBe(`${field} is not a text`);
    expect(refusal({ [field]: "😀".repeat(64) })).toBe("accepted");
    expect(refusal({ [field]: "x".repeat(65) })).toBe(`${field} has 65 characters; the limit is 64`);
  });

  test("user_roles is cut at a comma, and refused only when not even the first role fits", () => {
    const roles = Array.from({ length: 200 }, (_, at) => `role-${at}`).join(",");
    const kept = checkRequest({ ...LEAST, user_roles: roles }).user_roles ?? "";
    expect(roles.startsWith(`${kept},`)).toBe(true);
    expect(kept.length).toBeLessThanOrEqual(512);
    expect(refusal({ user_roles: "x".repeat(513) })).toBe("user_roles begins with a role of more than 512 characters");
    for (const wrong of ["", "\0", "\uD800", 1, ["reader"]]) expect(refusal({ user_roles: wrong })).toStartWith("user_roles ");
  });

  test.each(["kind", "deliver_to"])("%s is required", (field) => {
    for (const nothing of [undefined, null]) expect(refusal({ [field]: nothing })).toBe(`${field} is missing`);
  });

  test.each([0, -1, 1.5, 1_000_001, Number.NaN, Infinity, "3", true, 2 ** 53])("refuses max_attempts %p", (value) => {
    expect(refusal({ max_attempts: value })).toBe("max_attempts is not a whole number from 1 to 1000000");
  });
  test.each([1, 1_000_000])("accepts max_attempts %p", (value) => expect(refusal({ max_attempts: value })).toBe("accepted"));

  test.each([0, 1, "true", {}])("refuses ack_required %p", (value) => {
    expect(refusal({ ack_required: value })).toBe("ack_required is neither true nor false");
  });

  test.each(["expires_at", "not_before"])("%s is a time", (field) => {
    for (const wrong of [-1, -0.001, Number.NaN, Infinity, MAX_TIME + 1, "1767225600", new Date(0), true])
      expect(refusal({ [field]: wrong })).toBe(`${field} is not a time in epoch seconds between 1970 and 9999`);
    for (const fine of [0, 0.5, 1_767_225_600.123, MAX_TIME]) expect(refusal({ [field]: fine })).toBe("accepted");
  });

  test("an expiry lies after not_before", () => {
    const said = "expires_at does not lie after not_before; it would expire before it may be sent";
    expect(refusal({ not_before: 10, expires_at: 10 })).toBe(said);
    expect(refusal({ not_before: 10, expires_at: 9 })).toBe(said);
    expect(refusal({ not_before: 10, expires_at: 10.001 })).toBe("accepted");
  });
});

describe("the body", () => {
  const HINT = 'a body is a JSON object such as {"n": 1}';
  test.each([
    ["a text", "x", "the body is a string, not an object"],
    ["a number", 1, "the body is a number, not an object"],
    ["an array", [], "the body is an array, not an object"],
    ["a function", () => 1, "the body is a function, not an object"],
    ["a boolean", false, "the body is a boolean, not an object"],
    ...[new Date(0), new Map([["a", 1]]), new Set(), new Error("x"), new RangeError("x"), new Uint8Array(2), new ArrayBuffer(2), /x/].map(
      (body) => {
        const type = body instanceof RangeError ? "Error" : body.constructor.name;
        return [`of the type ${type}`, body, `the body is of the type ${type}, which JSON does not keep; use a plain object`] as const;
      },
    ),
    [
      "an object with half a character",
      { a: "\uD800" },
      `the body has an escaped lone surrogate (half of a character), which is not valid Unicode; ${HINT}`,
    ],
  ])("is not %s", (_, body, said) => expect(refusal({ body })).toBe(said));

  test("is kept to the letter when it comes as text, without the space around it", () => {
    const text = '{ "b":9007199254740993, "a":1.0, "a":2 }';
    expect(checkRequest(LEAST, DEFAULT_LIMITS, ` \t${text}\r\n`)).toMatchObject({
      body: text,
      asked: new Set(["kind", "deliver_to", "body"]),
    });
  });

  test.each([
    ["", `the body is empty; ${HINT}`],
    ["[]", `the body is an array, not an object; ${HINT}`],
  ])("is not the text %p", (text, said) => expect(refusal({}, DEFAULT_LIMITS, text)).toBe(said));

  test.each(["null", " null\n"])("is absent where its text is %p", (text) => {
    expect(checkRequest(LEAST, DEFAULT_LIMITS, text)).toEqual(checkRequest(LEAST));
  });

  test("is not the text of something that is not JSON", () => {
    for (const text of ["{a:1}", '{"a":NaN}', "{}\uFEFF"]) expect(refusal({}, DEFAULT_LIMITS, text)).toStartWith("the body is not JSON: ");
  });

  test("has at most the bytes of the limit, as UTF-8", () => {
    const limits = { ...DEFAULT_LIMITS, payloadBytes: 10 };
    const hint = "send a reference instead, or raise limits.payload";
    expect(refusal({}, limits, '{"a":"é"}')).toBe("accepted");
    expect(refusal({}, limits, '{"a":"éé"}')).toBe(`the body has 12 bytes; the limit is 10; ${hint}`);
    expect(refusal({}, limits, '{"a":"xxxx"}')).toBe(`the body has at least 12 bytes; the limit is 10; ${hint}`);
    expect(refusal({ body: { a: "x".repeat(1_048_568) } })).toBe("accepted");
    expect(refusal({ body: { a: "x".repeat(1_048_569) } })).toStartWith("the body has at least 1048577 bytes; the limit is 1048576");
  });

  test("takes time in proportion to its length, also when it is mostly space", () => {
    const began = performance.now();
    expect(refusal({}, DEFAULT_LIMITS, `{${" ".repeat(1_000_000)}}`)).toBe("accepted");
    expect(performance.now() - began).toBeLessThan(1_000);
  });
});
