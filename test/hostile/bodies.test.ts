/** What can be handed in as a body, a text or a batch: too deep, too large, not JSON, not UTF-8, not ending. */
import { Database } from "bun:sqlite";
import { describe, expect } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import type { Workstation } from "../cli/running.ts";
import { type Case, ENQUEUE, hostile, ID, MESSAGES } from "./cases.ts";

const BODY = [...ENQUEUE, "--body-file", "-"];
const BATCH = ["enqueue", "--batch", "-"];
const LIMIT = 1_048_576;
const line = (more = ""): string => `{"kind":"k","deliver_to":"d"${more}}`;
/** An object of exactly so many bytes. */
const sized = (bytes: number): string => `{"t":"${"x".repeat(bytes - 8)}"}`;
const bytes = (...parts: readonly (string | readonly number[])[]): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Uint8Array.from(part))));

describe("a body", () => {
  const refused = (name: string, stdin: string | Uint8Array, said: RegExp): Case => ({
    name,
    args: BODY,
    stdin,
    code: 65,
    said: new RegExp(`^outbox: [^\n]*${said.source}[^\n]*\n$`),
  });
  /** Taken, and in the envelope to the letter. */
  const kept = (name: string, stdin: string): Case => ({
    name,
    args: BODY,
    stdin,
    code: 0,
    stdout: ID,
    stores: 1,
    after: (place) => expect(payload(place).endsWith(`"body":${stdin.trim()}}`)).toBeTrue(),
  });
  hostile([
    refused("nothing", "", /empty/),
    refused("only blanks", " \n\t\r\n ", /empty/),
    refused("an array", "[]", /array/),
    refused("a number", "1e999", /not an object/),
    refused("a text", '"a"', /not an object/),
    refused("NaN", "NaN", /not JSON/),
    refused("single quotes", "{'a':1}", /not JSON/),
    refused("a comment", '{"a":1 /* b */}', /not JSON/),
    refused("a comma at the end", '{"a":1,}', /not JSON/),
    refused("two documents", "{} {}", /not JSON/),
    refused("something behind it", '{"a":1} x', /not JSON/),
    refused("a raw line break in a string", '{"a":"b\nc"}', /not JSON/),
    refused("a raw NUL in a string", '{"a":"b\0c"}', /not JSON/),
    refused("a NUL behind it", "{}\0", /not JSON/),
    refused("no-break blanks around", "\u00a0{}\u00a0", /not JSON/),
    refused("a byte order mark", "\ufeff{}", /byte order mark/),
    refused("UTF-16 with its mark", bytes([0xff, 0xfe], [0x7b, 0, 0x7d, 0]), /not valid UTF-8/),
    refused("UTF-16 without a mark", bytes([0x7b, 0, 0x7d, 0]), /not JSON/),
    refused("UTF-32", bytes([0, 0, 0xfe, 0xff, 0, 0, 0, 0x7b]), /not valid UTF-8/),
    refused("Latin-1", bytes('{"a":"caf', [0xe9], '"}'), /not valid UTF-8/),
    refused("half a character at the end", bytes('{"a":"', [0xe2, 0x82]), /not valid UTF-8/),
    refused("an overlong NUL", bytes('{"a":"', [0xc0, 0x80], '"}'), /not valid UTF-8/),
    refused("a surrogate in UTF-8", bytes('{"a":"', [0xed, 0xa0, 0x80], '"}'), /not valid UTF-8/),
    refused("an escaped half of a character", '{"a":"\\ud800"}', /lone surrogate/),
    refused("an escaped low half alone", '{"a":"\\udc00\\ud800"}', /lone surrogate/),
    refused("an escaped half as a name", '{"\\udfff":1}', /lone surrogate/),
    refused("513 levels", `{"a":${"[".repeat(512)}${"]".repeat(512)}}`, /deeper than 512/),
    refused("a bomb of 500,000 levels", "[".repeat(500_000), /deeper than 512/),
    refused("a bomb of objects", '{"a":'.repeat(150_000), /deeper than 512/),
    refused("quotes without end", '{"a":"'.padEnd(1_000_000, "\\"), /not JSON/),
    refused("one byte more than the limit", sized(LIMIT + 1), /more than 1048576 bytes/),
    refused("characters of more bytes than the limit", `{"t":"${"\u{1f600}".repeat(LIMIT / 4)}"}`, /more than 1048576 bytes/),
    kept("exactly the limit", sized(LIMIT)),
    kept("512 levels", `{"a":${"[".repeat(511)}${"]".repeat(511)}}`),
    kept("100,000 members", `{${Array.from({ length: 50_000 }, (_, n) => `"${n}":${n}`).join(",")}}`),
    kept("numbers that no machine holds", '{"a":9007199254740993,"b":1e999,"c":-0,"d":0.1000000000000000055511151231257827,"e":1E+2}'),
    kept("a number of 100,000 digits", `{"a":${"9".repeat(100_000)}}`),
    kept("a name twice", '{"a":1,"a":2,"\\u0061":3}'),
    kept("__proto__ and constructor", '{"__proto__":{"admin":true},"constructor":{"prototype":{}},"toString":1}'),
    kept("an escaped NUL", '{"a":"b\\u0000c"}'),
    kept("an empty name", '{"":{"":[]}}'),
    kept("line separators and bidi controls", '{"a":"\u2028\u2029\u202e"}'),
    kept("blanks within", '{ "a" :\n\t1\r\n}'),
    { name: "a body in argv that is no JSON, with an escape sequence", args: [...ENQUEUE, "--body", "\u001b[31m"], code: 65 },
    { name: "a body in argv with bytes that are no UTF-8", sh: `outbox ${ENQUEUE.join(" ")} --body "$(printf '{"a":"\\377"}')"`, code: 65 },
    { name: "an empty body in argv", args: [...ENQUEUE, "--body", ""], code: 2 },
    {
      name: "a text with a NUL",
      args: [...ENQUEUE, "--text-file", "-"],
      stdin: "a\0b",
      code: 0,
      stdout: ID,
      stores: 1,
      after: (place) => expect(payload(place)).toEndWith('{"text":"a\\u0000b"}}'),
    },
    {
      name: "a text that grows beyond the limit as JSON",
      args: [...ENQUEUE, "--text-file", "-"],
      stdin: "\u0001".repeat(200_000),
      code: 65,
      said: /limit is 1048576/,
    },
  ]);
});

