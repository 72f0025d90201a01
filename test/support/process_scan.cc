#include "test/support/process_scan.h"

#include <dirent.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <sstream>
#include <system_error>

namespace muster::test {
namespace {

constexpr std::chrono::seconds kScanDeadline{30};
// /proc tells nobody that a process has come or gone, so it is looked at again and again.
constexpr timespec kPause{0, 10'000'000};

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  // Not by iterators of its buffer, which throw when a process goes while its /proc file is read.
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool IsZombie(const std::string& directory) {
  const std::string stat = ReadAll(directory + "/stat");
  // "123 (name) S ...", where the name may contain anything.
  const std::size_t end_of_name = stat.rfind(')');
  if (end_of_name == std::string::npos || end_of_name + 2 >= stat.size()) return true;
  const char state = stat[end_of_name + 2];
  return state == 'Z' || state == 'X';
}

}  // namespace

std::string UniqueMark() {
  static int made = 0;
  std::random_device random;
  return "MUSTER_TEST_MARK=" + std::to_string(getpid()) + "-" + std::to_string(++made) + "-" +
         std::to_string(random());
}

std::vector<pid_t> ProcessesWith(const std::string& mark) {
  std::vector<pid_t> found;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) std::abort();
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid <= 0) continue;
    const std::string directory = std::string("/proc/") + entry->d_name;
    // Entries end with a zero byte each; one more in front makes all of them look alike.
    const std::string environment = '\0' + ReadAll(directory + "/environ");
    if (environment.find('\0' + mark + '\0') == std::string::npos) continue;
    if (!IsZombie(directory)) found.push_back(pid);
  }
  closedir(proc);
  return found;
}

int ListeningTcpSockets(pid_t process) {
  const std::string directory = "/proc/" + std::to_string(process);
  std::set<std::string> listening;  // "socket:[INODE]"
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::istringstream lines(ReadAll(directory + table));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      const std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
      // proc_net_tcp.rst: the state stands in the fourth place, the inode in the tenth.
      if (word.size() > 9 && word[3] == "0A") listening.insert("socket:[" + word[9] + "]");
    }
  }
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/fd")) {
    std::error_code gone;
    count += static_cast<int>(
        listening.count(std::filesystem::read_symlink(entry.path(), gone).string()));
  }
  return count;
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  const std::string process = "/proc/" + std::to_string(parent);
  std::istringstream list(ReadAll(process + "/task/" + std::to_string(parent) + "/children"));
  return {std::istream_iterator<pid_t>(list), {}};
}

bool WaitForProcesses(const std::string& mark, std::size_t count) {
  const auto end = std::chrono::steady_clock::now() + kScanDeadline;
  while (ProcessesWith(mark).size() != count) {
    if (std::chrono::steady_clock::now() >= end) return false;
    nanosleep(&kPause, nullptr);
  }
  return true;
}

}  // namespace muster::test
