#include "trainer/app/training/job_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random_name.h"

namespace muster::trainer {
namespace {

// The run id as a word of a line.
std::string Word(std::string_view run_id) {
  std::string word(run_id.substr(0, 96));
  std::replace_if(
      word.begin(), word.end(), [](unsigned char c) { return !absl::ascii_isgraph(c); }, '_');
  return word;
}

}  // namespace

std::string MakeJobName(std::chrono::system_clock::time_point now, std::string_view run_id) {
  const auto since = now.time_since_epoch();
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
  return absl::StrFormat("%016d-%s %s", microseconds, base::RandomName(8), Word(run_id));
}

bool IsOfRun(std::string_view job, std::string_view run_id) {
  const std::size_t space = job.find(' ');
  return space != std::string_view::npos && job.substr(space + 1) == Word(run_id);
}

}  // namespace muster::trainer
