#!/usr/bin/env bash
# Who may include whom, as docs/architecture.md draws it. Each rule is a query that must find nothing.
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
# deps_outside PACKAGES ALLOWED: what PACKAGES stand on within Muster, beyond ALLOWED.
must_be_empty "base stands on itself alone" \
  "(deps(//base/...) intersect $ours) except //base/..."
must_be_empty "worker stands on nothing of Muster's but itself and base" \
  "(deps(//worker/...) intersect $ours) except (//worker/... + //base/...)"
must_be_empty "rendezvous stands on itself, proto and base" \
  "(deps(//rendezvous/...) intersect $ours) except (//rendezvous/... + //proto/... + //base/...)"
must_be_empty "rendezvous/core stands on itself and base" \
  "(deps(//rendezvous/core/...) intersect $ours) except (//rendezvous/core/... + //base/...)"
must_be_empty "what lies under server and clients includes neither" \
  "(deps(//rendezvous/net/...) intersect //rendezvous/...) except (//rendezvous/net/... + //rendezvous/identity/... + //rendezvous/wire/... + //rendezvous/core/...)"
must_be_empty "who somebody is does not depend on what he wants: rendezvous/identity stands on itself and base" \
  "(deps(//rendezvous/identity/...) intersect $ours) except (//rendezvous/identity/... + //base/...)"
must_be_empty "a client includes nothing of the server" \
  "(deps(//rendezvous/client/...) intersect //rendezvous/...) except (//rendezvous/client/... + //rendezvous/net/... + //rendezvous/identity/... + //rendezvous/wire/... + //rendezvous/core/... + //rendezvous/fronts:driver + //rendezvous/fronts:log_exchange + //rendezvous/fronts:batch_encoder + //rendezvous/fronts:commit_pace + //rendezvous/fronts:journal_writer + //rendezvous/journal:journal)"
must_be_empty "workers are started without groups, and groups without the launcher" \
  "(deps(//worker/process/... + //worker/output/...) intersect //worker/...) except (//worker/process/... + //worker/output/... + //worker:all)"
must_be_empty "flags, configuration and machine know nothing of the agent" \
  "(deps(//launcher/flags/... + //launcher/config/... + //launcher/machine/...) intersect //launcher/...) except (//launcher/flags/... + //launcher/config/... + //launcher/machine/... + //launcher/hosts/... + //launcher:environment)"
must_be_empty "hosts are values: launcher/hosts stands on itself and base" \
  "(deps(//launcher/hosts/...) intersect $ours) except (//launcher/hosts/... + //base/...)"
must_be_empty "what happened is told from the event logs alone: launcher/replay stands on their table and base" \
  "(deps(//launcher/replay/...) intersect $ours) except (//launcher/replay/... + //launcher/report:all + //launcher/report:* + //rendezvous/core/... + //base/...)"
must_be_empty "a timeline is a value: launcher/replay stands on nothing that opens files" \
  "(deps(//launcher/replay/...) intersect $ours) intersect (//base:safe_path + //base:unique_fd + //base:print_out + //launcher/report:event_log)"
must_be_empty "what is on the screen of muster top is a value, and what a key does a function" \
  "deps(//launcher/top:keys) intersect (//third_party/system:ncurses + //third_party/system:asio + //third_party/system:grpc)"
must_be_empty "what is known of the machine stands on no other room of the launcher" \
  "(deps(//launcher/machine/...) intersect //launcher/...) except (//launcher/machine/... + //launcher:environment)"
must_be_empty "a doctor knows machines, and nothing of jobs that run" \
  "(deps(//launcher/doctor/...) intersect //launcher/...) except (//launcher/doctor/... + //launcher/machine/... + //launcher:environment)"
must_be_empty "rendezvous/core links no library but Abseil" \
  "(deps(//rendezvous/core/...) intersect //third_party/...) except //third_party/system:absl"
must_be_empty "what a client decides links no library but Abseil" \
  "(deps(//rendezvous/client:attendance) intersect //third_party/...) except //third_party/system:absl"
must_be_empty "the client that is shipped and the one that is simulated are one" \
  "//rendezvous/client:attendance except (deps(//rendezvous/client:grpc_client) intersect deps(//test/rendezvous/cluster:cluster))"
