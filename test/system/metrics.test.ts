/** The metrics, as Prometheus's own reader takes them. `scripts/system.ts` runs this; it needs promtool. */
import { expect, test } from "bun:test";
import { prometheus } from "../../src/cli/prometheus.ts";
import { Workstation, sh } from "../cli/running.ts";

/** What promtool says of a page, and what it exits with: 0, 1 for a page that is broken, 3 for names that are unwise. */
function promtool(page: string): { readonly code: number; readonly said: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["promtool", "check", "metrics"], { stdin: new TextEncoder().encode(page) });
  return { code: exitCode, said: stdout.toString() + stderr.toString() };
}

/** Every character that is one unit, but for letters and digits; NUL and invalid text cannot be handed in. */
const NAMES = [
  "\\",
  '"',
  "\\\\n",
  "\\\n",
  'x",y="',
  "é😀\u202e\ufeff",
  ...Array.from({ length: 0xa0 }, (_, code) => String.fromCharCode(code + 1)),
];

test("promtool takes the page of an empty database, and that of one with everything in it", async () => {
  using place = new Workstation().settings({
    sources: { shop: "shop.db" },
    dispatch: { notify_template: sh("exit 1"), max_attempts: 1, circuit: { failures: 1 } },
  });
  await place.enqueue({});
  await place.run(["purge", "1"], { stdout: /./ });
  await place.run(["enqueue", "--kind", "k", "--to", "d", "--source", "shop"], { stdout: /./ });
  expect(promtool(await place.run(["stats", "--prometheus"], { stdout: /./ }).then((page) => `${page}\n`))).toEqual({ code: 0, said: "" });
  await place.enqueue(...NAMES.map((name) => ({ kind: name, deliver_to: name })));
  await place.start(["run", "--once"]);
  const page = await place.run(["stats", "--prometheus"], { stdout: /outbox_circuit_open\{/ });
  expect(page.match(/^outbox_attempts_total\{source="default"/gm)).toHaveLength(101);
  expect(promtool(`${page}\n`)).toEqual({ code: 0, said: "" });
});

test("a page that is broken is noticed, and so is a name that is unwise", () => {
  expect(promtool('outbox_attempts_total{kind="a"b"} 1\n').code).not.toBe(0);
  expect(promtool("# HELP outbox_attempts x\n# TYPE outbox_attempts counter\noutbox_attempts 1\n").code).not.toBe(0);
  expect(promtool(prometheus([]))).toEqual({ code: 0, said: "" });
});
