#!/bin/sh
# Brings node_modules in step with package-lock.json; does nothing when it is. Runs before every npm script that needs
# packages, so a fresh clone needs no step of its own. Asks for Node with npm, or Bun: whichever is there.
set -eu
cd "$(dirname "$0")/.."

if command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1; then
  js=node
elif command -v bun >/dev/null 2>&1; then
  js=bun
else
  echo "install: neither node with npm nor bun was found on PATH; install one of them" >&2
  exit 1
fi

if ! "$js" scripts/in-step.mjs; then
  echo "install: bringing node_modules in step with package-lock.json" >&2
  if [ "$js" = node ]; then
    # The next script must find the development tools, whatever NODE_ENV or the user's npm settings leave out.
    npm ci --include=dev --include=optional --no-audit --no-fund --loglevel=error >/dev/null
  else
    bun install --frozen-lockfile --silent
  fi
fi

# With install scripts turned off, npm leaves a placeholder where the bun binary belongs.
if ! node_modules/.bin/bun --version >/dev/null 2>&1; then
  "$js" node_modules/bun/install.js >&2
  node_modules/.bin/bun --version >/dev/null
fi
