#!/usr/bin/env bash
# The manual pages of all programs, into a folder: muster(1), one for each of its commands, musterd(8), muster-train(1).
#   packaging/man_pages.sh FOLDER VERSION MUSTER MUSTERD [MUSTER-TRAIN]
set -euo pipefail
[ $# -ge 4 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
folder=$1 version=$2 muster=$3 musterd=$4 trainer=${5-}
page=$(dirname "$0")/man_page.sh
mkdir -p "$folder"

# What the list in `muster --help` says: "  run     start this node's workers of a job; takes ...".
commands=$("$muster" --help | sed -n 's/^  \([a-z]\{2,\}\)  .*/\1/p')
all=
for command in $commands; do
  what=$("$muster" --help | sed -n "s/^  $command  *//p")
  "$page" 1 "$version" "muster-$command" "$what" 'muster(1), musterd(8)' -- "$muster" "$command" \
    >"$folder/muster-$command.1"
  all+="muster-$command(1), "
done
"$page" 1 "$version" muster 'start distributed training jobs and keep them running' "${all}musterd(8)" -- "$muster" \
  >"$folder/muster.1"
"$page" 8 "$version" musterd 'rendezvous daemon of distributed training jobs' 'muster(1), muster-token(1)' -- "$musterd" \
  >"$folder/musterd.8"
if [ -n "$trainer" ]; then
  "$page" 1 "$version" muster-train 'train neural networks over many processes' 'muster(1)' -- "$trainer" \
    >"$folder/muster-train.1"
fi
