import { describe, expect, test } from "bun:test";
import { rawBody } from "../../../src/core/body.ts";
import type { Dispatch } from "../../../src/core/dispatch.ts";
import { environmentOf, type MessageSettings, messageOf, placeholderValue } from "../../../src/core/message.ts";
import { PLACEHOLDERS } from "../../../src/core/template.ts";

const PAYLOAD = envelope('{"n":9007199254740993,"text":"hi","n":1.0}');

function envelope(body: string): string {
  return `{"id":"5f9b","created_at":1.5,"metadata":{"lion_class":"x"},"data":null,"kind":"k","deliver_to":"d","ack_token":null,"body":${body}}`;
}

function row(change: Partial<Dispatch> = {}): Dispatch {
  return {
    seq: 417,
    id: "0123456789abcdef0123456789abcdef",
    kind: "revival_ping",
    deliver_to: "seat-1",
    payload: PAYLOAD,
    dedup_key: "day-1",
    ordering_key: "order-1",
    status: "delivering",
    attempt: 3,
    max_attempts: 8,
    next_attempt_at: 2,
    ack_required: 1,
    ack_token: "token",
    lock_token: "lock",
    holder: null,
    unresolved: 0,
    session_id: null,
    schedule_run_id: null,
    tenant_id: null,
    user_id: null,
    user_roles: null,
    correlation_id: "corr",
    last_error: null,
    created_at: 1,
    expires_at: null,
    updated_at: 1,
    reason_code: "dispatch.delivering.attempt",
    reason_summary: "",
    source: "system",
    actor: "a",
    metadata: "{}",
    ...change,
  };
}

function settings(change: Partial<MessageSettings> = {}): MessageSettings {
  return { template: ["notify"], runnerEnv: {}, settingsEnv: {}, database: "/state/outbox.db", config: "/etc/outbox.yaml", ...change };
}

const origin = { tenant_id: "t", user_id: "u", user_roles: "a,b", correlation_id: "corr" } as const;
const lacking = { dedup_key: null, ordering_key: null, ack_token: null, correlation_id: null } as const;

describe("rawBody()", () => {
  const bodies = [
    '{"n":9007199254740993}',
    "{}",
    '{"a":1,"a":2}',
    '{"body":{"body":[1,{"body":2}]}}',
    '{"s":"a\\"}],:{[b\\\\"}',
    '[1,2,{"a":[]}]',
    '"a \\" , } text"',
    "null",
    "1e400",
    '{"é":"😀\\ud83d\\ude00"}',
  ];
  test.each(bodies)("gives back %s as it was written", (body) => {
    expect(rawBody(envelope(body))).toBe(body);
  });
  test("is not led astray by a kind that looks like a body", () => {
    expect(rawBody('{"kind":"\\",\\"body\\":1","deliver_to":"body","body":{"x":2}}')).toBe('{"x":2}');
  });
  test("takes an envelope that another program wrote with spaces and other members after the body", () => {
    expect(rawBody('{ "body" : { "a" : 1 } , "kind" : "k" }')).toBe('{ "a" : 1 }');
  });
  test("takes the last body where the key is repeated", () => {
    expect(rawBody('{"body":1,"body":2}')).toBe("2");
  });
  test.each(["{}", "[]", "", "12", '{"data":{"body":1}}', '"body":', '["body",1]'])("finds no body in %s", (text) => {
    expect(rawBody(text)).toBeNull();
  });
  test("finds a body of 1 MiB", () => {
    const body = JSON.stringify({ text: '"\\'.repeat(262_144) });
    expect(rawBody(envelope(body))).toBe(body);
  });
});

