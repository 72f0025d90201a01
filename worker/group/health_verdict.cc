#include "worker/group/health_verdict.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "worker/failure_record.h"
#include "worker/output/tail_buffer.h"

namespace muster::worker {
namespace {

// Of a longer line its beginning is shown, as it is where the words are.
constexpr std::size_t kMaxReason = 300;

// The last line of `text` with something in it; empty when there is none.
std::string LastLine(std::string text) {
  // A program may draw with control characters; none of them is for whoever reads the reason.
  std::replace(text.begin(), text.end(), '\r', '\n');
  std::replace_if(
      text.begin(), text.end(),
      [](unsigned char byte) { return byte != '\n' && (byte < ' ' || byte == 0x7f); }, ' ');
  const std::size_t last = text.find_last_not_of(" \n");
  if (last == std::string::npos) return "";
  text.erase(last + 1);
  // npos + 1 is the beginning.
  text.erase(0, text.rfind('\n') + 1);
  text.erase(0, text.find_first_not_of(' '));
  if (text.size() > kMaxReason) text.replace(kMaxReason, std::string::npos, "...");
  return text;
}

}  // namespace

absl::Status JudgeHealth(const std::string& command, std::chrono::milliseconds timeout,
                         const TimedCommandResult& result) {
  if (!result.timed_out && result.status->Succeeded()) return absl::OkStatus();
  std::string why;
  if (result.timed_out) {
    const double seconds = std::chrono::duration<double>(timeout).count();
    why = absl::StrCat("did not end within ", seconds, " s and ",
                       result.status.has_value() ? "was killed" : "SIGKILL does not end it either");
  } else {
    why = DescribeExit(*result.status);
  }
  const std::string last_line =
      result.output_cut ? "" : LastLine(TailOf(result.output, kHealthOutputTail));
  if (!last_line.empty()) absl::StrAppend(&why, ": ", last_line);
  return HealthUnknown(command, why);
}

absl::Status HealthUnknown(const std::string& command, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat("the health check '", command, "' ", why));
}

}  // namespace muster::worker
