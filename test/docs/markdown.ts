/** What a document says, taken apart: code blocks, links, names of files and tests. Pure, so that each finding can be shown to fail. */

export interface Block {
  /** The word after the fence: `sh`, `console`, `yaml`, `ts`, `crontab`, `ini`. */
  readonly language: string;
  readonly text: string;
  /** Line of its fence in the document. */
  readonly line: number;
  /** The file that its first comment names, `~/bin/post`: the block is that file, not something to run. */
  readonly file: string | null;
}

/** A console block, taken apart: what is typed and what is then on the screen. */
export interface Step {
  readonly command: string;
  readonly shown: string;
}

export function blocksOf(document: string): Block[] {
  return [...document.matchAll(/^```([^\n]*)\n([\s\S]*?)^```$/gm)].map(({ 1: language = "", 2: text = "", index }) => ({
    language,
    text,
    line: document.slice(0, index).split("\n").length,
    file: /^(?:#!.*\n)?(?:#|\/\/) (~\/\S+)$/m.exec(text.split("\n").slice(0, 2).join("\n"))?.[1] ?? null,
  }));
}

export function stepsOf(text: string): Step[] {
  const steps: { command: string; shown: string }[] = [];
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const last = steps.at(-1);
    if (line.startsWith("$ ")) steps.push({ command: line.slice(2), shown: "" });
    else if (last !== undefined) last.shown += `${line}\n`;
  }
  return steps;
}

/**
 * Screens alike: an id stands for an id, always the same one for the same; a duration for a duration; widths of columns do not
 * count, because they follow from both.
 */
export function screens(): { readonly documented: (text: string) => string; readonly seen: (text: string) => string } {
  const reader = (): ((text: string) => string) => {
    const ids = new Map<string, string>();
    return (text) =>
      text
        .replaceAll(/\b[0-9a-f]{32}\b/g, (id) => {
          const known = ids.get(id) ?? `id-${ids.size + 1}`;
          ids.set(id, known);
          return known;
        })
        .replaceAll(/\b\d+(?:\.\d+)?(?:ms|[smhd])(?:\d+(?:ms|[smhd]))*\b/g, "DURATION")
        .replaceAll(/[ \t]+/g, " ")
        .replaceAll(/^ | $/gm, "")
        .trim();
  };
  return { documented: reader(), seen: reader() };
}

/** Links without a host: `FILE#heading` or `#heading` that lead nowhere. `read`: the text of a file, or null. */
export function brokenLinks(document: string, read: (file: string) => string | null): string[] {
  const targets = [...withoutCode(document).matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? "");
  return targets
    .filter((target) => !/^https?:/.test(target))
    .filter((target) => {
      const [file = "", heading] = target.split("#");
      const text = file === "" ? document : read(file);
      return text === null || (heading !== undefined && !headings(text).includes(heading));
    });
}

function headings(document: string): string[] {
  return [...withoutCode(document).matchAll(/^#+ (.+)$/gm)].map((match) =>
    (match[1] ?? "")
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
}

/** Files of ours that the text names in code marks; rooms are written without `src/`. */
export function namedFiles(document: string): string[] {
  const found = withoutBlocks(document).matchAll(/`((?:src|test|scripts|core|settings|store|transport|dispatcher|cli)\/[\w./-]*\w)`/g);
  return [...found].map((match) => match[1] ?? "").map((path) => (/^(?:src|test|scripts)\//.test(path) ? path : `src/${path}`));
}

export interface NamedTest {
  readonly file: string;
  readonly name: string;
}

/** Tests as the promises name them: a file in code marks, a colon, names in quotes. */
export function namedTests(document: string): NamedTest[] {
  return [...document.matchAll(/`(test\/[\w./-]+\.test\.ts)`:((?:,? "[^"\n]+")+)/g)].flatMap(({ 1: file = "", 2: names = "" }) =>
    [...names.matchAll(/"([^"]+)"/g)].map((match) => ({ file, name: match[1] ?? "" })),
  );
}

/** Whether the source has a test of exactly this name. */
export function hasTest(source: string, name: string): boolean {
  const quoted = name.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`\\(\\s*(["'\`])${quoted}\\1,`).test(source);
}

/** Hosts and absolute paths that only one machine, or somebody's site, can have. */
export function strangers(text: string): string[] {
  const document = text.replaceAll(/<!--.*?-->/g, "");
  const hosts = [...document.matchAll(/https?:\/\/([^/\s)"'`]+)/g)].map((match) => match[1] ?? "").filter((host) => !KNOWN_HOST.test(host));
  const paths = [...document.matchAll(/(?<![\w.~$}%>*/-])\/[A-Za-z][\w.-]*(?:\/[\w.-]+)*/g)].map(([path]) => path);
  return [...hosts, ...paths.filter((path) => !KNOWN_PATH.test(path))];
}

const KNOWN_HOST = /^(?:[\w-]+\.)*example$|^semver\.org$/;
/** What every Unix has, the settings file of the whole machine, and the home of a person called me. */
const KNOWN_PATH = /^\/(?:usr|bin|dev|proc|home\/me|etc\/outbox)(?:\/|$)/;

function withoutBlocks(document: string): string {
  return document.replaceAll(/^```[\s\S]*?^```$/gm, "");
}

function withoutCode(document: string): string {
  return withoutBlocks(document).replaceAll(/`[^`\n]*`/g, "code");
}
