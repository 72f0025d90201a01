#!/usr/bin/env bash
# Every flag that a program's help names has an entry of its own in the program's manual page, each command has a page,
# and man finds nothing wrong with any of them.
set -euo pipefail
export SOURCE_DATE_EPOCH=1764000000
pages=$TEST_TMPDIR/pages
packaging/man_pages.sh "$pages" 0.1.0 launcher/muster rendezvous/musterd
failed=0

# covers PAGE COMMAND...: entries begin with .TP and the flag's names in bold.
covers() {
  local page=$1 flag count=0
  shift
  man --local-file --encoding=UTF-8 "$pages/$page" | col -b >"$TEST_TMPDIR/text"
  for flag in $("$@" --help | grep -oE '^  (-[a-z]+, ?)*--[a-z][a-z0-9-]+' | grep -oE -e '--.*' | sort -u); do
    count=$((count + 1))
    if ! grep -qE -- "^ +(-[a-zA-Z]+, )*$flag([= ,]|\$)" "$TEST_TMPDIR/text"; then
      echo "$page has no entry for $flag"
      failed=1
    fi
  done
  echo "$page: $count flags"
  [ "$count" -gt 0 ] || failed=1
}
covers musterd.8 rendezvous/musterd
commands=$(launcher/muster --help | sed -n 's/^  \([a-z]\{2,\}\)  .*/\1/p')
[ "$(wc -w <<<"$commands")" -ge 16 ] || { echo "muster --help lists too few commands: $commands"; failed=1; }
for command in $commands; do
  covers "muster-$command.1" launcher/muster "$command"
  grep -q "muster-$command(1)\|muster\\\\-$command(1)" "$pages/muster.1" || { echo "muster(1) does not name $command"; failed=1; }
done
for page in "$pages"/*; do
  said=$(man --warnings --local-file --encoding=UTF-8 "$page" 2>&1 >/dev/null)
  if [ -n "$said" ]; then
    echo "$page: $said"
    failed=1
  fi
done
exit $failed
