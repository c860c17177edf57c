/** Follows one block of a document and answers what is wrong with it; null when it does what it says. */
import { dirname } from "node:path";
import { parse } from "../../src/cli/parse.ts";
import { COMMANDS } from "../../src/cli/command.ts";
import { EXIT_CODES } from "../../src/cli/exit.ts";
import { COMMON } from "../../src/cli/flags.ts";
import { type Block, screens, stepsOf } from "./markdown.ts";
import type { Reader, Screen } from "./reader.ts";

/** Where the example person lives. */
const HOME = /\/home\/me\b/g;

export type Follow = (block: Block) => string | null;

/** One reader follows all blocks of a document in order, so that ids and numbers run through it. */
export function follower(reader: Reader): Follow {
  const { documented, seen } = screens();
  return (block) => {
    const { language, text, file } = block;
    if (file !== null) reader.write(file, text);
    switch (language) {
      case "sh":
        return file === null ? failure(reader.sh(text)) : failure(reader.sh(`sh -n ${reader.path(file)}`));
      case "console": {
        for (const { command, shown } of stepsOf(text)) {
          const screen = reader.sh(command);
          const [wanted, got] = [documented(shown), seen(screen.text)];
          if (wanted !== got) return `$ ${command}\n--- documented\n${wanted}\n--- seen (exit ${screen.code})\n${got}`;
        }
        return null;
      }
      case "yaml": {
        const screen = reader.sh("outbox config check");
        return screen.code === 0 && screen.text.trim().endsWith(": ok") && !screen.text.trim().includes("\n") ? null : screen.text;
      }
      case "ts":
        // The declarations of ours and of Bun, under the same settings, are checked by test/types.test.ts.
        return file === null ? "a program without a name" : failure(reader.typeCheck(file, { skipLibCheck: true }));
      case "python": {
        if (file === null) return "a program without a name";
        // Here it is only written: npm test needs no python. test/system/readme.test.ts runs it.
        return reader.machine ? failure(reader.sh(`cd ${dirname(reader.path(file))} && python3 ${reader.path(file)}`)) : null;
      }
      case "crontab":
        return crontab(reader, text);
      case "ini":
        return unit(text);
      case "mermaid":
        return null;
      default:
        return `nobody knows what to do with a block of ${language || "no language"}`;
    }
  };
}

function failure({ code, text }: Screen): string | null {
  return code === 0 ? null : `exit ${code}: ${text}`;
}

/** Every line runs, silent and with what it asks for; when nothing can be delivered it does not ask and says why, and when that is over. */
function crontab(reader: Reader, text: string): string | null {
  const variables: Record<string, string> = {};
  let jobs = 0;
  for (const line of text.split("\n").filter((each) => each !== "")) {
    const variable = /^([A-Z]+)=(.*)$/.exec(line);
    if (variable !== null) {
      variables[variable[1] ?? ""] = (variable[2] ?? "").replaceAll(HOME, reader.home);
      continue;
    }
    const command = /^(?:[\d*,/-]+ ){5}(.+)$/.exec(line)?.[1]?.replaceAll(HOME, reader.home);
    if (command === undefined) return `no line of a crontab: ${line}`;
    const relative = (variables["PATH"] ?? "").split(":").filter((directory) => !directory.startsWith("/"));
    if (relative.length > 0) return `cron knows no such PATH: ${relative.join(":")}`;
    reader.write("~/.local/bin/curl", '#!/bin/sh\necho "ping $*" >> "$HOME/asked.txt"\n');
    const before = reader.asked();
    const well = reader.cron(command, variables);
    if (well.code !== 0 || well.text !== "") return `${line}\nexit ${well.code}: ${well.text}`;
    if (!reader.asked().slice(before.length).startsWith("ping ")) return `${line}\nno ping was sent`;
    reader.write("~/fault.yaml", "dispatch: { notify_template: [no-such-command-anywhere] }\n");
    const pinged = reader.asked();
    const ill = reader.cron(command, { ...variables, OUTBOX_CONFIG: reader.path("~/fault.yaml") });
    if (ill.code !== 78 || ill.text === "" || reader.asked() !== pinged)
      return `${line}\na fault goes unnoticed: exit ${ill.code}: ${ill.text}`;
    // What was told to begin is told to end, once: the blocks that follow find everything as it was.
    const mended = reader.cron(command, variables);
    if (mended.code !== 0 || !mended.text.includes("again")) return `${line}\nno end is told: exit ${mended.code}: ${mended.text}`;
    jobs += 1;
  }
  return jobs === 0 ? "it has no job" : null;
}

/** A unit starts an absolute path, with a command line that is understood, and names only exit codes that there are. */
function unit(text: string): string | null {
  const start = /^ExecStart=(.+)$/m.exec(text)?.[1]?.split(" ");
  if (start === undefined) return "it starts nothing";
  const [program = "", ...args] = start;
  if (!/^(?:%h\/|\/)/.test(program)) return `${program} is no absolute path`;
  for (const path of /^Environment=PATH=(.+)$/m.exec(text)?.[1]?.split(":") ?? [])
    if (!/^(?:%h\/|\/)/.test(path)) return `${path} in PATH is no absolute path`;
  const code = Number(/^RestartPreventExitStatus=(\d+)$/m.exec(text)?.[1] ?? 0);
  if (!EXIT_CODES.some((each) => each.code === code)) return `there is no exit code ${code}`;
  for (const section of ["[Unit]", "[Service]", "[Install]"]) if (!text.includes(`\n${section}\n`)) return `it has no section ${section}`;
  const stray = text.split("\n").find((line) => !/^(?:|#.*|\[\w+\]|[A-Z]\w*=\S.*)$/.test(line));
  if (stray !== undefined) return `no line of a unit: ${stray}`;
  try {
    parse(args, { commands: COMMANDS, common: COMMON });
    return null;
  } catch (error) {
    return String(error);
  }
}
