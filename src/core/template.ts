/**
 * The argv template. A placeholder is replaced only where it is a whole element, never in element 0, and what it is
 * replaced with is never looked at again: values of a row reach a command as whole argv elements and nothing else.
 */

/** Every placeholder, in the order in which the documentation lists them. */
export const PLACEHOLDERS = [
  "payload",
  "deliver_to",
  "kind",
  "id",
  "attempt",
  "ack_token",
  "body",
  "text",
  "dedup_key",
  "correlation_id",
] as const;
export type Placeholder = (typeof PLACEHOLDERS)[number];

/** These carry the message itself; a template without them gets the envelope on stdin. */
const CARRIES_MESSAGE: readonly Placeholder[] = ["payload", "body", "text"];

/** The placeholder that this element is, or null. */
export function placeholderOf(element: string): Placeholder | null {
  const name = /^\{([a-z_]+)\}$/.exec(element)?.[1];
  return PLACEHOLDERS.find((known) => known === name) ?? null;
}

/** Whether the envelope goes to the command's stdin. */
export function usesStdin(template: readonly string[]): boolean {
  return !template.slice(1).some((element) => {
    const name = placeholderOf(element);
    return name !== null && CARRIES_MESSAGE.includes(name);
  });
}

/** Replaces the placeholders. `value` is asked only for those that occur. */
export function expand(template: readonly string[], value: (name: Placeholder) => string): string[] {
  return template.map((element, index) => {
    const name = index === 0 ? null : placeholderOf(element);
    return name === null ? element : value(name);
  });
}
