#!/usr/bin/env bash
# Installs the packages in a new Debian, has both programs meet there, and removes them again.
#   check.sh FOLDER    the folder that build.sh made
set -euo pipefail
packages=$(realpath "$1")
skip() {
    printf 'skipped: %s\n' "$1"
    exit 0
}
command -v mmdebstrap >/dev/null || skip 'found no mmdebstrap to make a new Debian with'
[ "$(id -u)" -eq 0 ] || skip 'only root may install packages in a new root folder'
(cd "$packages" && sha256sum --quiet --check SHA256SUMS)
# Debian of this machine: the programs are linked to its OpenBLAS.
release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
root=$(mktemp -d)
trap 'chroot "$root" pkill kindred 2>/dev/null || true; umount "$root/proc" 2>/dev/null || true; rm -rf "$root"' EXIT
# Nothing but what the packages depend on, and the tools of this check.
depends=$(for package in "$packages"/*.deb; do dpkg-deb --field "$package" Depends; done |
    tr ',' '\n' | sed 's/ *(.*//; s/^ *//' | sort -u | paste -sd,)
mmdebstrap --quiet --variant=minbase --include="$depends,procps,curl,man-db" "$release" "$root"
mount -t proc proc "$root/proc"
echo '127.0.0.1 localhost' >"$root/etc/hosts"
mkdir "$root/packages"
cp "$packages"/*.deb "$root/packages"

cat >"$root/check.sh" <<'CHECK'
set -euo pipefail
coordinator=/var/lib/kindred-coordinator site=/var/lib/kindred-site-agent
as() {
    user=$1
    shift
    runuser -u "$user" -- "$@"
}
fails() {
    printf 'check: %s\n' "$1" >&2
    exit 1
}
dpkg --install /packages/*.deb >/dev/null
for name in kindred-coordinator kindred-site-agent; do
    "$name" --version
    man --where "$name" "$name-serve" >/dev/null
    test -s "/usr/share/bash-completion/completions/$name"
    test -s "/usr/lib/systemd/system/$name.service"
    test "$(stat -c '%U %a' "/var/lib/$name")" = "$name 700"
done

# Started as the services start them.
started() {
    sed -n 's/^ExecStart=//p' "/usr/lib/systemd/system/$1.service"
}
as kindred-coordinator kindred-coordinator init --hosts localhost --sites north --operators researcher \
    --out "$coordinator" >/tmp/tokens
printf '\n[status]\nlisten = "127.0.0.1:9443"\n' >>"$coordinator/coordinator.toml"
as kindred-coordinator $(started kindred-coordinator) 2>/tmp/coordinator.log &
wait_for() {
    for _ in $(seq 100); do
        if "${@:2}" >/dev/null 2>&1; then return; fi
        sleep 0.2
    done
    cat /tmp/*.log >&2
    fails "waited for $1"
}
wait_for 'the coordinator' curl -sf http://127.0.0.1:9443/health
as kindred-site-agent kindred-site-agent enrol "$(grep -o 'kindred1/site/north/[^ ]*' /tmp/tokens)" \
    --out /etc/kindred --folder "$site" >/dev/null
as kindred-site-agent $(started kindred-site-agent) 2>/tmp/site.log &
wait_for 'the site' grep 'a site joined site=north' /tmp/coordinator.log

# An update leaves everything; a removal leaves what the hospital must keep.
dpkg --install /packages/*.deb >/dev/null
test -s /etc/kindred/site.toml
pkill -TERM kindred
wait
dpkg --purge kindred-coordinator kindred-site-agent >/dev/null
test -s /etc/kindred/site.toml && test -s "$coordinator/coordinator.toml" || fails 'a configuration is gone'
for left in $(find / -xdev -name '*kindred*' -not -path '/packages/*' -not -path '/proc/*'); do
    case $left in
        /etc/kindred | "$coordinator"* | "$site"* | /tmp/*) ;;
        *) fails "$left is left" ;;
    esac
done
CHECK
chroot "$root" bash /check.sh
echo 'installed, started, updated and removed in a new Debian'
