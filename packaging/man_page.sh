#!/usr/bin/env bash
# Makes a manual page of what a program says about itself: the flags of --help, which come from the program's own flag
# table, become the page's. Prints troff.
#   packaging/man_page.sh SECTION VERSION NAME DESCRIPTION [SEE-ALSO] -- COMMAND...
#   packaging/man_page.sh 1 0.1.0 muster-run 'start the workers of a job' 'muster(1)' -- bazel-bin/launcher/muster run
# The date is SOURCE_DATE_EPOCH's. Needs help2man.
set -euo pipefail
[ $# -ge 6 ] || { sed -n '2,6s/^# //p' "$0" >&2; exit 2; }
section=$1 version=$2 name=$3 description=$4
shift 4
see=
if [ "$1" != -- ]; then
  see=$1
  shift
fi
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$@" --help >"$scratch/help"
# As help2man reads it: a program's own name at the front, a line "or:" for each further form, a space between the two
# names of a flag.
sed -i -e "s/^Usage: \[/Usage: $name [/" -e 's/^usage:/Usage:/' \
  -e '1,4s/^       muster /  or:  muster /' -e 's/^  -h,--help /  -h, --help/' "$scratch/help"
printf '#!/bin/sh\ncat "%s"\n' "$scratch/help" >"$scratch/$name"
chmod +x "$scratch/$name"
{
  if [ -n "$see" ]; then printf '[see also]\n%s\n' "$see"; fi
} >"$scratch/more"
help2man --no-info --section="$section" --version-string="$version" --source="Muster $version" --name="$description" \
  --include="$scratch/more" "$scratch/$name"
