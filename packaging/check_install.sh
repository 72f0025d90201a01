#!/usr/bin/env bash
# What happens on a machine of its own, as root, under systemd; scripts/install_checks.sh puts it there. In the folder of
# this script: former/*.deb and new/*.deb. Prints a line for each thing that is looked at, "ok" or "FAIL"; exits with 1
# if one failed.
set -uo pipefail
cd "$(dirname "$0")"
export LC_ALL=C.UTF-8
failed=0

# check WHAT COMMAND...
check() {
  local what=$1
  shift
  if "$@" >last.out 2>&1; then
    echo "ok   $what"
  else
    echo "FAIL $what: $*"
    head -n 20 last.out
    failed=1
  fi
}
# A condition that comes true within 30 s.
soon() {
  local i
  for ((i = 0; i < 600; i++)); do
    "$@" && return
    sleep 0.05
  done
  return 1
}
gone() { [ ! -e "$1" ]; }
main_pid() { systemctl show --property=MainPID --value musterd; }
# The daemon is the child of the keeper.
daemon_pid() { pgrep --parent "$(main_pid)" | head -n 1; }
runs_new_program() { [ "$(readlink "/proc/$(daemon_pid)/exe")" = /usr/bin/musterd ]; }
is_another() { local now; now=$(daemon_pid) && [ -n "$now" ] && [ "$now" != "$1" ]; }
no_daemon() { ! pgrep --exact musterd >/dev/null; }
lines() { [ "$(cat "$2"/out* 2>/dev/null | wc -l)" = "$1" ]; }

# job FOLDER: two nodes of one job at the service; each worker prints one line and ends when FOLDER/end is there.
agents=()
job() {
  mkdir -p "$1"
  agents=()
  for node in 0 1; do
    MUSTER_TOKEN_FILE=$PWD/alice muster run --nnodes=2 --rdzv-endpoint=127.0.0.1:29400 --rdzv-conf=is_host=0 \
      --rdzv-id="$1" --no-python sh -c "echo \$RANK \$\$; while ! [ -e $PWD/$1/end ]; do sleep 0.1; done" \
      >"$1/out$node" 2>"$1/err$node" &
    agents+=($!)
  done
  soon lines 2 "$1"
}
# Its workers are those that began, and it ends well.
ends_well() {
  touch "$1/end"
  local agent
  for agent in "${agents[@]}"; do
    wait "$agent" || { cat "$1"/err*; return 1; }
  done
  lines 2 "$1"
}

echo "== $(. /etc/os-release && echo "$PRETTY_NAME"), $(ldd --version | head -n 1), Linux $(uname -r)"
check "the former version is installed" dpkg --install former/*.deb
for program in muster musterd; do check "$program starts" "$program" --version; done
check "two workers run" muster run --standalone --nproc-per-node=2 --no-python true
for file in man/man1/muster.1.gz man/man1/muster-run.1.gz man/man8/musterd.8.gz bash-completion/completions/muster \
  zsh/vendor-completions/_muster fish/vendor_completions.d/muster.fish; do
  check "/usr/share/$file is there" test -s "/usr/share/$file"
done
check "musterd is not started before there are tokens" test "$(systemctl is-active musterd)" = inactive
check "its user is there" id muster
check "the folder of tokens is its own" test "$(stat -c '%U %a' /etc/muster/tokens)" = "muster 700"

check "a token is made" runuser -u muster -- muster token new /etc/muster/tokens/alice
cp /etc/muster/tokens/alice alice
echo "# a change of the site's own" >>/etc/muster/musterd.toml
check "the service starts" systemctl enable --now musterd
check "as its user" test "$(ps -o user= -p "$(main_pid)")" = muster
check "a job of two nodes begins at it" job upgrade
keeper=$(main_pid) daemon=$(daemon_pid)

check "the new version is installed" dpkg --install new/*.deb
check "the daemon is another" soon is_another "$daemon"
check "and is the new program" soon runs_new_program
check "its keeper is the same" test "$(main_pid)" = "$keeper"
check "the site's configuration is kept" grep -q "change of the site's own" /etc/muster/musterd.toml
check "the job goes on with its workers, and ends" ends_well upgrade

check "the service is restarted under a job" job restart
check "restart" systemctl restart musterd
check "the job goes on with its workers, and ends" ends_well restart

check "the port is given to systemd" systemctl disable --now musterd
check "the socket listens" systemctl enable --now musterd.socket
check "musterd does not run yet" test "$(systemctl is-active musterd)" = inactive
check "a job starts it" job socket
check "restart" systemctl restart musterd
check "the job goes on with its workers, and ends" ends_well socket
echo 'lisen = "a:1"' >>/etc/muster/musterd.toml
systemctl restart musterd 2>/dev/null
check "a mistake in the configuration is named" \
  soon sh -c "journalctl -u musterd --no-pager | grep -q \"musterd.toml sets 'lisen'\""
sed -i '/^lisen/d' /etc/muster/musterd.toml
# It may be about to be started once more by itself, and a socket is not opened for a service that runs.
systemctl stop musterd.socket musterd 2>/dev/null
systemctl reset-failed musterd musterd.socket 2>/dev/null
check "and once it is gone the service starts" systemctl start musterd.socket musterd

programs=$(dpkg -L muster musterd | while read -r file; do [ -f "$file" ] && echo "$file"; done)
check "the packages are removed" dpkg --remove muster musterd
check "the service is stopped" soon no_daemon
check "its configuration is kept" test -e /etc/muster/musterd.toml
check "the packages are purged" dpkg --purge muster musterd
for file in $programs /etc/muster /var/lib/muster; do
  gone "$file" || check "$file is gone" false
done
check "nothing is left of them" gone /etc/muster
exit $failed
