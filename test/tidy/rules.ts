/** What may stand where, besides imports. Each rule is a function of one file, with its reason and what it must catch. */

export interface Rule {
  /** What holds, as a sentence. */
  readonly says: string;
  readonly why: string;
  /** The files it is about. */
  readonly files: RegExp;
  /** Files of those that are excused, each with its reason. */
  readonly except?: Readonly<Record<string, string>>;
  /** What is wrong with the file; empty when nothing is. */
  readonly check: (path: string, text: string) => readonly string[];
  /** Files that must be complained about: proof that the rule can fail. */
  readonly bad: readonly (readonly [path: string, text: string])[];
  /** Files that look alike and must pass. */
  readonly good?: readonly (readonly [path: string, text: string])[];
}

const SRC = /^src\/.*\.ts$/;
const CODE = /^(src|test|scripts)\/.*\.ts$/;
const ALL = /./;
/** This file: it holds what the rules must catch. */
const SAMPLES = "test/tidy/rules.ts";

export const RULES: readonly Rule[] = [
  {
    says: "core touches neither the runtime nor the clock, dice or console",
    why: "core decides from what it is given; a decision that reads the world cannot be replayed",
    files: /^src\/core\/.*\.ts$/,
    check: inCode(
      /\b(?:Bun|Date|console|process|performance|crypto|fetch|navigator)\s*[.(]|\bnew Date\b|\bMath\.random\b|\bset(?:Timeout|Interval|Immediate)\(/,
    ),
    bad: [
      ["src/core/a.ts", "export const a = () => Date.now();"],
      ["src/core/a.ts", "export const a = () => new Date(0);"],
      ["src/core/a.ts", "export const a = Math.random;"],
      ["src/core/a.ts", "export function a(): void { console.log(1); }"],
      ["src/core/a.ts", "export const a = Bun.version;"],
    ],
    good: [["src/core/a.ts", "/** Like Date.now(), not Bun.version. */ export type Dated = { updated: number };"]],
  },
  {
    says: "only the store holds SQL",
    why: "who changes a table looks in one room for every statement that reads it",
    files: /^src\/(?!store\/).*\.ts$/,
    check: inCode(
      /["'`]\s*(?:SELECT\b[^"'`]*\bFROM\b|INSERT\s+(?:OR\s+\w+\s+)?INTO\b|UPDATE\s+[\w."]+\s+SET\b|DELETE\s+FROM\b|PRAGMA\s+\w|BEGIN(?:\s+IMMEDIATE)?\s*["'`;]|CREATE\s+(?:TABLE|INDEX|TRIGGER)\b)/i,
    ),
    bad: [
      ["src/cli/a.ts", "db.query(`\n  SELECT id\n  FROM dispatch_outbox`);"],
      ["src/index.ts", 'export const a = "insert or ignore into t values (1)";'],
      ["src/dispatcher/a.ts", "export const a = 'UPDATE main.dispatch_outbox SET attempt = 0';"],
      ["src/main.ts", 'export const a = "delete from t";'],
      ["src/main.ts", 'export const a = "PRAGMA user_version";'],
    ],
    good: [
      ["src/cli/a.ts", '// SELECT a FROM b\nexport const a = ["deleted from the outbox", "update the settings", "select a command"];'],
    ],
  },
  {
    says: "only the transport starts processes",
    why: "one room knows about groups, timeouts, pipes and what to do with a child that outlives its time",
    files: /^src\/(?!transport\/).*\.ts$/,
    check: inCode(/\bBun\.(?:spawn|spawnSync|\$)|\bchild_process\b|\bnew Worker\b|import\s*\{[^}]*(?:\bspawn|\$)[^}]*\}\s*from\s*"bun"/),
    bad: [
      ["src/cli/a.ts", 'Bun.spawnSync(["true"]);'],
      ["src/dispatcher/a.ts", 'import { execFile } from "node:child_process"; execFile("true");'],
      ["src/store/a.ts", 'import { spawn } from "bun"; spawn(["true"]);'],
    ],
  },
  {
    says: "only host.ts reads the clock or draws randomness",
    why: "tests drive time by hand; one hidden reading of the clock makes a simulation lie",
    files: /^src\/(?!host\.ts$).*\.ts$/,
    // `new Date(x)` turns a number into words and reads no clock.
    check: inCode(
      /\bDate\.now\b|\bnew Date(?:\(\s*\)|(?!\s*\())|(?<!new )\bDate\(\)|\bMath\.random\b|\bperformance\.now\b|\bcrypto\.(?:randomUUID|getRandomValues)\b|\bBun\.(?:randomUUID|nanoseconds)|\bhrtime\b|\bnode:crypto\b|\bTemporal\.Now\b/,
    ),
    bad: [
      ["src/store/a.ts", "export const a = () => Date.now();"],
      ["src/cli/a.ts", "export const a = () => new Date().toISOString();"],
      ["src/cli/a.ts", "export const a = () => performance.now();"],
      ["src/index.ts", "export const a = () => crypto.randomUUID();"],
      ["src/dispatcher/a.ts", "export const a = () => Math.random();"],
    ],
    good: [["src/cli/a.ts", "export const a = (s: number) => new Date(s * 1000).toISOString();"]],
  },
  {
    says: "only main.ts touches argv, signals and the end of the process",
    why: "everything below can run twice in one process, and what it answers becomes an exit code in one place",
    files: /^src\/(?!main\.ts$).*\.ts$/,
    check: inCode(/\bprocess\.(?:argv|argv0|exit|exitCode|abort|on|once|addListener)\b|\bBun\.argv\b/),
    bad: [
      ["src/cli/a.ts", "process.exit(1);"],
      ["src/cli/a.ts", "export const a = process.argv.slice(2);"],
      ["src/dispatcher/a.ts", 'process.on("SIGTERM", () => undefined);'],
    ],
    good: [["src/cli/a.ts", "export const a = process.env;"]],
  },
  {
    says: "no file is called utils, helpers, common, misc or shared",
    why: "a helper lives in the room whose word it speaks; if no room fits, its idea has no name yet",
    files: CODE,
    check: (path) => (/(?:^|\/)(?:utils?|helpers?|common|misc|shared)(?:\/|\.|-)/.test(path) ? ["give it the name of its idea"] : []),
    bad: [
      ["src/core/utils.ts", ""],
      ["src/helpers/text.ts", ""],
      ["test/common.ts", ""],
    ],
    good: [["src/core/commons-of-text.ts", ""]],
  },
  {
    says: "no source file is longer than 300 lines",
    why: "past that a second idea has moved in",
    files: SRC,
    check: (_, text) => (text.trimEnd().split("\n").length > 300 ? [`it has ${text.trimEnd().split("\n").length} lines`] : []),
    bad: [["src/core/a.ts", "x;\n".repeat(301)]],
    good: [["src/core/a.ts", "x;\n".repeat(300)]],
  },
  {
    says: "nothing is left to be done later in a comment",
    why: "what is not done is not begun; a note in the code is read by nobody who plans",
    files: CODE,
    check: inText(/\b(?:TODO|FIXME|XXX|HACK)\b/),
    bad: [["src/core/a.ts", "// TODO: later"]],
  },
  {
    says: "no test is skipped, narrowed or conditional",
    why: "a test that does not run looks like one that passes; what needs the machine lies in test/system and says so",
    files: /^test\/.*\.ts$/,
    check: inCode(/\b(?:test|it|describe)(?:\.\w+)*\.(?:skip|only|todo|skipIf|todoIf|if|failing)\b/),
    bad: [
      ["test/unit/a.test.ts", 'test.skip("a", () => undefined);'],
      ["test/unit/a.test.ts", 'describe.only("a", () => undefined);'],
      ["test/unit/a.test.ts", 'test.if(root)("a", () => undefined);'],
    ],
    good: [["test/unit/a.test.ts", 'test.each([1])("a", () => undefined);']],
  },
  {
    says: "no type check is switched off",
    why: "the types carry the lifecycle; one hole and a wrong status compiles",
    files: CODE,
    check: inText(/\bas any\b|@ts-ignore|@ts-nocheck/),
    bad: [["src/cli/a.ts", "const a = b as any;"]],
  },
  {
    says: "no file names a place on the machine that it was written on",
    why: "strangers have other directories",
    files: ALL,
    check: inText(/(?<![\w.$])\/(?:work|root)\/\w/),
    bad: [["README.md", "see /root/notes.md"]],
    good: [["README.md", "in /$bunfs/root/outbox and test/work/a"]],
  },
  {
    says: "no file names a package registry's host",
    why: "packages come from whatever registry the reader's own settings name",
    files: ALL,
    check: inText(/\bregistry\.[a-z]+\.|\bnpmmirror\b|\bartifactory\b/i),
    bad: [["package-lock.json", '"https://registry.example.org/citty.tgz"']],
  },
  {
    says: "the lockfile says what a package is, not where it lay",
    why: "an address would pin one registry; the integrity hash already pins the content",
    files: /^package-lock\.json$/,
    check: inText(/"resolved"/),
    bad: [["package-lock.json", '{ "resolved": "x" }']],
  },
  {
    says: "package.json names exact versions",
    why: "a version is a decision and changes by a commit",
    files: /^package\.json$/,
    check: (_, text) => {
      const { dependencies = {}, devDependencies = {} }: Readonly<Record<string, Readonly<Record<string, string>>>> = JSON.parse(text);
      const versions = Object.entries({ ...dependencies, ...devDependencies });
      return versions.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version)).map(([name, version]) => `${name} is ${version}`);
    },
    bad: [
      ["package.json", '{ "dependencies": { "a": "^1.0.0" } }'],
      ["package.json", '{ "devDependencies": { "a": "latest" } }'],
    ],
  },
];

/** All that the rule has against the file. */
export function complaints(rule: Rule, path: string, text: string): readonly string[] {
  if (path === SAMPLES || !rule.files.test(path) || Object.hasOwn(rule.except ?? {}, path)) return [];
  return rule.check(path, text).map((complaint) => `${path}: ${complaint}; ${rule.says}, because ${rule.why}`);
}

/** Looks for the pattern everywhere, comments included. */
function inText(pattern: RegExp): Rule["check"] {
  return (_, text) =>
    text.split("\n").flatMap((line, index) => (pattern.test(line) ? [`line ${index + 1}: ${line.trim().slice(0, 120)}`] : []));
}

/** Looks for the pattern in the code without its comments and types, as the transpiler prints it. */
function inCode(pattern: RegExp): Rule["check"] {
  const transpiler = new Bun.Transpiler({ loader: "ts", deadCodeElimination: false, trimUnusedImports: false });
  return (_, text) => {
    const found = pattern.exec(transpiler.transformSync(text));
    return found === null ? [] : [found[0].trim().slice(0, 120)];
  };
}
