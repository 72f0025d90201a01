#!/usr/bin/env bash
# Runs every test that links neither gRPC nor LibTorch under the sanitizers:
#   scripts/sanitizers.sh [asan|tsan]      default: both
#     asan   AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer
#     tsan   ThreadSanitizer; test/rendezvous/core:tsan_canary_test has a race that must be
#            reported, or a clean run would prove nothing
# Debian's gRPC and LibTorch are not instrumented: ThreadSanitizer reports false races in them, and
# suppressions would also hide ours. From scratch it takes about half an hour for each on two cores.
# Exits with 0 if all passed.
set -euo pipefail
cd "$(dirname "$0")/.."

configs=(asan tsan)
case ${1-} in
  "") ;;
  asan | tsan) configs=("$1") ;;
  *)
    echo "sanitizers: '$1' is neither asan nor tsan" >&2
    exit 2
    ;;
esac
# An output base of its own, so that normal builds stay valid; the same cache.
bazel() { command bazel --output_base="${XDG_CACHE_HOME:-$HOME/.cache}/muster/sanitizers" "$@"; }
mapfile -t tests < <(bazel query --noshow_progress "tests(//test/...)
  except rdeps(//test/..., //third_party/system:grpc)
  except rdeps(//test/..., //third_party/torch:torch)" 2>/dev/null)
[ ${#tests[@]} -gt 100 ] || {
  echo "sanitizers: only ${#tests[@]} tests were found that link neither gRPC nor LibTorch" >&2
  exit 1
}
failed=0
for config in "${configs[@]}"; do
  echo "sanitizers: ${#tests[@]} tests with --config=$config"
  # Instrumented code takes five times as long. Tests that a sanitizer makes impossible have a tag.
  bazel test --config="$config" --test_tag_filters="-no-$config" --experimental_convenience_symlinks=ignore \
    --test_timeout=300,900,1800,7200 --keep_going --test_output=errors --build_tests_only "${tests[@]}" || failed=1
done
exit $failed
