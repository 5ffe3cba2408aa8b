#!/usr/bin/env bash
# Installs the system packages that Kindred needs, where they are absent.
#   packages.sh build   a C compiler, pkg-config and OpenBLAS
#   packages.sh test    the same, PostgreSQL, Chromium with its driver, tinyproxy, nftables and Python, which the tests start (without the last four they skip theirs)
set -euo pipefail

purpose=${1:-build}

have_openblas() {
    pkg-config --exists openblas 2>/dev/null ||
        { command -v ldconfig >/dev/null && ldconfig -p | grep -q 'libopenblas\.so '; } ||
        [ -e /usr/lib/x86_64-linux-gnu/libopenblas.so ] || [ -e /usr/lib/aarch64-linux-gnu/libopenblas.so ]
}
have_postgres() {
    command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null ||
        compgen -G '/opt/homebrew/opt/postgresql*/bin/initdb' >/dev/null
}
# Asked for where it is one package; elsewhere the tests do without.
have_chromium() {
    { { command -v chromium || command -v chromium-browser; } && command -v chromedriver; } >/dev/null || ! command -v apt-get >/dev/null
}
have_tinyproxy() {
    command -v tinyproxy >/dev/null || ! command -v apt-get >/dev/null
}
have_networks() {
    { command -v ip && PATH=$PATH:/usr/sbin command -v nft; } >/dev/null || ! command -v apt-get >/dev/null
}
have_python() {
    python3 -c 'import ensurepip, venv' 2>/dev/null || ! command -v apt-get >/dev/null
}
needs() {
    command -v cc >/dev/null && command -v pkg-config >/dev/null && have_openblas || return 0
    [ "$purpose" != test ] || { have_postgres && have_chromium && have_tinyproxy && have_networks && have_python; } || return 0
    return 1
}
stop() {
    printf 'kindred: %s\n' "$1" >&2
    exit 1
}

if ! command -v cargo >/dev/null; then
    stop "found no cargo, wanted Rust $(sed -n 's/^channel = "\(.*\)"/\1/p' "$(dirname "$0")/../../rust-toolchain.toml"); see https://rustup.rs"
fi
needs || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null; then as_root=(sudo); fi
fi

if command -v apt-get >/dev/null; then
    packages=(build-essential pkg-config libopenblas-dev)
    [ "$purpose" = test ] && packages+=(postgresql chromium chromium-driver python3-venv tinyproxy-bin iproute2 nftables)
    if [ "$(id -u)" -ne 0 ] && [ ${#as_root[@]} -eq 0 ]; then
        stop "may not install packages here; ask an administrator for: apt-get install ${packages[*]}"
    fi
    "${as_root[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${packages[@]}" ||
        stop "apt-get failed; wanted: ${packages[*]}"
elif command -v dnf >/dev/null; then
    packages=(gcc gcc-c++ make pkgconf-pkg-config openblas-devel)
    [ "$purpose" = test ] && packages+=(postgresql-server)
    if [ "$(id -u)" -ne 0 ] && [ ${#as_root[@]} -eq 0 ]; then
        stop "may not install packages here; ask an administrator for: dnf install ${packages[*]}"
    fi
    "${as_root[@]}" dnf install -y -q "${packages[@]}" || stop "dnf failed; wanted: ${packages[*]}"
elif command -v brew >/dev/null; then
    packages=(pkg-config openblas)
    [ "$purpose" = test ] && packages+=(postgresql@17)
    brew install -q "${packages[@]}" || stop "brew failed; wanted: ${packages[*]}"
else
    stop "found no apt-get, dnf or brew; install a C compiler, pkg-config and OpenBLAS with its headers (for tests also PostgreSQL) by hand"
fi
