#include "launcher/agent/speech.h"

#include "launcher/agent/inherited_fd.h"

namespace muster::launcher {

std::optional<int> TakeSpeechFd(Environment& environment) {
  return TakeInheritedFd(environment, kSpeechVariable);
}

}  // namespace muster::launcher
