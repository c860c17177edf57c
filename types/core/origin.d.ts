/** For whom something is done, and as part of what. */
export interface Origin {
    readonly tenant_id: string | null;
    readonly user_id: string | null;
    /** Separated by commas. */
    readonly user_roles: string | null;
    readonly correlation_id: string | null;
}
export declare const ORIGIN_FIELDS: readonly ["tenant_id", "user_id", "user_roles", "correlation_id"];
/** What is wrong with a text as this field of an origin, or null. Of roles only the first must fit: more are cut off. */
export declare function originProblem(field: keyof Origin, text: string): string | null;
/**
 * The roles as they are stored: at most 512 characters, the last role a whole one. Empty when not even the first fits.
 * @example keptRoles("reader,writer") === "reader,writer"
 */
export declare function keptRoles(roles: string): string;
