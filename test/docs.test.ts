/**
 * The documents hold. The README is followed from top to bottom by somebody in a home of their own: a block whose first comment
 * names a file becomes that file, `sh` is run, `console` must show what it shows, `yaml` must pass `outbox config check`, `ts` must
 * compile, crontab and unit must be what cron and systemd take. `python` is written here and run by test/system/readme.test.ts, which
 * has the same README followed with the python3 and the sqlite3 of the machine. Every way of being wrong is shown to be noticed.
 */
import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { COMMANDS } from "../src/cli/command.ts";
import { PLACEHOLDERS } from "../src/core/template.ts";
import { type Block, blocksOf, brokenLinks, hasTest, namedFiles, namedTests, stepsOf, strangers } from "./docs/markdown.ts";
import { follower } from "./docs/follow.ts";
import { Reader, ROOT } from "./docs/reader.ts";

setDefaultTimeout(60_000);

const read = (file: string): string | null => (existsSync(join(ROOT, file)) ? readFileSync(join(ROOT, file), "utf8") : null);
const DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].map((file) => [file, read(file) ?? ""] as const);
const README = read("README.md") ?? "";
const ARCHITECTURE = read("ARCHITECTURE.md") ?? "";
const block = (language: string, text: string, file: string | null = null): Block => ({ language, text, line: 1, file });

test("the examples of the README, in order, but for the one in python", () => {
  using reader = new Reader();
  const follow = follower(reader);
  const blocks = blocksOf(README);
  const languages = new Set(blocks.map((each) => each.language));
  for (const language of ["yaml", "console", "sh", "crontab", "ini", "ts", "python"]) expect(languages).toContain(language);
  for (const each of blocks) expect({ line: each.line, wrong: follow(each) }).toEqual({ line: each.line, wrong: null });
  const asked = reader.asked();
  expect(asked).toContain("systemctl --user enable --now outbox.service");
  // What the commands were given arrived.
  expect(asked).toContain('"deliver_to":"https://billing.example/paid"');
  expect(readFileSync(reader.path("~/delivered.txt"), "utf8")).toContain('"text":"main is green"');
  expect(readFileSync(reader.path("~/job.json"), "utf8")).toContain('"kind":"job"');
  for (const seat of ["seat-1", "seat-2"]) expect(existsSync(reader.path(`~/${seat}.log`))).toBe(true);
});

describe("an example that does not do what it says is noticed", () => {
  test.each([
    ["a script that fails", "exit 1", block("sh", "false\ntrue\n")],
    ["a flag that there is not", "unknown flag --frobnicate", block("sh", "outbox enqueue --kind a --to b --frobnicate\n")],
    ["a script that is no npm script", "no script frobnicate", block("sh", "npm run frobnicate\n")],
    ["another answer", "outbox 9.9.9", block("console", "$ outbox --version\noutbox 9.9.9\n")],
    ["an answer where there is none", "id-1", block("console", "$ true\n01a228dedfd875f7b1de4aacb20abf48\n")],
    ["silence where there is an answer", "word", block("console", "$ echo word\n")],
    [
      "one id for two messages",
      "id-2",
      block("console", "$ for n in 1 2; do outbox enqueue --kind a --to b; done\n".concat(`${"0a".repeat(16)}\n`.repeat(2))),
    ],
    ["an unknown setting", "dispach", block("yaml", "dispach: {}\n", "~/.config/outbox/settings.yaml")],
    [
      "an unwise template",
      "every user of this machine",
      block("yaml", 'dispatch: { notify_template: [cat, "{payload}"] }\n', "~/.config/outbox/settings.yaml"),
    ],
    ["a program with a wrong type", "error TS2345", block("ts", 'import { enqueue } from "outbox";\nenqueue(1, {});\n', "~/a.ts")],
    ["a program with a wrong name", "has no exported member", block("ts", 'import { enqueu } from "outbox";\nenqueu();\n', "~/a.ts")],
    ["a crontab with a relative PATH", "no such PATH: bin", block("crontab", "PATH=bin\n* * * * * outbox run --once && curl x\n")],
    ["a cron job without a program", "not found", block("crontab", "PATH=/usr/bin:/bin\n* * * * * outboxx run --once && curl x\n")],
    ["a cron job that talks", "hello", block("crontab", "PATH=/home/me/.local/bin:/usr/bin:/bin\n* * * * * echo hello && curl x\n")],
    [
      "a cron job that hides a fault",
      "a fault goes unnoticed",
      block("crontab", "PATH=/home/me/.local/bin:/usr/bin:/bin\n* * * * * curl x\n"),
    ],
    ["a crontab with four fields", "no line of a crontab", block("crontab", "PATH=/usr/bin:/bin\n* * * * outbox run --once\n")],
    ["a unit with a relative program", "no absolute path", block("ini", unit("ExecStart=outbox run"))],
    ["a unit with a wrong flag", "unknown flag --forever", block("ini", unit("ExecStart=%h/outbox run --forever"))],
    ["a unit with a wrong exit code", "no exit code 79", block("ini", unit("ExecStart=%h/outbox run\nRestartPreventExitStatus=79"))],
    ["a program in python without a name", "a program without a name", block("python", "print(1)\n")],
    [
      "a statement that the SQL door refuses",
      "kind is missing",
      block("sh", shell("INSERT INTO dispatch_enqueue (deliver_to) VALUES ('a');")),
    ],
    ["a language that nobody runs", "ruby", block("ruby", "puts 1\n")],
  ])("%s", (_, said, wrong) => {
    using reader = new Reader();
    expect(follower(reader)(wrong) ?? "nothing was noticed").toContain(said);
  });

  function shell(sql: string): string {
    return `outbox enqueue --db a.db --kind a --to b\nsqlite3 -bail a.db <<'SQL'\n.timeout 1000\n${sql}\nSQL\n`;
  }

  function unit(service: string): string {
    return `# x\n[Unit]\nDescription=x\n\n[Service]\n${service}\n\n[Install]\nWantedBy=default.target\n`;
  }

  test("and one that does is not", () => {
    using reader = new Reader();
    expect(follower(reader)(block("ini", unit("ExecStart=%h/outbox run\nRestartPreventExitStatus=78")))).toBeNull();
    expect(follower(reader)(block("console", `$ outbox enqueue --kind a --to b\n${"0a".repeat(16)}\n`))).toBeNull();
  });
});

