/** What a command line can hold that nobody meant: bytes, lengths, numbers, times, ids, look-alikes. */
import { describe } from "bun:test";
import { type Case, ENQUEUE, hostile, ID } from "./cases.ts";

const BIG = "x".repeat(100_000);
const RED = "\u001b[31mred\u001b]0;title\u0007\u009b2J";
const RIGHT_TO_LEFT = "abc\u202egpj.exe\u2066";

describe("flags", () => {
  hostile([
    { name: "no command", args: [], code: 2, said: /^Usage|^outbox/m },
    { name: "an empty command", args: [""], code: 2 },
    { name: "a blank command", args: [" "], code: 2 },
    { name: "a command in capitals", args: ["ENQUEUE"], code: 2 },
    { name: "a command with an escape sequence", args: [RED], code: 2, said: /\\x1b\[31mred/ },
    { name: "a command of 100 KB", args: [BIG], code: 2 },
    { name: "a command that objects inherit", args: ["constructor"], code: 2 },
    { name: "a command called __proto__", args: ["__proto__"], code: 2 },
    { name: "only --", args: ["--"], code: 2 },
    { name: "only -", args: ["-"], code: 2 },
    { name: "-- before the command", args: ["--", "ls"], code: 2 },
    { name: "a short flag", args: ["ls", "-n", "3"], code: 2 },
    { name: "bundled short flags", args: ["ls", "-la"], code: 2 },
    { name: "three dashes", args: ["ls", "---json"], code: 2 },
    { name: "an em dash for two dashes", args: ["ls", "\u2014json"], code: 2 },
    { name: "a full-width dash", args: ["ls", "\uff0d\uff0djson"], code: 2 },
    { name: "a look-alike letter in a flag", args: ["ls", "--js\u043en"], code: 2 },
    { name: "a flag called --", args: ["ls", "--="], code: 2 },
    { name: "a flag that objects inherit", args: ["ls", "--constructor", "x"], code: 2 },
    { name: "a flag called __proto__", args: ["ls", "--__proto__=x"], code: 2 },
    { name: "a flag called toString before the command", args: ["--toString", "ls"], code: 2 },
    { name: "a misspelt flag", args: ["ls", "--jsno"], code: 2, said: /did you mean --json/ },
    { name: "a flag in capitals", args: ["ls", "--JSON"], code: 2 },
    { name: "a flag that only another command has", args: ["show", "1", "--limit", "3"], code: 2 },
    { name: "a switch with a value", args: ["ls", "--json=true"], code: 2 },
    { name: "a switch with an empty value", args: ["ls", "--json="], code: 2 },
    { name: "a switch twice", args: ["ls", "--json", "--json"], code: 2 },
    { name: "a negated switch", args: ["ls", "--no-json"], code: 2 },
    { name: "a single flag twice", args: [...ENQUEUE, "--text", "a", "--text", "b"], code: 2 },
    { name: "a single flag twice with the same value", args: [...ENQUEUE, "--kind", "k"], code: 2 },
    { name: "a value that is missing at the end", args: [...ENQUEUE, "--text"], code: 2 },
    { name: "a value that is a flag", args: [...ENQUEUE, "--text", "--json"], code: 2 },
    { name: "a value that is --", args: [...ENQUEUE, "--text", "--"], code: 2 },
    { name: "an empty value with =", args: ["enqueue", "--kind=", "--to", "d"], code: 2 },
    { name: "an empty value", args: ["enqueue", "--kind", "", "--to", "d"], code: 2 },
    { name: "a flag name with an escape sequence", args: ["ls", `--${RED}`], code: 2, said: /\\x1b\[31m/ },
    { name: "a flag name of 100 KB", args: ["ls", `--${BIG}`], code: 2 },
    { name: "a surplus argument", args: [...ENQUEUE, "surplus"], code: 2 },
    { name: "a surplus argument with a line break", args: [...ENQUEUE, "a\nb"], code: 2, said: /a\\x0ab/ },
    { name: "a surplus argument after --", args: [...ENQUEUE, "--", "--json"], code: 2 },
    { name: "5,000 arguments", args: ["ls", ...Array.from({ length: 5_000 }, () => "x")], code: 2 },
    {
      name: "5,000 times one list flag",
      args: ["ls", ...Array.from({ length: 5_000 }, () => ["--kind", "nothing"]).flat()],
      code: 0,
      stdout: /^$/,
      said: /^outbox: no message matches\n$/,
    },
    { name: "5,000 times one switch", args: ["ls", ...Array.from({ length: 5_000 }, () => "--json")], code: 2 },
    { name: "--db and --source", args: ["ls", "--db", "a.db", "--source", "default"], code: 2 },
    { name: "--db twice", args: ["--db", "a.db", "ls", "--db", "b.db"], code: 2 },
    { name: "--help after a wrong flag", args: ["ls", "--nonsense", "--help"], code: 2 },
    { name: "--version before a command", args: ["--version", "ls"], code: 2 },
    { name: "bytes that are no UTF-8 as a command", sh: "outbox \"$(printf 'l\\377s')\"", code: 2 },
    { name: "bytes that are no UTF-8 as a flag", sh: "outbox ls \"$(printf -- '--j\\377')\"", code: 2 },
    { name: "a surrogate in UTF-8 as a kind", sh: "outbox enqueue --to d --kind \"$(printf 'a\\355\\240\\200')\"", code: 65 },
    { name: "an overlong slash as a kind", sh: "outbox enqueue --to d --kind \"$(printf 'a\\300\\257')\"", code: 65 },
    { name: "half a character as a key", sh: "outbox enqueue --kind k --to d --dedup-key \"$(printf 'k\\342\\202')\"", code: 65 },
    {
      name: "bytes that are no UTF-8 as a filter",
      sh: "outbox ls --kind \"$(printf 'k\\377')\"",
      code: 65,
    },
    {
      name: "bytes that are no UTF-8 as a settings file",
      sh: "outbox --config \"$(printf 's\\377')\" ls",
      code: 78,
      said: /bytes that are not UTF-8/,
    },
    { name: "bytes that are no UTF-8 as an id", sh: "outbox show \"$(printf '1\\377')\"", code: 1, said: /^outbox: / },
  ]);
});

describe("fields", () => {
  const refused = (flag: string, value: string): Case => ({
    name: `--${flag} of ${value.length} characters`,
    args: ["enqueue", ...without(flag), `--${flag}`, value],
    code: 65,
    said: /^outbox: \w+ has \d+ bytes; the limit is \d+\n$/,
  });
  const taken = (name: string, ...args: readonly string[]): Case => ({ name, args, code: 0, stdout: ID, stores: 1 });
  hostile([
    ...["kind", "session-id", "schedule-run-id", "emitter-role"].map((flag) => refused(flag, "x".repeat(256))),
    ...["dedup-key", "ordering-key"].map((flag) => refused(flag, "\u{1f600}".repeat(257))),
    refused("to", "x".repeat(8_193)),
    refused("kind", BIG),
    taken("a kind of 255 bytes", "enqueue", "--kind", "x".repeat(255), "--to", "d"),
    taken("a destination of 8,192 bytes", "enqueue", "--kind", "k", "--to", "d".repeat(8_192)),
    taken("a kind called __proto__", "enqueue", "--kind", "__proto__", "--to", "d"),
    taken("a kind called constructor", "enqueue", "--kind", "constructor", "--to", "hasOwnProperty"),
    taken(
      "SQL",
      "enqueue",
      "--kind",
      "k'); DROP TABLE dispatch_outbox;--",
      "--to",
      '" OR 1=1 --',
      "--dedup-key",
      "'; DELETE FROM dispatch_outbox; --",
    ),
    taken("a shell's words", "enqueue", "--kind", "$(touch pwned)", "--to", "`touch pwned`;|&"),
    taken("a destination that looks like a flag", "enqueue", "--kind", "k", "--to=--db=/etc/passwd"),
    taken("a destination that looks like a placeholder", "enqueue", "--kind", "{payload}", "--to", "{deliver_to}"),
    taken("a blank kind", "enqueue", "--kind", " ", "--to", "\t"),
    taken("bidi controls", "enqueue", "--kind", RIGHT_TO_LEFT, "--to", RIGHT_TO_LEFT),
    taken("escape sequences", "enqueue", "--kind", RED, "--to", RED, "--dedup-key", RED, "--text", RED),
    taken("a text of 100 KB", ...ENQUEUE, "--text", BIG),
    {
      name: "two keys that differ in Unicode form only",
      code: 0,
      sh: `outbox ${ENQUEUE.join(" ")} --dedup-key "$(printf '\\303\\251')" && outbox ${ENQUEUE.join(" ")} --dedup-key "$(printf 'e\\314\\201')"`,
      stdout: /^([0-9a-f]{32}\n){2}$/,
      stores: 2,
    },
    {
      name: "two keys that differ in a trailing blank only",
      code: 0,
      sh: `outbox ${ENQUEUE.join(" ")} --dedup-key once && outbox ${ENQUEUE.join(" ")} --dedup-key 'once '`,
      stdout: /^([0-9a-f]{32}\n){2}$/,
      said: /belongs to 0{30}10/,
      stores: 1,
    },
  ]);
});

describe("ids", () => {
  const show = (value: string): Case => ({
    name: `show ${JSON.stringify(value.slice(0, 40))}`,
    args: ["show", value],
    code: 1,
    said: /^outbox: [^\n]+\n$/,
  });
  hostile([
    ...[
      "0",
      "00",
      "999999999",
      "9".repeat(400),
      "1.0",
      "1e0",
      "0x1",
      "+1",
      " 1",
      "1 ",
      "\u0661",
      "%",
      "*",
      "' OR 1=1 --",
      "../../etc/passwd",
      "a".repeat(31),
      "a".repeat(33),
      "A".repeat(32),
      "g".repeat(32),
      `${"0".repeat(31)}\u0661`,
      "0".repeat(32),
      BIG,
      RED,
      "",
      " ",
    ].map(show),
    { name: "show 01, which is the number 1", args: ["show", "01", "--json"], code: 0, stdout: /^\{"seq":1,/ },
    { name: "show -1", args: ["show", "-1"], code: 2 },
    { name: "show -- -1", args: ["show", "--", "-1"], code: 1, said: /^outbox: [^\n]+\n$/ },
    {
      name: "show 5,000 ids that are none",
      args: ["show", ...Array.from({ length: 5_000 }, (_, n) => `x${n}`)],
      code: 1,
      said: /^(outbox: [^\n]+\n)+$/,
    },
    { name: "ack with a token of 100 KB", args: ["ack", "9", BIG], code: 1, said: /^outbox: [^\n]+\n$/ },
    { name: "ack with an empty token", args: ["ack", "9", ""], code: 1, said: /^outbox: [^\n]+\n$/ },
    { name: "ack with a token and a NUL's escape", args: ["ack", "9", `${"a".repeat(32)}\\0`], code: 1, said: /^outbox: [^\n]+\n$/ },
    { name: "ack of a message that asked for none", args: ["ack", "7", "null"], code: 1, said: /^outbox: [^\n]+\n$/ },
    {
      name: "retry of what is not there",
      args: ["retry", "x", "y"],
      code: 1,
      stdout: /^0 messages put back\n$/,
      said: /^(outbox: [^\n]+\n){2}$/,
    },
    { name: "ls --after an id that is none", args: ["ls", "--after", RED], code: 2 },
    { name: "ls --after an id that is not there", args: ["ls", "--after", "f".repeat(32)], code: 1, said: /^outbox: [^\n]+\n$/ },
    { name: "ls --status of look-alikes", args: ["ls", "--status", "p\u0435nding"], code: 2 },
    { name: "ls --status __proto__", args: ["ls", "--status", "__proto__"], code: 2 },
    { name: "ls --source __proto__", args: ["ls", "--source", "__proto__"], code: 2 },
    { name: "ls --source constructor", args: ["ls", "--source", "constructor"], code: 2 },
    {
      name: "revive of 3,000 seats",
      args: ["revive", ...Array.from({ length: 3_000 }, (_, n) => `s${n}`), "--reset-epoch", "0"],
      code: 0,
      stores: 3_000,
    },
    { name: "revive of an empty seat", args: ["revive", "", "--reset-epoch", "0"], code: 65 },
  ]);
});

/** The flags that every enqueue needs, but this one. */
function without(flag: string): readonly string[] {
  return [...(flag === "kind" ? [] : ["--kind", "k"]), ...(flag === "to" ? [] : ["--to", "d"])];
}
