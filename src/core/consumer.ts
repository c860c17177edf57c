/** Who handles messages: each consumer handles each message once. */
import { textProblem } from "./text.ts";

/** Who it is where nobody says: most messages have one consumer. */
export const DEFAULT_CONSUMER = "default";

/** In bytes of UTF-8. */
const CONSUMER_LIMIT = 255;

/** What is wrong with the name of a consumer, or null. */
export function consumerProblem(name: string): string | null {
  return textProblem(name, CONSUMER_LIMIT);
}