must_be_empty "who starts which host is decided with no library but Abseil" \
  "deps(//launcher/tree:fan_out) intersect (//third_party/... except //third_party/system:absl)"
must_be_empty "the daemon that is shipped and the one that is simulated are one" \
  "//rendezvous/core:daemon_core except (deps(//rendezvous:musterd) intersect deps(//test/rendezvous/cluster:cluster))"
must_be_empty "the daemons that take turns, shipped and simulated, are one" \
  "(//rendezvous:lead_terms + //rendezvous/etcd:candidate + //rendezvous/etcd:etcd_journal) except (deps(//rendezvous:musterd) intersect deps(//test/rendezvous/cluster:cluster))"
must_be_empty "the agent that is shipped and the one that is simulated are one" \
  "(//launcher/agent:agent_core + //launcher/agent:agent_policy + //launcher/agent:fitness) except (deps(//launcher:muster) intersect deps(//test/rendezvous/cluster:cluster))"
must_be_empty "the stop ladder that is shipped and the one that is simulated are one" \
  "//worker/group:group_life except (deps(//worker/group:worker_group) intersect deps(//test/rendezvous/cluster:cluster))"
must_be_empty "the guard that is shipped and the one that is simulated are one" \
  "//worker/tree:dead_mans_switch except (deps(//worker/tree:orphan_guard) intersect deps(//test/rendezvous/cluster:cluster))"
must_be_empty "trainer stands on itself, base, worker/flight and the names of worker/env_names.h" \
  "(deps(//trainer/...) intersect $ours) except (//trainer/... + //base/... + //worker/flight/... + //worker:env_names + //worker:env_names.h)"
must_be_empty "flight logs are for any program: worker/flight stands on itself and base" \
  "(deps(//worker/flight/...) intersect $ours) except (//worker/flight/... + //base/...)"
must_be_empty "schedules of a pipeline are arithmetic: trainer/pipeline stands on itself and base" \
  "(deps(//trainer/pipeline/...) intersect $ours) except (//trainer/pipeline/... + //base/...)"
must_be_empty "schedules of a pipeline link no library but Abseil" \
  "(deps(//trainer/pipeline/...) intersect //third_party/...) except //third_party/system:absl"
must_be_empty "a mesh is arithmetic: trainer/mesh stands on itself" \
  "(deps(//trainer/mesh/...) intersect $ours) except //trainer/mesh/..."
must_be_empty "a mesh links no library but Abseil" \
  "(deps(//trainer/mesh/...) intersect //third_party/...) except //third_party/system:absl"
must_be_empty "quant knows models and groups, and nothing of the program" \
  "(deps(//trainer/quant/...) intersect //trainer/...) except (//trainer/quant/... + //trainer/models/... + //trainer/comm/... + //trainer/worker/... + //trainer/compat/... + //trainer/data/... + //trainer:named_tensor + //trainer:flag_set)"
must_be_empty "sharding knows groups and optimizers, and no models" \
  "(deps(//trainer/sharding/...) intersect //trainer/...) except (//trainer/sharding/... + //trainer/comm/... + //trainer/optim/... + //trainer/worker/... + //trainer/compat/... + //trainer:named_tensor)"
must_be_empty "tokenizers, tokens, image files and tables know nothing of LibTorch" \
  "deps(//trainer/text/... + //trainer/data/tokens/... + //trainer/data/images/... + //trainer/data/tables/... + //trainer/data:token_splits) intersect //third_party/torch/..."
must_be_empty "what is trained knows nothing of how" \
  "(deps(//trainer/models/... + //trainer/recipe/...) intersect //trainer/...) except (//trainer/models/... + //trainer/recipe/... + //trainer/data/... + //trainer/text/... + //trainer/compat/... + //trainer:flag_set + //trainer:named_tensor)"
must_be_empty "nothing but tests stands on launcher" \
  "(allpaths($ours, //launcher/...)) except (//launcher/... + //test/...)"
must_be_empty "no product stands on test" \
  "allpaths(//launcher/... + //rendezvous/... + //worker/... + //trainer/..., //test/...)"
[ $failed -eq 0 ] && echo "layering: ok"
exit $failed
