/**
 * Settings for all commands that can afford the `yaml` package: it knows the line of everything, so that each problem is
 * told with its place, what was found there and what was probably meant.
 */
import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  visit,
  type YAMLError,
} from "yaml";
import type { Key } from "./kinds.ts";
import { openSource, type Source } from "./locate.ts";
import { sentence, SettingsError, type Spot, type Told } from "./problem.ts";
import { interpret } from "./resolve.ts";
import type { Choice, Loaded } from "./settings.ts";
import { shown } from "./shown.ts";

/** Settings with the place of each. */
export interface Explained extends Loaded {
  /** The line of the file that sets this, or null when no line does. */
  readonly lineOf: (path: readonly Key[]) => number | null;
}

/**
 * Reads the settings that hold, and refuses repeated keys.
 * @throws SettingsError what is wrong in the file, each with its place
 * @throws OutboxError `settings` (missing, no text file), `permission` (others could change it)
 */
export function loadSettings(choice: Choice): Explained {
  return explain(openSource(choice));
}

/** As `loadSettings`, for a file that has already been read. */
export function explain(source: Source): Explained {
  const document = read(source.text ?? "");
  const interpreted = document.readable ? interpret(document.value, source.place) : { problems: [] };
  const wrong = "problems" in interpreted ? interpreted.problems : [];
  const told = [
    ...document.problems,
    ...wrong.map((problem) => ({ spot: document.spotOf(problem.path, problem.of), message: sentence(problem) })),
  ];
  if (told.length > 0 || "problems" in interpreted) throw new SettingsError(source.file ?? "settings", told);
  return { settings: interpreted.settings, file: source.file, origin: source.origin, lineOf: document.lineOf };
}

interface ReadDocument {
  /** What a program sees; meaningless unless `readable`. */
  readonly value: unknown;
  readonly readable: boolean;
  readonly problems: readonly Told[];
  /** Where a problem is seen: at the name or at the value of what the path leads to, or of the last part that exists. */
  readonly spotOf: (path: readonly Key[], of: "key" | "value") => Spot;
  /** The line that sets this, or null. */
  readonly lineOf: (path: readonly Key[]) => number | null;
}

/** Aliases that stand for other aliases multiply; past this many it is no settings file. */
const MOST_ALIASES = 10_000;

const TOO_DEEP = "nested too deeply for settings";

const START: Spot = { line: 1, column: 1 };

