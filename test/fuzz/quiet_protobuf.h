// Protobuf tells of each text that is not UTF-8, which takes longer than all that is fuzzed.
#pragma once

#include <google/protobuf/stubs/logging.h>

namespace muster {

inline void QuietProtobuf() {
  static const auto former = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(former);
}

}  // namespace muster
