import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { loadSettings } from "../../../src/settings/complain.ts";
import { homeOf, userFile } from "../../../src/settings/locate.ts";
import { placeOf } from "../../../src/settings/place.ts";
import { readSettings } from "../../../src/settings/read.ts";
import { interpret } from "../../../src/settings/resolve.ts";
import type { Choice } from "../../../src/settings/settings.ts";
import { directory, removeAll, trouble, UID, write } from "./scratch.ts";

afterAll(removeAll);

/** A home with settings, and an environment that knows nothing else. */
function home(): { readonly path: string; readonly file: string; readonly env: Record<string, string> } {
  const path = directory();
  mkdirSync(join(path, ".config/outbox"), { recursive: true, mode: 0o700 });
  const file = write(join(path, ".config/outbox/settings.yaml"), "run: { interval: 1s }");
  return { path, file, env: { HOME: path } };
}

/** Both ways to read must find the same. */
async function both(choice: Omit<Choice, "uid">) {
  const { lineOf: _, ...careful } = loadSettings({ ...choice, uid: UID });
  expect(await readSettings({ ...choice, uid: UID })).toEqual(careful);
  return careful;
}

describe("the settings file", () => {
  test("is the one that --config names, before all others", async () => {
    const { env } = home();
    const file = write(join(directory(), "s.yaml"), "run: { interval: 2s }");
    const loaded = await both({ config: file, env: { ...env, OUTBOX_CONFIG: "/nowhere" } });
    expect(loaded).toMatchObject({ file, origin: "--config", settings: { run: { intervalMs: 2_000 } } });
  });

  test("is else the one that OUTBOX_CONFIG names, which counts as unset when empty", async () => {
    const { env, file: user } = home();
    const file = write(join(directory(), "s.yaml"), "");
    expect(await both({ env: { ...env, OUTBOX_CONFIG: file } })).toMatchObject({ file, origin: "OUTBOX_CONFIG" });
    expect(await both({ env: { ...env, OUTBOX_CONFIG: "" } })).toMatchObject({ file: user, origin: "user" });
  });

  test("is else the user's, under XDG_CONFIG_HOME where that is an absolute path", async () => {
    const { env, file, path } = home();
    expect(await both({ env })).toMatchObject({ file, origin: "user", settings: { run: { intervalMs: 1_000 } } });
    expect(await both({ env: { ...env, XDG_CONFIG_HOME: ".config" } })).toMatchObject({ file, origin: "user" });
    const other = await both({ env: { HOME: "/nowhere", XDG_CONFIG_HOME: join(path, ".config") } });
    expect(other).toMatchObject({ file, origin: "user" });
  });

  test("may be named from the current directory, from home, and through a link", async () => {
    const { env, file, path } = home();
    const links = directory();
    symlinkSync(file, join(links, "link.yaml"));
    expect(await both({ config: "./link.yaml", cwd: links, env: {} })).toMatchObject({ file, origin: "--config" });
    expect(await both({ config: "../outbox/settings.yaml", cwd: join(path, ".config/outbox"), env: {} })).toMatchObject({ file });
    expect(await both({ env: { ...env, OUTBOX_CONFIG: "~/.config/outbox/settings.yaml" } })).toMatchObject({ file });
  });

  test.each(["/nowhere/s.yaml", "s.yaml", ""])("is missing as %j, which is an error and not a default", async (config) => {
    const { env, path } = home();
    for (const act of [loadSettings, readSettings])
      expect(await trouble(() => act({ config, cwd: path, env, uid: UID }))).toMatchObject({ kind: "settings" });
    const said = await trouble(() => readSettings({ config: "s.yaml", cwd: path, env, uid: UID }));
    expect(said.message).toBe(`--config names a settings file that does not exist: ${path}/s.yaml`);
  });

  test("is not passed over when it is a link to nothing", async () => {
    const path = directory();
    mkdirSync(join(path, "outbox"));
    symlinkSync("/nowhere", join(path, "outbox/settings.yaml"));
    expect(await trouble(() => readSettings({ env: { XDG_CONFIG_HOME: path }, uid: UID }))).toMatchObject({ kind: "settings" });
  });

  test("stops the quick reader too when others can write it", async () => {
    const { env, file } = home();
    chmodSync(file, 0o666);
    for (const act of [loadSettings, readSettings])
      expect(await trouble(() => act({ env, uid: UID }))).toMatchObject({ kind: "permission" });
  });

  test("is worded by the careful reader when the quick one finds it wrong", async () => {
    const { env, file } = home();
    write(file, "run: { intervall: 1s }");
    expect((await trouble(() => readSettings({ env, uid: UID }))).message).toBe(
      `${file}:1:8: run.intervall is no setting; did you mean interval?`,
    );
  });
});

describe("without a settings file", () => {
  test("the built-in settings hold", () => {
    expect(interpret(undefined, placeOf("/", "/home/me", {}))).toEqual({
      settings: {
        database: "/home/me/.local/state/outbox/outbox.db",
        databaseIsDefault: true,
        sources: new Map([["default", "/home/me/.local/state/outbox/outbox.db"]]),
        dispatch: {
          default: {
            notifyTemplate: null,
            timeoutMs: 10_000,
            maxAttempts: 8,
            backoff: { baseMs: 30_000, maxMs: 1_800_000, jitter: 0.2 },
            permanentExitCodes: [],
            env: {},
          },
          routes: new Map(),
          concurrency: 8,
          perDestination: 4,
          onConfigError: "wait",
          circuit: { failures: 5, cooldownMs: 60_000 },
        },
        run: { intervalMs: 30_000, shutdownGraceMs: 10_000 },
        retention: { deliveredMs: 604_800_000, deadLetterMs: 2_592_000_000, inboxMs: 2_592_000_000 },
        limits: { payloadBytes: 1_048_576, outputBytes: 8_192 },
        log: { level: "info", format: "text" },
      },
    });
  });

  test.each([
    [{ HOME: "/h", XDG_STATE_HOME: "/state/" }, "/state/outbox/outbox.db"],
    [{ HOME: "/h/", XDG_STATE_HOME: "state" }, "/h/.local/state/outbox/outbox.db"],
    [{ HOME: "/h", XDG_STATE_HOME: "" }, "/h/.local/state/outbox/outbox.db"],
  ])("the database of %j is %s", (env, database) => {
    expect(placeOf("/", homeOf(env), env).database).toBe(database);
  });

  test.each([{}, { HOME: "" }, { HOME: "relative" }])("home is what the system says where the environment is %j", (env) => {
    expect(homeOf(env)).toBe(homedir());
    expect(userFile(env)).toBe(`${homedir()}/.config/outbox/settings.yaml`);
  });

  test("a relative path in a file starts where its real name lies", async () => {
    const real = realpathSync(directory());
    const links = directory();
    symlinkSync(write(join(real, "s.yaml"), "database: x.db\ndispatch: { notify_template: [./n] }"), join(links, "s.yaml"));
    const { settings } = await both({ config: join(links, "s.yaml"), env: {} });
    expect(settings.database).toBe(join(real, "x.db"));
    expect(settings.dispatch.default.notifyTemplate).toEqual([join(real, "n")]);
  });
});
