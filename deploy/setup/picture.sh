#!/usr/bin/env bash
# Takes the pictures of the book by Debian's Chromium: the demo's report, and a patient at the bedside.
#   picture.sh OUT BOOK   OUT: the folder of a kept demo; BOOK: where the pictures go
set -euo pipefail

out=$1 book=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

shot() {
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1000,820 \
        --screenshot="$book/$1.png" "file://$2"
}
ask() {
    curl --silent --show-error --fail --cookie "$work/jar" --cookie-jar "$work/jar" "$@"
}

shot report "$(realpath "$out")/report.html"

# The page of a patient answers a form, with the token that the form carries.
enter=$(cat "$out-federation/sites/north/pages.address")
root=${enter%/enter/*}
ask --output /dev/null "$enter"
run=$(ask "$root/" | grep -o '/run/[0-9a-f]*' | head -1)
token=$(ask "$root$run" | sed -n 's/.*name="token" value="\([0-9a-f]*\)".*/\1/p' | head -1)
answer=$(ask --output /dev/null --write-out '%{redirect_url}' \
    --data "token=$token&patient=north-0001&by=run&k=10" "$root$run/find")
ask --output "$work/page.css" "$root/page.css"
ask "$answer" | sed 's|href="/page.css"|href="page.css"|' > "$work/page.html"
shot bedside "$work/page.html"
