/** Where a dispatch comes from: captured when it is entered, given to its command, handed on by what that enters (ADR-003). */
import { textProblem } from "./text.ts";

/** For whom something is done, and as part of what. */
export interface Origin {
  readonly tenant_id: string | null;
  readonly user_id: string | null;
  /** Separated by commas. */
  readonly user_roles: string | null;
  readonly correlation_id: string | null;
}

export const ORIGIN_FIELDS = ["tenant_id", "user_id", "user_roles", "correlation_id"] as const satisfies readonly (keyof Origin)[];

/** Longest tenant, user and correlation id, in characters (code points, as SQLite counts them). */
const ID_LIMIT = 64;

/** So many characters are kept of the roles (ADR-003). */
const ROLES_LIMIT = 512;

/** What is wrong with a text as this field of an origin, or null. Of roles only the first must fit: more are cut off. */
export function originProblem(field: keyof Origin, text: string): string | null {
  const problem = textProblem(text, Number.POSITIVE_INFINITY);
  if (problem !== null) return problem;
  if (field === "user_roles")
    // Half of a name could be the name of another role.
    return keptRoles(text) === "" ? `begins with a role of more than ${ROLES_LIMIT} characters` : null;
  const length = lengthOf(text);
  return length > ID_LIMIT ? `has ${length} characters; the limit is ${ID_LIMIT}` : null;
}

/**
 * The roles as they are stored: at most 512 characters, the last role a whole one. Empty when not even the first fits.
 * @example keptRoles("reader,writer") === "reader,writer"
 */
export function keptRoles(roles: string): string {
  if (lengthOf(roles) <= ROLES_LIMIT) return roles;
  const within = Array.from(roles)
    .slice(0, ROLES_LIMIT + 1)
    .join("");
  return within.slice(0, Math.max(0, within.lastIndexOf(",")));
}

function lengthOf(text: string): number {
  return Array.from(text).length;
}
