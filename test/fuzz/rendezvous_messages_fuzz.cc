// Feeds a daemon what agents could say to it, in any order and of any content, for libFuzzer
// (scripts/fuzz.sh) and for fuzz_seeds_test. The input is a row of steps: what, who, a length, and
// as many bytes.
//
// In addition to the sanitizers' checks: what the daemon says and shows can be put on the wire and
// read back, what it remembers survives being written and read, names that it takes are names, and
// its limits hold.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "proto/rendezvous.pb.h"
#include "rendezvous/core/daemon_core.h"
#include "rendezvous/core/values/phrases.h"
#include "rendezvous/wire/wire.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/quiet_protobuf.h"

namespace muster::rendezvous {
namespace {

constexpr int kMaxJobs = 3;
constexpr int kMaxNodes = 5;
constexpr std::size_t kStoreBytes = 4096;

class Fuzzed {
 public:
  void Step(unsigned what, AgentId agent, std::string_view bytes) {
    switch (what % 8) {
      case 0:
      case 1:
      case 2: {
        v1::AgentEvent wire;
        if (wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
          core_.Hear(agent, FromWire(wire), now_);
        }
        break;
      }
      case 3:
        core_.Disconnected(agent, "the test says so", now_);
        break;
      case 4:
        core_.AgentDied(SessionToken(bytes), now_);
        break;
      case 5:
        now_ += std::chrono::milliseconds(1 + bytes.size() * 997);
        core_.Tick(now_);
        break;
      case 6: {
        const std::string run_id(bytes.substr(0, bytes.size() / 2));
        const std::string key(bytes.substr(bytes.size() / 2));
        core_.Call(++calls_, {.run_id = run_id,
                              .body = [key](KeyValueStore& store) { return store.Set(key, key); },
                              .writes = true});
        break;
      }
      case 7: {
        const std::string run_id(bytes.substr(0, bytes.size() / 2));
        core_.Call(++calls_,
                   {.run_id = run_id,
                    .body = [](KeyValueStore&) { return absl::OkStatus(); },
                    .wait = StoreCall::Wait{{bytes.substr(bytes.size() / 2)}, std::nullopt}});
        break;
      }
    }
    CheckSayings();
  }

  // What is left in the end.
  void CheckState() const {
    const Coordinator& coordinator = core_.coordinator();
    for (const JobSnapshot& job : coordinator.List(now_)) {
      if (!CheckName("run id", job.run_id).ok()) std::abort();
      v1::JobDescription wire;
      ToWire(job, &wire);
      static_cast<void>(FromWire(wire));
      const std::optional<JobRecord> record = coordinator.Record(job.run_id, now_);
      if (!record || !RecordFromBytes(ToBytes(*record)).ok()) std::abort();
    }
  }

 private:
  void CheckSayings() {
    while (const std::optional<OutboundMessage> message = core_.NextMessage()) {
      const auto* const outgoing = std::get_if<Outgoing>(&*message);
      if (outgoing == nullptr) continue;
      v1::Directive wire, again;
      ToWire(outgoing->directive(), &wire);
      std::string bytes;
      if (!wire.SerializeToString(&bytes) || !again.ParseFromString(bytes)) std::abort();
      static_cast<void>(FromWire(again));
    }
    core_.TakeLog();
    const Coordinator& coordinator = core_.coordinator();
    if (coordinator.job_count() > kMaxJobs || coordinator.agent_count() > kMaxNodes) std::abort();
  }

  TimePoint now_{std::chrono::seconds(1000)};
  CallId calls_ = 0;
  DaemonCore core_{{.max_jobs = kMaxJobs,
                    .max_nodes_per_job = 1000,
                    .max_nodes = kMaxNodes,
                    .store_bytes = kStoreBytes,
                    .max_ended_jobs = 4}};
};

}  // namespace
}  // namespace muster::rendezvous

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  muster::QuietProtobuf();
  muster::rendezvous::Fuzzed daemon;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (std::size_t at = 0; at + 3 <= input.size();) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(input[at + i]); };
    const std::size_t length = std::min<std::size_t>(byte(2), input.size() - at - 3);
    // Memory of its own, so that a look beyond its end is found.
    const std::string own(input.substr(at + 3, length));
    daemon.Step(byte(0), 1 + byte(1) % 7, own);
    at += 3 + length;
  }
  daemon.CheckState();
  return 0;
}
