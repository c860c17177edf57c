/** Texts that are stored: what none of them may hold, whatever their field. */
/** What is wrong with a stored text, or null. */
export declare function textProblem(text: string, limitBytes: number): string | null;
/** Length in bytes of UTF-8. */
export declare function bytesOf(text: string): number;
