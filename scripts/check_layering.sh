#!/usr/bin/env bash
# The dependencies that docs/architecture.md permits. Each rule is a query that must find nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
# must_be_empty SENTENCE QUERY
must_be_empty() {
  local found
  found=$(bazel query --noshow_progress "$2" 2>/dev/null) || {
    echo "layering: the query for '$1' failed: $2" >&2
    failed=1
    return
  }
  [ -z "$found" ] && return
  echo "layering: $1, but there is:" >&2
  echo "$found" | sed 's/^/  /' >&2
  failed=1
}

ours='(//base/... + //launcher/... + //rendezvous/... + //worker/... + //trainer/... + //proto/... + //test/...)'
# may_use SENTENCE ROOMS ALLOWED: of Muster's rooms, ROOMS depend only on ALLOWED and themselves.
may_use() {
  must_be_empty "$1" "(deps($2) intersect $ours) except ($2 + $3)"
}
# includes_only SENTENCE FOLDER ROOMS: the files of FOLDER include only the standard library, Abseil
# and those rooms; base also has JSON and command lines.
includes_only() {
  local found
  found=$(grep -rnE '#include ["<][^">]*/' --include=*.h --include=*.cc "$2" |
    grep -vE "#include \"(absl|$3)/|#include <sys/" || true)
  found+=$(grep -rnE '#include "base/(json|cli/)' --include=*.h --include=*.cc "$2" || true)
  [ -z "$found" ] && return
  printf 'layering: %s, but there is:\n%s\n' "$1" "$found" >&2
  failed=1
}

may_use "base stands on itself alone" //base/... //base/...
may_use "worker stands on itself and base" //worker/... //base/...
may_use "workers are started without groups, and groups without the launcher" \
  "(//worker/process/... + //worker/output/...)" "(//worker:all + //worker:* + //base/...)"
may_use "rendezvous stands on itself, proto and base" //rendezvous/... "(//proto/... + //base/...)"
may_use "rendezvous/core stands on itself and base" //rendezvous/core/... //base/...
includes_only "rendezvous/core includes no library but Abseil" rendezvous/core "base|rendezvous/core"
may_use "an identity does not depend on what its holder asks for: rendezvous/identity stands on base" \
  //rendezvous/identity/... //base/...
must_be_empty "what lies under server and clients includes neither" \
  "(deps(//rendezvous/net/...) intersect //rendezvous/...) except (//rendezvous/net/... + //rendezvous/identity/... + //rendezvous/wire/... + //rendezvous/core/...)"
must_be_empty "a client includes nothing of the daemon beyond the loop that serves it" \
  "deps(//rendezvous/client/...) intersect (//rendezvous:* + //rendezvous/server/... + //rendezvous/keeper/... + //rendezvous/etcd/... + //rendezvous/pages/...)"
must_be_empty "an embedded daemon needs no etcd" \
  "deps(//launcher:muster) intersect (//rendezvous:* + //rendezvous/etcd/...)"
must_be_empty "what is known of the machine stands on no other room of the launcher" \
  "(deps(//launcher/machine/...) intersect //launcher/...) except //launcher/machine/..."
must_be_empty "hosts know machines, and nothing of the command line" \
  "(deps(//launcher/remote/...) intersect //launcher/...) except (//launcher/remote/... + //launcher/machine/...)"
must_be_empty "a doctor knows machines, and nothing of jobs that run" \
  "(deps(//launcher/doctor/...) intersect //launcher/...) except (//launcher/doctor/... + //launcher/machine/...)"
must_be_empty "the command line knows nothing of the agent" \
  "(deps(//launcher/cli/...) intersect //launcher/...) except (//launcher/cli/... + //launcher/machine/... + //launcher/remote/...)"
may_use "what happened is told from the event logs alone: launcher/replay stands on base and core's values" \
  //launcher/replay/... "(//base/... + //rendezvous/core/values/...)"
must_be_empty "the daemon that is shipped and the one that is simulated are one" \
  "(//rendezvous/core:core + //rendezvous/client:client + //rendezvous/etcd:etcd) except (deps(//launcher:muster + //rendezvous:musterd) intersect deps(//test/rendezvous/cluster:cluster))"
must_be_empty "the agent that is shipped and the one that is simulated are one" \
  "(//launcher/run:run + //worker/group:group + //worker/tree:tree) except (deps(//launcher:muster) intersect deps(//test/rendezvous/cluster:cluster))"
may_use "trainer stands on itself, base and the room of worker that says how to be one" \
  //trainer/... "(//base/... + //worker:all + //worker:*)"
may_use "schedules of a pipeline are arithmetic: trainer/pipeline stands on base" \
  //trainer/pipeline/... //base/...
includes_only "schedules of a pipeline include no library but Abseil" trainer/pipeline "base|trainer/pipeline"
must_be_empty "tokenizers, image files and tables know nothing of LibTorch" \
  "deps(//trainer/text/... + //trainer/data/samples/... + //trainer/io/formats/...) intersect //third_party/torch/..."
must_be_empty "what is trained knows nothing of how" \
  "(deps(//trainer/models/...) intersect //trainer/...) except (//trainer/models/... + //trainer/data/... + //trainer/text/... + //trainer/io/... + //trainer/compat/... + //trainer/runtime/... + //trainer/worker/...)"
must_be_empty "nothing but tests stands on launcher" \
  "(allpaths($ours, //launcher/...)) except (//launcher/... + //test/...)"
must_be_empty "no product stands on test" \
  "allpaths(//launcher/... + //rendezvous/... + //worker/... + //trainer/..., //test/...)"
[ $failed -eq 0 ] && echo "layering: ok"
exit $failed
