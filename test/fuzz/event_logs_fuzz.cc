// Feeds arbitrary bytes to what reads event logs and shows what happened, for libFuzzer
// (scripts/fuzz.sh) and for fuzz_seeds_test. A zero byte ends one log and begins the next.
//
// In addition to the sanitizers' checks: an error is a sentence, the text moves no cursor, the
// goodput is a share, and what the page and the trace are made of is whole.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/json.h"
#include "launcher/replay/event_file.h"
#include "launcher/replay/job_events.h"
#include "launcher/replay/timeline.h"
#include "launcher/replay/views.h"
#include "test/fuzz/fuzz.h"

namespace muster::launcher {
namespace {

void Expect(bool holds) {
  if (!holds) std::abort();
}

void CheckText(const std::string& text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    Expect(byte == '\n' || (byte >= 0x20 && byte != 0x7f));
  }
}

void Replay(absl::string_view logs) {
  std::vector<EventFile> files;
  for (const absl::string_view log : absl::StrSplit(logs, '\0')) {
    auto file = ReadEvents(absl::StrCat("log", files.size()), log);
    if (!file.ok()) return Expect(!file.status().message().empty());
    files.push_back(*std::move(file));
  }
  auto job = ChooseJob(std::move(files), "");
  if (!job.ok()) return Expect(!job.status().message().empty());
  const Timeline timeline = MakeTimeline(*std::move(job));
  Expect(timeline.Goodput() >= 0 && timeline.Goodput() <= 1);
  CheckText(TextView(timeline));
  Expect(!HtmlView(timeline).empty());
  Expect(base::ParseJson(TraceView(timeline)).is_object());
}

}  // namespace
}  // namespace muster::launcher

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  muster::launcher::Replay({reinterpret_cast<const char*>(data), size});
  return 0;
}
