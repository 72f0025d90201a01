#include "launcher/flags/flag_table.h"

#include <vector>

namespace muster::launcher {

absl::Span<const Flag> RunFlagTable() {
  static const auto* const table = [] {
    auto* const rows = new std::vector<Flag>;
    for (const FlagGroup& group : {NodeFlags(), HostFlags(), RendezvousFlags(), ProgramFlags(),
                                   FailureFlags(), OutputFlags(), OtherFlags()}) {
      for (Flag row : group.rows) {
        row.group = group.heading;
        rows->push_back(row);
      }
    }
    return rows;
  }();
  return *table;
}

}  // namespace muster::launcher
