#!/usr/bin/env bash
# Makes Debian packages of both programs, a tarball and a list of what they are made of, from a release build.
#   build.sh FOLDER    the new files' folder
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "$1")
cargo=${CARGO:-cargo}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
built=$target/release
tools=$target/tools
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
host=$(rustc -vV | sed -n 's/^host: //p')
# The same source gives the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

# Where one is there already, this does nothing.
for tool in cargo-deb@3.8.0 cargo-cyclonedx@0.5.9; do
    "$cargo" install "$tool" --quiet --locked --root "$tools" --target-dir "$tools/target"
done

tree=kindred-$version-$host
rm -rf "$out" "$built/generated"
mkdir -p "$out/$tree/bin"
for crate in coordinator site-agent; do
    name=kindred-$crate
    generated=$built/generated/$name
    mkdir -p "$generated"
    "$built/$name" man --out "$generated/man" >/dev/null
    for shell in bash zsh fish; do
        "$built/$name" completions "$shell" >"$generated/$shell"
    done
    # It writes next to each crate of the workspace that this one needs.
    "$tools/bin/cargo-cyclonedx" cyclonedx --manifest-path "$crate/Cargo.toml" --format json --override-filename sbom
    mv "$crate/sbom.json" "$generated/sbom.json"
    find . -name sbom.json -not -path './target/*' -delete
    "$tools/bin/cargo-deb" deb --package "$crate" --no-build --output "$out"
    install -m 755 "$built/$name" "$out/$tree/bin"
    strip "$out/$tree/bin/$name"
    cp -r "$generated" "$out/$tree"
done
cp -r LICENSE CHANGELOG.md deploy/systemd deploy/config deploy/policies "$out/$tree"
tar --directory "$out" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    --remove-files -czf "$out/$tree.tar.gz" "$tree"
cd "$out"
sha256sum -- * >SHA256SUMS
ls -l
