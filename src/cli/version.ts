/** The version that the build writes in. From source it is that of package.json, which the build reads too. */
declare const OUTBOX_VERSION: string | undefined;

export const VERSION: string = typeof OUTBOX_VERSION === "string" ? OUTBOX_VERSION : "0.0.0-source";
