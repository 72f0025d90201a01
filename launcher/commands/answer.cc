#include "launcher/commands/answer.h"

#include "base/print_out.h"
#include "launcher/report/exit_code.h"

namespace muster::launcher {

int Answer(const char* command, const std::string& text) {
  return base::PrintOut(command, text) ? kExitSuccess : kExitNodeFailed;
}

}  // namespace muster::launcher