function read(text: string): ReadDocument {
  const counter = new LineCounter();
  const spot = (offset: number): Spot => {
    const { line, col } = counter.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const unreadable = (problems: readonly Told[]): ReadDocument => ({
    value: null,
    readable: false,
    problems,
    spotOf: () => START,
    lineOf: () => null,
  });
  let document: Document.Parsed;
  try {
    document = parseDocument(text, { lineCounter: counter, merge: true, prettyErrors: false, logLevel: "error" });
  } catch (error) {
    if (error instanceof RangeError) return unreadable([{ spot: START, message: TOO_DEEP }]);
    throw error;
  }
  // One slip makes many syntax errors; the first one is the slip.
  const broken = document.errors.find((error) => error.code !== "DUPLICATE_KEY");
  if (broken !== undefined) return unreadable([{ spot: spot(broken.pos[0]), message: syntax(broken, text) }]);
  const twice = document.errors.map((error) => ({ spot: spot(error.pos[0]), message: syntax(error, text) }));
  try {
    const odd = oddities(document, spot);
    if (odd.length > 0) return unreadable([...twice, ...odd]);
    const value: unknown = document.toJS({ maxAliasCount: MOST_ALIASES });
    const spotOf = (path: readonly Key[], of: "key" | "value") => spotIn(document, path, of, spot);
    const lineOf = (path: readonly Key[]) => {
      const steps = stepsTo(document, path);
      const last = steps.at(-1);
      return steps.length === path.length && last !== undefined ? spot(offsetOf(last, "key") ?? 0).line : null;
    };
    return { value, readable: true, problems: twice, spotOf, lineOf };
  } catch (error) {
    if (error instanceof RangeError) return unreadable([{ spot: START, message: TOO_DEEP }]);
    if (error instanceof ReferenceError)
      return unreadable([{ spot: START, message: "has aliases (*name) that lead back to themselves or multiply" }]);
    throw error;
  }
}

/** What YAML allows, and what people do not mean or the two parsers read differently. */
function oddities(document: Document.Parsed, spot: (offset: number) => Spot): Told[] {
  const told: Told[] = [];
  const tell = (node: Node, message: string) => told.push({ spot: spot(node.range?.[0] ?? 0), message });
  if (document.directives.yaml.explicit === true && document.directives.yaml.version !== "1.2")
    told.push({ spot: START, message: `%YAML ${document.directives.yaml.version} is not understood; settings are YAML 1.2` });
  visit(document, {
    Node(_, node) {
      if (!isAlias(node) && node.tag !== undefined) tell(node, `a tag (${shown(node.tag)}) has no meaning here; take it out`);
    },
    Alias(_, node) {
      if (node.resolve(document) === undefined)
        tell(node, `*${shown(node.source)} stands for nothing: no &${shown(node.source)} comes before it`);
    },
    Pair(_, pair) {
      const { key } = pair;
      // In quotes it is a name like any other.
      if (isScalar(key) && typeof key.value === "symbol" && !isMergeable(pair.value, document))
        tell(key, "<< takes in a mapping (*name) or a list of mappings");
      const name = isScalar(key) ? plainName(key.value) : null;
      if (isScalar(key) && name !== null && (key.value === null || key.source !== name))
        tell(key, `a name that YAML reads as ${name}; write it in quotes`);
      if (isCollection(key)) tell(key, "a name must be a word; a list or mapping stands here");
    },
  });
  return told;
}

/** What YAML made of a name that is not text: `1.1` of `1.10`. Null for text. */
function plainName(value: unknown): string | null {
  if (value === null) return "nothing";
  return typeof value === "number" || typeof value === "boolean" ? String(value) : null;
}

function syntax(error: YAMLError, text: string): string {
  const [offset] = error.pos;
  const start = Math.max(text.lastIndexOf("\n", offset - 1), text.lastIndexOf("\r", offset - 1)) + 1;
  const line = /^[^\r\n]*/.exec(text.slice(start))?.[0] ?? "";
  if (error.code === "DUPLICATE_KEY") {
    const name = /^("[^"]*"|'[^']*'|[^\s:,{}]+)/.exec(text.slice(offset))?.[0] ?? "a name";
    return `${shown(name)} is set twice in one mapping; keep one of them`;
  }
  if (error.code === "RESOURCE_EXHAUSTION") return TOO_DEEP;
  if (error.code === "TAB_AS_INDENT") return "a tab in the indentation; YAML takes spaces only";
  if (error.code === "MULTIPLE_DOCS") return "a second document begins here; the file holds one";
  const placeholder = /(?<!["'{])\{[A-Za-z_]+\}(?!["'}])/.exec(line)?.[0];
  const hint = placeholder === undefined ? "" : `; write ${shown(placeholder)} in quotes`;
  return `not YAML: ${shown((error.message.split("\n")[0] ?? "").replace(/:$/, ""), 120)}${hint}`;
}

type Step = Pair | Node;

/** The pairs and items along a path, as far as they exist. */
function stepsTo(document: Document.Parsed, path: readonly Key[]): Step[] {
  const steps: Step[] = [];
  let node = follow(document.contents, document);
  for (const key of path) {
    const step = stepIn(node, key, document);
    if (step === null) break;
    steps.push(step);
    node = follow(isPair(step) ? step.value : step, document);
  }
  return steps;
}

function stepIn(node: unknown, key: Key, document: Document.Parsed): Step | null {
  if (isSeq(node)) {
    const item = typeof key === "number" ? node.items[key] : undefined;
    return isNode(item) || isPair(item) ? item : null;
  }
  if (!isMap(node)) return null;
  // Of repeated keys the last one holds.
  const own = node.items.findLast((pair) => isScalar(pair.key) && String(pair.key.value) === String(key));
  if (own !== undefined) return own;
  for (const pair of node.items) {
    if (!isMerge(pair)) continue;
    const merged = follow(pair.value, document);
    for (const from of isSeq(merged) ? merged.items : [merged]) {
      const step = stepIn(follow(from, document), key, document);
      if (step !== null) return step;
    }
  }
  return null;
}

function isMerge(pair: Pair): boolean {
  return isScalar(pair.key) && (pair.key.value === "<<" || typeof pair.key.value === "symbol");
}

function isMergeable(value: unknown, document: Document.Parsed): boolean {
  const from = follow(value, document);
  return isMap(from) || (isSeq(from) && from.items.every((each) => isMap(follow(each, document))));
}

function follow(node: unknown, document: Document.Parsed): unknown {
  return isAlias(node) ? node.resolve(document) : node;
}

function spotIn(document: Document.Parsed, path: readonly Key[], of: "key" | "value", spot: (offset: number) => Spot): Spot {
  const steps = stepsTo(document, path);
  const last = steps.at(-1);
  if (last === undefined) return START;
  return spot(offsetOf(last, steps.length === path.length ? of : "key") ?? 0);
}

/** A value that begins on a later line than its name is best found by the name. */
function offsetOf(step: Step, of: "key" | "value"): number | undefined {
  if (!isPair(step)) return step.range?.[0];
  const byName = isNode(step.key) ? step.key.range?.[0] : undefined;
  const value = step.value;
  const inline = isNode(value) && !(isCollection(value) && value.flow !== true) && !(isScalar(value) && value.value === null);
  return of === "value" && inline ? value.range?.[0] : byName;
}
