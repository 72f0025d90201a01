#include "worker/tree/agent_mark.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/random_name.h"
#include "worker/env_names.h"

namespace muster::worker {
namespace {

const std::string kPrefix = absl::StrCat(env::kAgentId, "=");

}  // namespace

const std::string& AgentMark() {
  // The pid is for people who look into /proc; the random characters make it unique.
  static const std::string mark = absl::StrCat(::getpid(), "-", base::RandomName(12));
  return mark;
}

void AddMark(std::string_view mark, std::vector<std::string>* env) {
  const auto entry = std::find_if(
      env->begin(), env->end(), [](const std::string& text) { return text.starts_with(kPrefix); });
  if (entry == env->end()) {
    env->push_back(kPrefix + std::string(mark));
  } else {
    entry->append(entry->size() == kPrefix.size() ? "" : ":").append(mark);
  }
}

bool HasMark(pid_t pid, std::string_view mark) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/environ"), std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  for (const absl::string_view entry : absl::StrSplit(text.str(), '\0')) {
    if (!std::string_view(entry.data(), entry.size()).starts_with(kPrefix)) continue;
    const std::vector<std::string> marks = absl::StrSplit(entry.substr(kPrefix.size()), ':');
    return std::find(marks.begin(), marks.end(), mark) != marks.end();
  }
  return false;
}

}  // namespace muster::worker
