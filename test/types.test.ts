/** The library as a package of a project that has settings of its own. */
import { expect, test } from "bun:test";
import { Reader } from "./docs/reader.ts";

/** Takes every public name, and knows what each gives. */
const PROGRAM = `
import { Database } from "bun:sqlite";
import { ack, cancel, countPending, deliver, enqueue, get, inbox, install, list, OutboxError, purge, retry, revive } from "outbox";
import type {
  AckOutcome, Answer, Begun, Changed, ChangeFilter, Claim, ClaimedAnswer, ClaimOptions, DeliverOptions, Delivery, Dispatch, EnqueueRequest, Filter, Handler, HandlerInput, Id,
  InboxClaim, Listed, ListFilter, OperatorOptions, OperatorOutcome, PurgeOptions, RetryOptions, RevivalOptions, Status, Trouble,
} from "outbox";

export type All = [
  AckOutcome, Answer, Begun, Changed, ChangeFilter, Claim, ClaimedAnswer, ClaimOptions, DeliverOptions, Delivery, Dispatch, EnqueueRequest, Filter, Handler, HandlerInput, Id,
  InboxClaim, Listed, ListFilter, OperatorOptions, OperatorOutcome, PurgeOptions, RetryOptions, RevivalOptions, Status, Trouble,
];
const db = new Database("shop.db", { strict: true });
install(db);
const { id, status }: { id: string; status: Status } = enqueue(db, { kind: "k", deliver_to: "d", body: { n: 1 } });
const { claim, refusal } = enqueue(db, { kind: "k", deliver_to: "d" }, { claim: true });
if (claim !== null) {
  const delivery = await deliver(db, claim, ({ dispatch, signal }) => fetch(dispatch.deliver_to, { signal }));
  if (delivery.outcome === "failed") console.log(delivery.error);
}
const seqs: number[] = list(db, { status: ["pending", "dead_letter"] }).map((row) => row.seq);
const answers: string[] = revive(db, ["seat-1"], { reset_epoch: 0 }).map((answer) => answer.outcome);
const acked: boolean = ack(db, id, "token") === "acked";
const dead: Dispatch | null = get(db, 1);
const filter: ChangeFilter = { kind: "k", reason: ["max_attempts"] };
const many: Changed[] = [retry(db, filter, { expires_at: 5e9 }), cancel(db, { all: true }), purge(db, { status: "delivered" })];
console.log(many.map(({ changed, refused }) => changed + refused));
const begun: Begun = inbox.begin(db, "billing", id);
if (begun.outcome === "begun") {
  const kept: InboxClaim = begun.claim;
  const ended: "completed" | "abandoned" | "lost" = Math.random() < 0.5 ? inbox.complete(db, kept) : inbox.abandon(db, kept);
  console.log(ended);
}
console.log(countPending(db).toFixed());
for (const { outcome } of [retry(db, 1, { actor: "me" }), cancel(db, 1), purge(db, 1, { force: true })]) console.log(outcome);
try {
  enqueue(db, { kind: "", deliver_to: "d" });
} catch (error) {
  if (error instanceof OutboxError) console.log(error.kind, error.hint);
}
console.log(status, refusal, seqs, answers, acked, dead);
`;

const EVERY_CHECK = { exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, isolatedModules: true };

test.each([
  ["a bundler's resolution and every check there is", { ...EVERY_CHECK, lib: ["ESNext", "DOM"] }],
  ["Node's resolution", { module: "NodeNext", moduleResolution: "NodeNext" }],
])("a strict program type-checks against the package, with %s", (_, otherwise) => {
  using reader = new Reader();
  reader.write("~/package.json", '{ "type": "module" }');
  reader.write("~/shop.ts", PROGRAM);
  expect(reader.typeCheck("~/shop.ts", otherwise)).toEqual({ code: 0, text: "" });
});

test("its mistakes are found", () => {
  using reader = new Reader();
  reader.write("~/shop.ts", 'import { enqueue } from "outbox";\nenqueue(5, { kind: "k" });\n');
  expect(reader.typeCheck("~/shop.ts", { skipLibCheck: true })).toMatchObject({ code: 1, text: expect.stringContaining("error TS2345") });
});
