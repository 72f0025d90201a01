// Feeds arbitrary bytes to what reads the small texts of strangers, of users and of workers, for
// libFuzzer (scripts/fuzz.sh) and for fuzz_seeds_test. The first byte chooses the reader.
//
// In addition to the sanitizers' checks: what is read and written again is read as the same, and no
// secret that is known stays in a text.
#include <cstdlib>
#include <string>

#include "base/redact.h"
#include "launcher/cli/rendezvous_flags.h"
#include "launcher/run/failure_report.h"
#include "launcher/run/run_info.h"
#include "rendezvous/core/values/phrases.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/peer.h"
#include "rendezvous/wire/liveness_probe.h"
#include "rendezvous/wire/wire.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/quiet_protobuf.h"

namespace muster {
namespace {

void Read(unsigned which, const std::string& text) {
  switch (which % 9) {
    case 0: {
      const auto endpoint = rendezvous::ParseEndpoint(text, 29400);
      if (endpoint.ok() && rendezvous::ParseEndpoint(ToString(*endpoint), 1) != endpoint)
        std::abort();
      break;
    }
    case 1:
      rendezvous::ParsePeer(text);
      break;
    case 2: {
      const auto session = rendezvous::ParseDeathNotice(text);
      if (session &&
          rendezvous::ParseDeathNotice(rendezvous::FormatDeathNotice(*session)) != session) {
        std::abort();
      }
      break;
    }
    case 3: {
      const auto record = rendezvous::RecordFromBytes(text);
      if (record.ok() && !rendezvous::RecordFromBytes(ToBytes(*record)).ok()) std::abort();
      break;
    }
    case 4: {
      const auto run = launcher::ReadRunInfo(text);
      if (run && !launcher::ReadRunInfo(WriteRunInfo(*run))) std::abort();
      break;
    }
    case 5:
      launcher::ParseErrorFile(text);
      break;
    case 6:
      launcher::ParseRdzvConf(text).IgnoreError();
      break;
    case 7: {
      static const base::Redactor redact({"A_TOKEN=known-secret"}, {"--key", "other-secret"});
      const std::string clear = redact(text);
      if (clear.find("known-secret") != std::string::npos ||
          clear.find("other-secret") != std::string::npos) {
        std::abort();
      }
      break;
    }
    case 8: {
      const std::string line = rendezvous::OneLine(text, 64);
      if (line.find('\n') != std::string::npos || line.find('\x1b') != std::string::npos) {
        std::abort();
      }
      break;
    }
  }
}

}  // namespace
}  // namespace muster

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  muster::QuietProtobuf();
  muster::Read(data[0], std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
