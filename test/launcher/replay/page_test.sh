#!/usr/bin/env bash
# The pages of real runs, and one from hostile logs, as an HTML parser sees them (check_page.py).
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
here=test/launcher/replay
cp "$here"/testdata/*.json "$TEST_TMPDIR"
cd "$TEST_TMPDIR"
# The same run with this text from its worker and its rendezvous.
hostile='</script></title><script>alert(1)</script><img src=x onerror=alert(2)><!--'
sed "s|exited with code 7|$hostile|g" two_failures_0.json >hostile_0.json
sed "s|exited with code 7|$hostile|g" two_failures_1.json >hostile_1.json
grep -q 'onerror' hostile_0.json
cd - >/dev/null

check() {
  local name=$1
  shift
  launcher/muster replay "$@" --html="$TEST_TMPDIR/$name.html" --trace="$TEST_TMPDIR/$name.trace" >/dev/null
  python3 "$here/check_page.py" "$TEST_TMPDIR/$name.html"
}

for name in two_failures lost_node hang hostile; do
  files=("$TEST_TMPDIR/$name"*.json)
  check "$name" "${files[@]}"
done
