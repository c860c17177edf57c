/** The README once more, from top to bottom, with the python3 and the sqlite3 of this machine. `scripts/system.ts` runs this. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { follower } from "../docs/follow.ts";
import { blocksOf } from "../docs/markdown.ts";
import { Reader, ROOT } from "../docs/reader.ts";

setDefaultTimeout(120_000);

test("the examples of the README, in order, with python3 and the sqlite3 shell", () => {
  using reader = new Reader(true);
  const follow = follower(reader);
  const blocks = blocksOf(readFileSync(join(ROOT, "README.md"), "utf8"));
  expect(blocks.filter(({ language }) => language === "python").length).toBeGreaterThan(0);
  for (const each of blocks) expect({ line: each.line, wrong: follow(each) }).toEqual({ line: each.line, wrong: null });
  using db = new Database(reader.path("~/shop/shop.db"), { readonly: true });
  const entered = db.query<{ body: string; status: string }, []>(
    "SELECT e.body, o.status FROM dispatch_enqueue e JOIN dispatch_outbox o USING (id) WHERE o.deliver_to LIKE '%/paid' ORDER BY o.seq",
  );
  expect(entered.all().map(({ body, status }) => [JSON.parse(body), status])).toEqual([7, 8, 9].map((order) => [{ order }, "delivered"]));
});
