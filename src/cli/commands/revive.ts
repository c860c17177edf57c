/** `outbox revive`: one heartbeat a seat, once for each epoch (ADR-0059 D6). */
import { OutboxError } from "../../core/errors.ts";
import { checkRequest } from "../../core/request.ts";
import { DEFAULT_REVIVAL_TTL_S, revivalRequests, type RevivalTerms } from "../../core/revival.ts";
import { MAX_TIME } from "../../core/time.ts";
import { policyFor } from "../../settings/settings.ts";
import { handIn, quickSettings } from "../handin.ts";
import type { Io } from "../io.ts";
import { inheritedOrigin } from "../origin.ts";
import type { Args } from "../parse.ts";
import { maxAttempts, replaced } from "../request.ts";
import { duration, timeOrDelay } from "../values.ts";

export async function run(args: Args, io: Io): Promise<number> {
  if (args.words.some((seat) => seat.includes("\ufffd"))) throw replaced("a seat", "convert it");
  const ttlMs = duration(args, "ttl");
  const terms = {
    resetEpoch: resetEpoch(args),
    ttlS: ttlMs === undefined ? DEFAULT_REVIVAL_TTL_S : ttlMs / 1_000,
    maxAttempts: maxAttempts(args),
    notBefore: timeOrDelay(args, "not-before", "delay", io),
  };
  checkOrder(args, terms);
  const origin = inheritedOrigin(io);
  const wanted = revivalRequests(args.words, terms).map((request) => ({ ...request, ...origin }));
  const { settings } = await quickSettings(args, io);
  const requests = wanted.map((request) => {
    const policy = policyFor(settings, request.kind) ?? settings.dispatch.default;
    return checkRequest(request, { payloadBytes: settings.limits.payloadBytes, maxAttempts: policy.maxAttempts });
  });
  return handIn(args, io, settings, requests);
}

/** @throws OutboxError `usage` when they would expire before they may be sent */
function checkOrder(args: Args, { resetEpoch: reset, ttlS, notBefore }: RevivalTerms): void {
  if (notBefore === undefined || reset === 0 || reset + ttlS > notBefore) return;
  const start = args.text("delay") === undefined ? "not-before" : "delay";
  throw new OutboxError(
    "usage",
    `--reset-epoch and --ttl end the heartbeats before --${start} lets them begin`,
    "an expiry lies after the first attempt",
  );
}

function resetEpoch(args: Args): number {
  const text = args.text("reset-epoch");
  if (text === undefined) throw new OutboxError("usage", "revive needs --reset-epoch", "see outbox revive --help");
  const epoch = /^[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : Number.NaN;
  if (epoch >= 0 && epoch <= MAX_TIME) return epoch;
  throw new OutboxError(
    "usage",
    `--reset-epoch "${text}" is no time in epoch seconds`,
    "write seconds since 1970, or 0 when the reset is not known",
  );
}
