// The Join of an ordinary node. Tests change the fields that they are about.
#pragma once

#include <string>

#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// Node number `index` (from 1), with one worker, of job "job", which wants `nodes` nodes. Its
// address gives it group rank index - 1.
inline JoinRequest RequestFor(int index, int nodes) {
  const std::string number = std::to_string(index);
  return {.run_id = "job",
          .settings = {.min_nodes = nodes, .max_nodes = nodes},
          .node = {.node_id = "node-" + number,
                   .host = "host" + number,
                   .address = "10.0.0." + number,
                   .master_port = static_cast<std::uint16_t>(40'000 + index)}};
}

}  // namespace muster::rendezvous
