/** `enqueue --now`: a message is entered and claimed in one commit, and its command run by this very process. */
import { invariant } from "../core/errors.ts";
import type { CheckedRequest } from "../core/request.ts";
import { runClaim } from "../dispatcher/inline.ts";
import { leaseS, routeOf } from "../dispatcher/plan.ts";
import type { Event } from "../dispatcher/report.ts";
import { hostHolders } from "../host.ts";
import type { Loaded } from "../settings/settings.ts";
import { type Inline, openStore } from "../store/store.ts";
import { createSpawnTransport } from "../transport/spawn.ts";
import { INTERRUPTED } from "./exit.ts";
import { known, tell, warn } from "./handin.ts";
import type { Io } from "./io.ts";
import type { Args } from "./parse.ts";
import { databaseOf, made, withStore, workplace } from "./place.ts";
import { planOf } from "./plan.ts";
import { lineFor } from "./telling.ts";

/** While a command runs the thread never blocks longer on a lock: timers and signals wait behind it (DESIGN section 4). */
const BUSY_MS = 100;

/** Why the message is not sent now. A route at fault is known before, and is told in its own words. */
const REFUSALS: Readonly<Record<Exclude<NonNullable<Inline["refusal"]>, "duplicate">, string>> = {
  "not due": "it is not due yet",
  expired: "its expiry has passed",
  "no route": "nothing says how to send its kind",
  held: "it is held (outbox hold lists what is held)",
  "behind its key": "an earlier message of its ordering key is under way",
  "circuit open": "its destination keeps failing, so its circuit is open",
  "destination full": "as many messages to its destination are being sent as dispatch.per_destination allows",
  taken: "a runner was faster",
};

/**
 * Enters the one message, prints its id and then sends it, where nothing is in its way. The id comes first, so that whatever
 * happens to the command the caller has it.
 * @returns the exit code, which tells of the entry alone
 * @throws OutboxError as a plain `enqueue`
 */
export async function enqueueNow(
  args: Args,
  io: Io,
  loaded: Loaded,
  requests: readonly CheckedRequest[],
  failOnDuplicate: boolean,
): Promise<number> {
  const { settings } = loaded;
  const database = databaseOf(args, io, settings);
  const terms = made(database, io, args.on("allow-network-fs"));
  const transport = createSpawnTransport(io.clock);
  const plan = planOf(loaded, { io, transport, cwd: workplace(io) });
  const [request] = requests;
  invariant(request !== undefined, "without a batch there is one message");
  const route = routeOf(plan, request.kind);
  const fault = route === null ? REFUSALS["no route"] : route.fault();
  const { own: holder } = await hostHolders();
  // From here on a signal lets things come to their end: the id is printed, and a claim is given back.
  const { stop, now } = io.interrupts();
  const claimTerms = { holder, leaseS: leaseS(route), perDestination: plan.perDestination, circuits: plan.circuit.failures > 0 };
  const { answer, claim, refusal } = await withStore(terms, io, async (store): Promise<Inline> => {
    if (fault === null) return store.enqueueClaimed(request, claimTerms);
    const [answer] = await store.enqueue([request]);
    invariant(answer !== undefined, "one message has one answer");
    return { answer, claim: null, refusal: answer.outcome === "duplicate" ? "duplicate" : "no route" };
  });
  if (failOnDuplicate && answer.outcome === "duplicate") throw known(io, request, answer);
  const code = tell(args, io, settings, requests, [answer]);
  if (claim === null) {
    if (refusal === "duplicate") warn(io, `not sent now: the first message of its dedup key stands, and is ${answer.status}`);
    else if (refusal !== null) warn(io, `not sent now, it stays pending: ${fault ?? REFUSALS[refusal]}`);
    return code;
  }
  let told = false;
  await runClaim(
    {
      clock: io.clock,
      transport,
      source: {
        name: args.text("source") ?? "default",
        path: database.path,
        open: () => openStore({ ...terms, missing: "refuse", older: "refuse", busyMs: BUSY_MS }, io),
      },
      plan,
      tell: (event) => {
        told ||= "dispatch" in event;
        sayUnlessWell(event, io);
      },
      holder,
      stop,
      now,
    },
    claim,
  );
  if (!told) warn(io, `${claim.seq} was not sent by this process: its lease was over before its command could start`);
  return now.aborted ? (now.reason === "SIGINT" ? INTERRUPTED.SIGINT : INTERRUPTED.SIGTERM) : code;
}

/** A message that arrived needs no word. */
function sayUnlessWell(event: Event, io: Io): void {
  if (event.kind === "settled" && event.outcome.kind === "ok" && event.result !== "lost") return;
  warn(io, lineFor(event).text);
}