describe("placeholderValue()", () => {
  const expected = {
    payload: PAYLOAD,
    deliver_to: "seat-1",
    kind: "revival_ping",
    id: "0123456789abcdef0123456789abcdef",
    attempt: "3",
    ack_token: "token",
    body: '{"n":9007199254740993,"text":"hi","n":1.0}',
    text: "hi",
    dedup_key: "day-1",
    correlation_id: "corr",
  } as const;
  test.each([...PLACEHOLDERS])("replaces {%s}", (name) => {
    expect(placeholderValue(row(), name)).toBe(expected[name]);
  });
  test.each(["ack_token", "dedup_key", "correlation_id"] as const)("leaves {%s} empty where the row lacks it", (name) => {
    expect(placeholderValue(row(lacking), name)).toBe("");
  });
  test("leaves {body} and {text} empty where the envelope has no body", () => {
    expect([placeholderValue(row({ payload: "{}" }), "body"), placeholderValue(row({ payload: "{}" }), "text")]).toEqual(["", ""]);
  });
  test.each([
    ['{"text":"a\\nb"}', "a\nb"],
    ['{"text":""}', ""],
    ['{"text":5}', '{"text":5}'],
    ['{"other":1}', '{"other":1}'],
    ["null", "null"],
    ['"text"', '"text"'],
    ["[1]", "[1]"],
    ['{"text":{"text":"x"}}', '{"text":{"text":"x"}}'],
  ])("takes the string text of a body, else the body: %s", (body, text) => {
    expect(placeholderValue(row({ payload: envelope(body) }), "text")).toBe(text);
  });
});

describe("messageOf()", () => {
  test("gives the envelope on stdin, byte for byte, when no argument carries the message", () => {
    const payload = envelope('{"text":"ä😀"}');
    const message = messageOf(row({ payload }), settings({ template: ["notify", "{deliver_to}", "--", "{kind}"] }));
    expect(message.argv).toEqual(["notify", "seat-1", "--", "revival_ping"]);
    expect(new TextDecoder().decode(message.stdin)).toBe(payload);
  });
  test.each(["payload", "body", "text"])("leaves stdin empty when {%s} is an argument", (name) => {
    expect(messageOf(row(), settings({ template: ["notify", `{${name}}`] })).stdin.length).toBe(0);
  });
  test("never replaces in the program's place, inside an element, or in what was replaced", () => {
    const message = messageOf(row({ kind: "{id}" }), settings({ template: ["{kind}", "{kind}", "to={deliver_to}"] }));
    expect(message.argv).toEqual(["{kind}", "{id}", "to={deliver_to}"]);
  });
});

describe("environmentOf()", () => {
  test("names every field of the row, the database and the settings", () => {
    expect(environmentOf(row(origin), settings())).toEqual({
      OUTBOX_ID: "0123456789abcdef0123456789abcdef",
      OUTBOX_KIND: "revival_ping",
      OUTBOX_DELIVER_TO: "seat-1",
      OUTBOX_ATTEMPT: "3",
      OUTBOX_MAX_ATTEMPTS: "8",
      OUTBOX_ACK_TOKEN: "token",
      OUTBOX_DEDUP_KEY: "day-1",
      OUTBOX_ORDERING_KEY: "order-1",
      OUTBOX_TENANT_ID: "t",
      OUTBOX_USER_ID: "u",
      OUTBOX_USER_ROLES: "a,b",
      OUTBOX_CORRELATION_ID: "corr",
      OUTBOX_DB: "/state/outbox.db",
      OUTBOX_CONFIG: "/etc/outbox.yaml",
    });
  });
  test("removes what the row lacks, also when the runner's environment has it", () => {
    // As it stands in the environment of a runner that was started by a delivered command.
    const names = ["ID", "ACK_TOKEN", "DEDUP_KEY", "ORDERING_KEY", "TENANT_ID", "USER_ID", "USER_ROLES", "CORRELATION_ID", "CONFIG"];
    const stale = Object.fromEntries(names.map((name) => [`OUTBOX_${name}`, "s"]));
    const env = environmentOf(row(lacking), settings({ runnerEnv: stale, config: null }));
    expect(Object.keys(env).toSorted()).toEqual([
      "OUTBOX_ATTEMPT",
      "OUTBOX_DB",
      "OUTBOX_DELIVER_TO",
      "OUTBOX_ID",
      "OUTBOX_KIND",
      "OUTBOX_MAX_ATTEMPTS",
    ]);
    expect(env["OUTBOX_ID"]).toBe("0123456789abcdef0123456789abcdef");
  });
  test("puts the settings over the runner and the row over both", () => {
    const env = environmentOf(
      row(),
      settings({ runnerEnv: { PATH: "/bin", HOME: "/h", GONE: undefined }, settingsEnv: { PATH: "/opt", OUTBOX_ID: "x" } }),
    );
    expect([env["PATH"], env["HOME"], env["OUTBOX_ID"], "GONE" in env]).toEqual(["/opt", "/h", "0123456789abcdef0123456789abcdef", false]);
  });
});
