/** Settings: init, config check, show, path, schema; and what stands in their way. */
import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Place } from "./outbox.ts";

/** Writes a settings file that is trusted and answers its path. */
function settings(place: Place, text: string): string {
  const file = join(place.home, "settings.yaml");
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

test("init writes the user's file, private, and config check asks only for a template", async () => {
  using place = new Place();
  const file = join(place.home, ".config/outbox/settings.yaml");
  await place.run(["init"], { stdout: `${file}\n` });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(join(file, "..")).mode & 0o777).toBe(0o700);
  await place.run(["config", "path"], { stdout: `${file}\n` });
  await place.run(["config", "check"], {
    stdout: `${file}: ok\n`,
    stderr: `outbox: ${file}: dispatch.notify_template is not set, so nothing can be delivered\n`,
  });
  const text = readFileSync(file, "utf8").replace("# notify_template", "notify_template");
  writeFileSync(file, text);
  await place.run(["config", "check"], { stdout: `${file}: ok\n` });
});

test("init writes the file that is named, and never over an existing one or through a link", async () => {
  using place = new Place();
  const file = join(place.home, "mine.yaml");
  await place.run(["init", "mine.yaml"], { stdout: `${file}\n` });
  const again = { code: 1, stderr: `outbox: ${file} exists already, and is left as it is; edit it, or name another file\n` };
  await place.run(["init", "mine.yaml"], again);
  await place.run(["init", "--config", file], again);
  await place.run(["init"], again, { env: { OUTBOX_CONFIG: file } });
  symlinkSync(join(place.home, "elsewhere"), join(place.home, "link.yaml"));
  await place.run(["init", "link.yaml"], { code: 1, stderr: /exists already/ });
  await place.run(["init", "no/such/place.yaml"], { code: 74, stderr: /its directory does not exist; make it first\n$/ });
});

test("init says at once that its file will be refused where others can write", async () => {
  using place = new Place();
  const open = join(place.home, "open");
  mkdirSync(open);
  chmodSync(open, 0o777);
  const file = join(open, "s.yaml");
  await place.run(["init", file], { stdout: `${file}\n`, stderr: new RegExp(`; chmod go-w ${open}\n$`) });
});

test("config check tells every mistake on a line of its own and exits 78", async () => {
  using place = new Place();
  const file = settings(place, "dispatch:\n  timeot: 3s\n  notify_template: [n, '{delivr_to}']\nlog: { level: '\\u001b[2J' }\n");
  const told = [
    `${file}:2:3: dispatch.timeot is no setting; did you mean timeout?`,
    `${file}:3:24: dispatch.notify_template[1] is "{delivr_to}", no placeholder; did you mean {deliver_to}?`,
    `${file}:4:15: log.level is "\\u001b[2J", must be error, warn, info or debug`,
  ];
  await place.run(["config", "check", "--config", file], { code: 78, stderr: told.map((line) => `outbox: ${line}\n`).join("") });
  const [answer] = await place.json(["config", "check", "--config", file], { code: 78 });
  expect(answer).toEqual({ file, ok: false, problems: told, warnings: [] });
});

test("a wrong file stops commands with its first mistake and the number of others", async () => {
  using place = new Place();
  const file = settings(place, "a: 1\nb: 2\n");
  for (const command of [["ls"], ["show", "1"], ["config", "show"], ["enqueue", "--kind", "k", "--to", "d"]])
    await place.run([...command, "--config", file], {
      code: 78,
      stderr: `outbox: ${file}:1:1: a is no setting; 1 more: outbox config check lists them\n`,
    });
});

test("a file or directory that others can write stops all commands with 77 and the chmod", async () => {
  using place = new Place();
  const file = settings(place, "run: {}\n");
  chmodSync(file, 0o666);
  for (const command of [["config", "check"], ["config", "path"], ["ls"], ["enqueue", "--kind", "k", "--to", "d", "--db", "x.db"]])
    await place.run([...command], { code: 77, stderr: new RegExp(`; chmod go-w ${file}\n$`) }, { env: { OUTBOX_CONFIG: file } });
});

test("repeated names stop all commands but enqueue and revive", async () => {
  using place = new Place();
  const file = settings(place, "run: { interval: 1s, interval: 2s }\n");
  await place.run(["enqueue", "--config", file, "--kind", "k", "--to", "d"], { stdout: /^[0-9a-f]{32}\n$/ });
  for (const command of [["ls"], ["show", "1"]])
    await place.run([...command, "--config", file], {
      code: 78,
      stderr: `outbox: ${file}:1:22: interval is set twice in one mapping; keep one of them\n`,
    });
});

test("config show says where each value comes from", async () => {
  using place = new Place();
  const file = settings(place, "dispatch:\n  timeout: 3s\nsources: { shop: shop.db }\n");
  const show = async (flags: readonly string[], env = {}) =>
    new Map((await place.json(["config", "show", "--config", file, ...flags], {}, { env })).map((one) => [one["name"], one]));
  const plain = await show([]);
  expect(plain.get("dispatch.timeout")).toEqual({ name: "dispatch.timeout", value: "3s", from: `${file}:2` });
  expect(plain.get("database")).toEqual({ name: "database", value: place.database, from: "default" });
  expect((await show(["--db", "x.db"])).get("database")).toMatchObject({ value: join(place.home, "x.db"), from: "--db" });
  expect((await show(["--source", "shop"])).get("database")).toMatchObject({ value: join(place.home, "shop.db"), from: "--source" });
  expect((await show([], { OUTBOX_DB: "/y.db" })).get("database")).toMatchObject({ value: "/y.db", from: "OUTBOX_DB" });
  await place.run(["config", "show", "--config", file], { stdout: /^SETTING +VALUE +FROM\n(.+\n)*dispatch\.timeout +3s +\S+:2\n/ });
});

test("config path says no where there is no file, and stops at a named one that is missing", async () => {
  using place = new Place();
  await place.run(["config", "path"], {
    code: 1,
    stderr: /^outbox: there is no settings file, so the built-in settings hold; outbox init writes /,
  });
  await place.run(["config", "check"], { stdout: "built-in settings: ok\n", stderr: /notify_template is not set/ });
  await place.run(["config", "path", "--config", "gone.yaml"], {
    code: 78,
    stderr: /^outbox: --config names a settings file that does not exist: /,
  });
});

test("config schema prints the JSON Schema", async () => {
  using place = new Place();
  const text = await place.run(["config", "schema"], { stdout: /^\{\n/ });
  expect(JSON.parse(text)).toEqual(JSON.parse(readFileSync(join(import.meta.dir, "../../src/settings/schema.json"), "utf8")) as unknown);
});