describe("stdin", () => {
  const to = ENQUEUE.join(" ");
  hostile([
    { name: "that never ends, as a body", sh: `yes | outbox ${to} --body-file -`, code: 65, said: /more than 1048576 bytes/ },
    { name: "that never ends, as a text", sh: `outbox ${to} --text-file - </dev/zero`, code: 65, said: /more than 1048576 bytes/ },
    {
      name: "that comes byte by byte",
      sh: `for c in '{' '"a"' ':' '1' '}'; do printf %s "$c"; sleep 0.02; done | outbox ${to} --body-file -`,
      code: 0,
      stdout: ID,
      stores: 1,
    },
    { name: "that is closed", sh: `outbox ${to} --body-file - <&-`, code: 65 },
    { name: "that is closed, as a batch: it holds nothing", sh: "outbox enqueue --batch - <&-", code: 0, stdout: /^$/ },
    { name: "that is a directory", sh: `outbox ${to} --body-file - </`, code: 65 },
    { name: "that is /dev/null", sh: `outbox ${to} --body-file - </dev/null`, code: 65 },
    {
      name: "that is open for writing only",
      sh: `outbox ${to} --body-file - 0>out`,
      code: 74,
      said: /^outbox: cannot read stdin: it is not open for that\n$/,
    },
    { name: "that is left alone where no flag names it", sh: `yes | outbox ${to}`, code: 0, stdout: ID, stores: 1 },
    { name: "that is a terminal's end of file", sh: `printf '' | outbox ${to} --text-file -`, code: 0, stdout: ID, stores: 1 },
    {
      name: "/proc/self/mem as a body",
      args: [...ENQUEUE, "--body-file", "/proc/self/mem"],
      alone: true,
      code: 74,
      said: /^outbox: cannot read [^\n]+\n$/,
    },
    { name: "/dev/full as a body", args: [...ENQUEUE, "--body-file", "/dev/full"], alone: true, code: 65 },
    { name: "a pipe that nobody writes to, closed at once", sh: `mkfifo p; (: >p) & outbox ${to} --body-file p`, code: 65 },
    { name: "a directory as a batch", args: ["enqueue", "--batch", "."], code: 65 },
    { name: "a name of 5,000 characters as a body", args: [...ENQUEUE, "--body-file", "n".repeat(5_000)], code: 65 },
    { name: "a link that leads back to itself as a body", sh: `ln -s l l; outbox ${to} --body-file l`, code: 65 },
    { name: "an empty name as a body", args: [...ENQUEUE, "--body-file="], code: 2 },
    {
      name: "a name with a line break and an escape sequence",
      args: [...ENQUEUE, "--body-file", "a\n\u001b[2Jb"],
      code: 65,
      said: /a\\x0a\\x1b\[2Jb/,
    },
    { name: "stdin twice", args: [...ENQUEUE, "--body-file", "-", "--text-file", "-"], alone: true, code: 2 },
  ]);
});

describe("a batch", () => {
  const refused = (name: string, stdin: string | Uint8Array, said: RegExp): Case => ({
    name,
    args: BATCH,
    stdin,
    code: 65,
    said: new RegExp(`^outbox: [^\n]*${said.source}[^\n]*\n$`),
  });
  const taken = (name: string, stdin: string, stores: number): Case => ({
    name,
    args: BATCH,
    stdin,
    code: 0,
    stores,
    stdout: new RegExp(`^([0-9a-f]{32}\n){${stores}}$`),
  });
  const good = `${line()}\n`;
  hostile([
    taken("with CR LF", `${line()}\r\n${line()}\r\n`, 2),
    taken("with blank lines", `\n \n${line()}\n\t\n\r\n${line()}`, 2),
    taken("without a last line break", `${good}${line()}`, 2),
    taken("with members that JSON repeats inside the body", line(',"body":{"a":1,"a":2}'), 1),
    taken("with names that are escaped", '{"\\u006bind":"k","deliver_to":"d"}', 1),
    taken("with null for what is absent", line(',"dedup_key":null,"body":null,"max_attempts":null,"not_before":null'), 1),
    refused("with one bad line at the end", `${good.repeat(50)}{`, /batch line 51: [^\n]*nothing was stored/),
    refused("with a line of another encoding", bytes(good, [0x7b, 0xff, 0x7d]), /batch line 2: /),
    refused("with a byte order mark", `\ufeff${good}`, /batch line 1: /),
    refused("in UTF-16", Buffer.from(good, "utf16le"), /batch line 1: /),
    refused("that is one array", `[${line()}]`, /batch line 1: /),
    refused("with an object over two lines", '{"kind":"k",\n"deliver_to":"d"}', /batch line 1: /),
    refused("with two objects on a line", `${line()}${line()}`, /batch line 1: /),
    refused("with a form feed between lines", `${line()}\f${line()}`, /batch line 1: /),
    refused("with a field that objects inherit", line(',"constructor":1'), /"constructor" is no field/),
    refused("with a field __proto__", line(',"__proto__":{"kind":"x"}'), /"__proto__" is no field/),
    refused("with a field of the row", line(',"status":"delivered"'), /"status" is no field/),
    refused("with a field's name that is an escape sequence", line(',"\\u001b[2J":1'), /\\x1b\[2J/),
    refused("with a field twice, once escaped", line(',"\\u006bind":"z"'), /twice/),
    refused("with a number for a kind", '{"kind":1,"deliver_to":"d"}', /kind is not a text/),
    refused("with a list for a destination", '{"kind":"k","deliver_to":["d"]}', /deliver_to is not a text/),
    refused("with a text for a number", line(',"max_attempts":"3"'), /max_attempts/),
    refused("with a fraction of an attempt", line(',"max_attempts":1.5'), /max_attempts/),
    refused("with a million and one attempts", line(',"max_attempts":1000001'), /max_attempts/),
    refused("with no attempt", line(',"max_attempts":0'), /max_attempts/),
    refused("with a time that no clock shows", line(',"not_before":1e308'), /not_before/),
    refused("with a time that is infinite", line(',"expires_at":1e309'), /expires_at/),
    refused("with a time before 1970", line(',"expires_at":-1'), /expires_at/),
    refused("with a time in words", line(',"not_before":"2030-01-01"'), /not_before/),
    refused("with a text for a truth", line(',"ack_required":"true"'), /ack_required/),
    refused("with an empty key", line(',"dedup_key":""'), /dedup_key is empty/),
    refused("with a NUL in a key", line(',"dedup_key":"a\\u0000"'), /NUL/),
    refused("with half a character in a key", line(',"dedup_key":"\\ud800"'), /surrogate/),
    refused("with a body that is a text", line(',"body":"{}"'), /body/),
    refused("with a body over the limit", line(`,"body":${sized(LIMIT + 1)}`), /body/),
    refused("with a body that is too deep", line(`,"body":{"a":${"[".repeat(600)}${"]".repeat(600)}}`), /deeper than 512/),
    { name: "with nothing in it", args: BATCH, stdin: "", code: 0, stdout: /^$/ },
    { name: "with nothing but blank lines", args: BATCH, stdin: "\n\n \n", code: 0, stdout: /^$/ },
    {
      name: "with one key 200 times",
      args: BATCH,
      stdin: `${line(',"dedup_key":"x"')}\n`.repeat(200),
      code: 0,
      stores: 1,
      stdout: /^([0-9a-f]{32}\n)\1{199}$/,
    },
    {
      name: "with a key that is known",
      args: BATCH,
      stdin: `${line(',"dedup_key":"once"')}\n`,
      code: 0,
      stdout: ID,
      said: /belongs to 0{30}10/,
    },
    { name: "with --now", args: [...BATCH, "--now"], stdin: good, code: 2 },
    { name: "with --body", args: [...BATCH, "--body", '{"a":1}'], stdin: good, code: 0, stdout: ID, stores: 1 },
  ]);
});

describe("a file", () => {
  hostile([
    {
      name: "of 2 MiB is refused before it is read whole",
      args: [...ENQUEUE, "--body-file", "big"],
      code: 65,
      before: (place) => writeFileSync(place.file("big"), "x".repeat(2 * LIMIT)),
    },
    { name: "with mode 0", args: [...ENQUEUE, "--body-file", "dir/../dir"], code: 65, before: (place) => mkdirSync(place.file("dir")) },
  ]);
});

/** The envelope of the message that came last. */
function payload(place: Workstation): string {
  using db = new Database(place.database);
  const row = db.query<{ payload: string; seq: number }, []>("SELECT payload, seq FROM dispatch_outbox ORDER BY seq DESC LIMIT 1").get();
  expect(row?.seq).toBe(MESSAGES + 1);
  return row?.payload ?? "";
}
