// The words that users write for values of LaunchConfig, and see when values are shown.
#pragma once

#include <cstddef>

#include "launcher/config/launch_config.h"

namespace muster::launcher {

template <typename Value>
struct Word {
  const char* word;
  Value value;
};

inline constexpr Word<RendezvousMode> kRendezvousModes[] = {
    {"standalone", RendezvousMode::kStandalone},
    {"endpoint", RendezvousMode::kEndpoint},
    {"fixed-port", RendezvousMode::kFixedPort},
    {"static", RendezvousMode::kStatic}};

inline constexpr Word<NumaMode> kNumaModes[] = {{"node", NumaMode::kNode},
                                                {"socket", NumaMode::kSocket},
                                                {"exclusive", NumaMode::kExclusive},
                                                {"core-complex", NumaMode::kCoreComplex}};

inline constexpr Word<WorkerStore> kWorkerStores[] = {{"agent", WorkerStore::kAgent},
                                                      {"worker", WorkerStore::kWorker},
                                                      {"tunnel", WorkerStore::kTunnel}};

inline constexpr Word<rendezvous::ScaleUp> kScaleUps[] = {
    {"now", rendezvous::ScaleUp::kNow}, {"next-restart", rendezvous::ScaleUp::kNextRestart}};

// Whether output counts as a sign of life (HangPolicy::output_counts).
inline constexpr Word<bool> kHangSigns[] = {{"beats", false}, {"output", true}};

inline constexpr Word<HangAction> kHangActions[] = {
    {"restart", HangAction::kRestart}, {"end", HangAction::kEnd}, {"report", HangAction::kReport}};

inline constexpr Word<ExitCodePolicy> kExitCodePolicies[] = {
    {"torchrun", ExitCodePolicy::kTorchrun}, {"worker", ExitCodePolicy::kWorker}};

inline constexpr Word<LogLevel> kLogLevels[] = {{"debug", LogLevel::kDebug},
                                                {"info", LogLevel::kInfo},
                                                {"warning", LogLevel::kWarning},
                                                {"error", LogLevel::kError}};

// The word for `value`; empty when `words` has none.
template <typename Value, std::size_t size>
constexpr const char* WordFor(const Word<Value> (&words)[size], Value value) {
  for (const Word<Value>& word : words) {
    if (word.value == value) return word.word;
  }
  return "";
}

}  // namespace muster::launcher
