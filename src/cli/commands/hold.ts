/** `outbox hold`: nothing of a destination, kind or key is sent until it is resumed; without either, the list of holds. */
import { OutboxError } from "../../core/errors.ts";
import { formatTime } from "../../core/time.ts";
import type { Hold, HoldScope, Store } from "../../store/store.ts";
import { OK } from "../exit.ts";
import type { Io } from "../io.ts";
import { type Column, escapeControls, jsonLine, relative, table } from "../output.ts";
import type { Args } from "../parse.ts";
import { onDatabase } from "../place.ts";
import { argvText } from "../request.ts";
import { inWords, isSameScope, nothingNamed, scopeOf } from "../scope.ts";
import { duration } from "../values.ts";

const COLUMNS: readonly Column[] = [
  { title: "TO", elastic: true },
  { title: "KIND", elastic: true },
  { title: "ORDERING KEY", elastic: true },
  { title: "SINCE" },
  { title: "ENDS" },
  { title: "BY", elastic: true },
  { title: "NOTE", elastic: true },
];

export function run(args: Args, io: Io): Promise<number> {
  const scope = scopeOf(args);
  const forMs = duration(args, "for");
  if (forMs === 0) throw new OutboxError("usage", "--for 0 would be over at once", "give a longer time, or leave it out: until resumed");
  const note = argvText(args, "note", "convert it") ?? null;
  if (scope === null && (forMs !== undefined || note !== null || args.on("dry-run"))) throw nothingNamed("hold");
  return onDatabase(args, io, async (store) => {
    if (scope === null) return printList(await standing(store, io), args, io);
    const terms = { actor: `uid ${io.uid}`, forS: forMs === undefined ? null : forMs / 1_000, note };
    const begun = args.on("dry-run") ? await wouldBe(store, scope, terms, io) : await store.hold(scope, terms);
    if (args.on("json")) io.out(jsonLine(begun));
    else io.out(`${escapeControls(sentence(scope, begun, args.on("dry-run"), io))}\n`);
    return OK;
  });
}

/** Holds whose time is not over; the next claim removes the others. */
async function standing(store: Store, io: Io): Promise<readonly Hold[]> {
  const now = io.clock.now();
  return (await store.holds()).filter(({ ends_at }) => ends_at === null || ends_at > now);
}

/** What the store would answer. A hold that is not made yet has no number. */
async function wouldBe(
  store: Store,
  scope: HoldScope,
  { actor, forS, note }: Parameters<Store["hold"]>[1],
  io: Io,
): Promise<Omit<Hold, "id"> & { readonly id: number | null }> {
  const now = io.clock.now();
  const before = (await store.holds()).find((hold) => isSameScope(hold, scope));
  return {
    id: before?.id ?? null,
    deliver_to: scope.deliverTo,
    kind: scope.kind,
    ordering_key: scope.orderingKey,
    note: note ?? before?.note ?? null,
    created_at: now,
    ends_at: forS === null ? null : now + forS,
    actor,
  };
}

function sentence(scope: HoldScope, { ends_at }: Pick<Hold, "ends_at">, isDry: boolean, io: Io): string {
  const until = ends_at === null ? "until resumed" : `until ${formatTime(ends_at, io.zone)}`;
  return `${inWords(scope)} ${isDry ? "would be" : "are"} held ${until}`;
}

function printList(holds: readonly Hold[], args: Args, io: Io): number {
  if (holds.length === 0) io.err("outbox: nothing is held");
  if (args.on("json")) io.out(holds.map((hold) => jsonLine(hold)).join(""));
  else if (holds.length > 0) {
    const now = io.clock.now();
    const any = (text: string | null): string => text ?? "any";
    const rows = holds.map((hold) => [
      any(hold.deliver_to),
      any(hold.kind),
      any(hold.ordering_key),
      relative(hold.created_at, now),
      hold.ends_at === null ? "-" : relative(hold.ends_at, now),
      hold.actor,
      hold.note ?? "",
    ]);
    io.out(table(COLUMNS, rows, io.terminal()));
  }
  return OK;
}
