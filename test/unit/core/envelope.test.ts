import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { envelope, type EnvelopeParts, hasBody } from "../../../src/core/envelope.ts";

const PARTS: EnvelopeParts = {
  signalId: "1b4e28ba-2fa1-41d2-883f-0016d3cca427",
  createdAt: 1_767_225_600.123,
  emitterRole: null,
  dispatchId: "0123456789abcdef0123456789abcdef",
  kind: "terminal_notify",
  deliverTo: "seat-1",
  ackToken: null,
  body: "{}",
};

describe("envelope()", () => {
  test("is that of ADR-0059 D1: these members in this order", () => {
    expect(envelope(PARTS)).toBe(
      '{"id":"1b4e28ba-2fa1-41d2-883f-0016d3cca427","created_at":1767225600.123,' +
        '"metadata":{"lion_class":"lionagi.session.signal.DispatchSignal"},"data":null,"emitter_role":null,"schema_version":1,' +
        '"dispatch_id":"0123456789abcdef0123456789abcdef","kind":"terminal_notify","deliver_to":"seat-1","attempt":0,"ack_token":null,"body":{}}',
    );
  });

  test("carries role and token", () => {
    const parsed: unknown = JSON.parse(envelope({ ...PARTS, emitterRole: "scheduler", ackToken: "f".repeat(32) }));
    expect(parsed).toMatchObject({ emitter_role: "scheduler", ack_token: "f".repeat(32) });
  });

  test("carries the body to the letter", () => {
    const body = '{ "b":9007199254740993,\n "a":1.0, "a":2, "é":"\\u00e9" }';
    expect(envelope({ ...PARTS, body }).endsWith(`,"body":${body}}`)).toBe(true);
  });

  const texts = fc.string({ unit: "binary" });
  test("comes back from a parser as it was put in, whatever the texts hold", () => {
    fc.assert(
      fc.property(texts, texts, fc.dictionary(texts, fc.jsonValue()), (kind, deliverTo, body) => {
        const bodyText = JSON.stringify(body);
        const parsed = JSON.parse(envelope({ ...PARTS, kind, deliverTo, body: bodyText })) as Record<string, unknown>;
        expect([parsed["kind"], parsed["deliver_to"]]).toEqual([kind, deliverTo]);
        expect(parsed["body"]).toEqual(JSON.parse(bodyText));
      }),
    );
  });
});

describe("hasBody()", () => {
  test.each([
    ['{"body":{}}', "{}", false],
    ['{"a":{"body":{}}}', "{}", false],
    ['{"a":"\\"body\\":{}}"}', "{}", false],
    ["{}", "{}", true],
    ['{"a":1}', '{"a":1}', true],
    ['{"a":1}', '{"a": 1}', false],
    ['{"a":1}', '{"a":1.0}', false],
  ])("of the envelope of %p and the body %p is %p", (carried, body, same) => {
    expect(hasBody(envelope({ ...PARTS, body: carried }), body)).toBe(same);
  });

  test("is true of the body that it carries and of no other", () => {
    const bodies = fc
      .dictionary(fc.constantFrom("a", "body", '"body":{}}'), fc.oneof(fc.constant({}), fc.jsonValue()))
      .map((body) => JSON.stringify(body));
    fc.assert(
      fc.property(bodies, bodies, (carried, other) => {
        expect(hasBody(envelope({ ...PARTS, body: carried }), other)).toBe(carried === other);
      }),
    );
  });
});