test("the loop of the README asks again after 75 and after no other code", () => {
  const loop = blocksOf(README).find(({ text }) => text.includes("-eq 75"))?.text ?? "";
  for (const [codes, ends] of [
    ["75 75 0", 0],
    ["75 65", 1],
    ["74", 1],
  ] as const) {
    using reader = new Reader();
    reader.write("~/stand-ins/sleep", "#!/bin/sh\n");
    reader.write("~/codes", `${codes.replaceAll(" ", "\n")}\n`);
    reader.write("~/stand-ins/outbox", '#!/bin/sh\ncode=$(head -n 1 "$HOME/codes")\nsed -i.old 1d "$HOME/codes"\nexit "$code"\n');
    expect({ codes, code: reader.sh(loop).code, left: readFileSync(reader.path("~/codes"), "utf8") }).toEqual({
      codes,
      code: ends,
      left: "",
    });
  }
});

test("the README names every placeholder and every variable that a command is given, and no others", () => {
  const table = /^\| placeholder \|[\s\S]*?\n\n/m.exec(README)?.[0] ?? "";
  expect([...table.matchAll(/`\{(\w+)\}`/g)].map((match) => match[1] ?? "").toSorted()).toEqual([...PLACEHOLDERS].toSorted());
  using reader = new Reader();
  reader.write("~/.config/outbox/settings.yaml", 'dispatch: { notify_template: [sh, -c, "env > env.txt"] }\n');
  const origin = "--tenant-id e --user-id f --user-roles g --correlation-id h";
  expect(reader.sh(`outbox enqueue --kind a --to b --ack --dedup-key c --ordering-key d ${origin} && outbox run --once`).code).toBe(0);
  const given = [...readFileSync(reader.path("~/env.txt"), "utf8").matchAll(/^(OUTBOX_\w+)=/gm)].map((match) => match[1] ?? "");
  expect([...table.matchAll(/`(OUTBOX_\w+)`/g)].map((match) => match[1] ?? "").toSorted()).toEqual(given.toSorted());
});

test("every command but help and inbox run, which prints nothing of its own, takes --json", () => {
  expect(COMMANDS.filter((command) => !Object.hasOwn(command.flags, "json")).map((command) => command.name)).toEqual(["inbox run", "help"]);
});

