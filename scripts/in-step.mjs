// Exit 0 when node_modules holds what package-lock.json names, 1 when it does not. Called by scripts/install.sh.
// Plain JavaScript without imports from node_modules: it runs before anything is installed, in Node or in Bun.
// Versions are compared, not a stamp or a date, so that it makes no difference who installed.
import { existsSync, readFileSync } from "node:fs";

const read = (path) => JSON.parse(readFileSync(path, "utf8"));

function inStep(path, locked) {
  const manifest = `${path}/package.json`;
  // Other platforms' binaries are optional. Where this platform's is missing, its owner's own check says so.
  if (!existsSync(manifest)) return locked.optional === true;
  return read(manifest).version === locked.version;
}

const wrong = Object.entries(read("package-lock.json").packages).find(([path, locked]) => path !== "" && !inStep(path, locked));
process.exit(wrong === undefined ? 0 : 1);