describe("what the README warns of is so", () => {
  test("a message sent twice has one id in both commands", () => {
    using reader = new Reader();
    reader.write(
      "~/.config/outbox/settings.yaml",
      'dispatch: { backoff: { base: 0 }, notify_template: [sh, -c, "echo $OUTBOX_ID >> ids.txt; exit 1"] }\n',
    );
    expect(reader.sh("outbox enqueue --kind a --to b && outbox run --once && outbox run --once").code).toBe(0);
    const [first, second] = readFileSync(reader.path("~/ids.txt"), "utf8").split("\n");
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(second).toBe(first ?? "");
  });

  test("a command cannot open /dev/stderr and can write to >&2", () => {
    using reader = new Reader();
    for (const [word, status] of [
      [">/dev/stderr", "pending"],
      [">&2", "delivered"],
    ] as const) {
      reader.write("~/.config/outbox/settings.yaml", `dispatch: { notify_template: [sh, -c, "echo a ${word}"] }\n`);
      expect(reader.sh(`outbox enqueue --kind ${status} --to b && outbox run --once`).code).toBe(0);
      expect(reader.sh(`outbox ls --kind ${status} --json`).text).toContain(`"status":"${status}"`);
    }
  });

  test("a command inherits the environment of its runner", () => {
    using reader = new Reader();
    reader.write("~/.config/outbox/settings.yaml", 'dispatch: { notify_template: [sh, -c, "[ \\"$SECRET\\" = x ]"] }\n');
    expect(reader.sh("outbox enqueue --kind a --to b && SECRET=x outbox run --once --json").text).toContain('"delivered":1');
  });

  test("BUN_OPTIONS and BUN_BE_BUN make it run other code", () => {
    using reader = new Reader();
    reader.write("~/other.ts", 'console.log("other code");\n');
    expect(reader.sh('BUN_OPTIONS="--preload $HOME/other.ts" outbox --version').text).toContain("other code");
    expect(reader.sh("BUN_BE_BUN=1 outbox ~/other.ts").text).toContain("other code");
    // What lies in the current directory is no such way.
    reader.write("~/bunfig.toml", `preload = ["./other.ts"]\n`);
    expect(reader.sh("cd && outbox --version").text).not.toContain("other code");
  });

  test("it does not start in a deleted directory", () => {
    using reader = new Reader();
    expect(reader.sh('mkdir "$HOME/gone" && cd "$HOME/gone" && rmdir "$HOME/gone" && outbox --version').code).toBe(1);
  });

  test("messages and tokens stand in clear in a file of mode 0600", () => {
    using reader = new Reader();
    const made = reader.sh("outbox enqueue --kind a --to b --text secret --ack --json").text;
    expect(statSync(reader.path("~/.local/state/outbox/outbox.db")).mode & 0o777).toBe(0o600);
    using db = new Database(reader.path("~/.local/state/outbox/outbox.db"), { readonly: true });
    const row = db.query<{ payload: string; ack_token: string }, []>("SELECT payload, ack_token FROM dispatch_outbox").get();
    expect(row?.payload).toContain("secret");
    expect(made).toContain(row?.ack_token ?? "no row");
  });
});

test.each(DOCUMENTS)("%s: links lead somewhere, files exist, nothing is of one machine", (_, text) => {
  expect(text).not.toBe("");
  expect(brokenLinks(text, read)).toEqual([]);
  expect(namedFiles(text).filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  expect(strangers(text)).toEqual([]);
});

test("every test that ARCHITECTURE.md names exists, and every promise names one", () => {
  const promises = /^## Promises\n[\s\S]*?(?=^## )/m.exec(ARCHITECTURE)?.[0] ?? "";
  const rows = promises.split("\n").filter((line) => line.startsWith("| ") && !/^\| (?:promise|---)/.test(line));
  expect(rows.length).toBeGreaterThan(9);
  for (const row of rows) {
    const named = namedTests(row);
    expect({ row, named: named.length > 0 }).toEqual({ row, named: true });
    // What is quoted and does not follow the form would not be looked for.
    expect(named.map(({ name }) => name)).toEqual([...row.matchAll(/"([^"]+)"/g)].map((match) => match[1] ?? ""));
    for (const { file, name } of named) expect({ file, name, there: hasTest(read(file) ?? "", name) }).toEqual({ file, name, there: true });
  }
});

describe("the looks at a document can fail", () => {
  test("brokenLinks()", () => {
    const document = "# A b: `c`!\n[x](#a-b-c) [x](#a) [x](OTHER.md) [x](OTHER.md#c) [x](NONE.md) `[x](no)` [x](https://a.example)";
    expect(brokenLinks("# A b!\n[x](#a-b)", read)).toEqual([]);
    expect(brokenLinks(document, (file) => (file === "OTHER.md" ? "# B" : null))).toEqual(["#a-b-c", "#a", "OTHER.md#c", "NONE.md"]);
  });

  test("namedFiles()", () => {
    expect(namedFiles("`core/a.ts` `src/b` `test/c.test.ts` `x/y.ts`\n```sh\n`core/z.ts`\n```\n")).toEqual([
      "src/core/a.ts",
      "src/b",
      "test/c.test.ts",
    ]);
  });

  test("namedTests() and hasTest()", () => {
    expect(namedTests('| a | `test/a.test.ts`: "one", "two (%s)"; `test/b.test.ts`: "three" (because) |')).toEqual([
      { file: "test/a.test.ts", name: "one" },
      { file: "test/a.test.ts", name: "two (%s)" },
      { file: "test/b.test.ts", name: "three" },
    ]);
    expect(hasTest('test("two (%s)", () => {})', "two (%s)")).toBe(true);
    expect(hasTest('test.each(x)(\n  "two",\n  () => {})', "two")).toBe(true);
    expect(hasTest('test("two and more", () => {}) // "two"', "two")).toBe(false);
  });

  test("strangers()", () => {
    const known = "https://a.example/x, ~/bin/x, /usr/bin:/bin, /etc/outbox/settings.yaml, $HOME/x, %h/x, src/core, ./x, and/or, 2/3";
    expect(strangers(known)).toEqual([]);
    expect(strangers("https://a.example.org/x and /opt/b at http://host:80/c, in `/srv/x`")).toEqual([
      "a.example.org",
      "host:80",
      "/opt/b",
      "/srv/x",
    ]);
  });

  test("stepsOf()", () => {
    expect(stepsOf("$ a\nb\nc\n$ d\n")).toEqual([
      { command: "a", shown: "b\nc\n" },
      { command: "d", shown: "" },
    ]);
  });
});
