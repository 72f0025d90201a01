// Command lines as users type them: the cases in transcripts/*.txt, each run by a shell.
//
// A case begins with a comment, whose first sentence is its name, and ends at the next one:
//
//   # A worker count of 0 starts nothing.
//   $ muster run --nproc-per-node=0 train.py
//   muster run: --nproc-per-node 0 starts no worker; ...
//   [2]
//
// "$ " begins a command and "> " continues it; one shell runs all commands of a case, so variables
// and background processes last. Below a command stands what it prints to stdout and stderr, and
// the exit code if it is not 0. "..." stands for any text in a line and, alone on a line, for any
// lines. What comes before the first case is run at the beginning of each.
//
// A case runs in an empty directory. In PATH are muster, torchrun (the same program) and musterd;
// $port is a free port. start_daemon [FLAG...] starts a musterd on loopback, waits until agents can
// connect and sets $endpoint and $daemon (its pid); what it logs is in ./daemon.log. hold_port has
// a process listen on $port that never says anything. `await TEXT FILE` waits until it is there.
// `skip REASON` ends a case that cannot run on this machine; $tests is the root of test/.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

using TextLines = std::vector<std::string>;

constexpr char kPrelude[] = R"sh(
trap 'kill $daemon $holder 2>/dev/null; wait' EXIT
start_daemon() {
  mkfifo ready
  musterd --listen=127.0.0.1:0 --ready-fd=9 "$@" 9>ready >daemon.log 2>&1 &
  daemon=$!
  read -r listening <ready
  rm ready
  endpoint=127.0.0.1:$listening
}
hold_port() {
  mkfifo held
  python3 -c "import signal, socket
server = socket.create_server(('127.0.0.1', $port), reuse_port=True)
open('held', 'w').close()
signal.pause()" &
  holder=$!
  read -r _ <held
  rm held
}
skip() {
  echo "$*" >"$skipped"
  exit
}
await() {
  until grep -qs -- "$1" "$2"; do sleep 0.05; done
}
)sh";
struct Step {
  std::string command;
  TextLines expected;  // the exit code last, as it stands in the file
};

struct Case {
  std::string file;
  std::string preamble;
  std::string comment;
  std::vector<Step> steps;
};

std::vector<Case> ReadCases(const std::filesystem::path& path) {
  std::vector<Case> cases;
  std::ifstream file(path);
  std::string preamble;
  bool in_comment = false;
  for (std::string line; std::getline(file, line);) {
    const bool comment = line.starts_with("# ");
    if (comment && !in_comment) cases.push_back({.file = path.stem(), .preamble = preamble});
    in_comment = comment;
    if (cases.empty()) {
      absl::StrAppend(&preamble, line, "\n");
      continue;
    }
    Case& current = cases.back();
    if (comment) {
      absl::StrAppend(&current.comment, current.comment.empty() ? "" : " ", line.substr(2));
    } else if (line.starts_with("$ ")) {
      current.steps.push_back({.command = line.substr(2)});
    } else if (line.starts_with("> ")) {
      absl::StrAppend(&current.steps.back().command, "\n", line.substr(2));
    } else if (!current.steps.empty()) {
      current.steps.back().expected.push_back(line);
    }
  }
  // Blank lines between cases are for the reader.
  for (Case& one : cases) {
    TextLines& last = one.steps.back().expected;
    while (!last.empty() && last.back().empty()) last.pop_back();
  }
  return cases;
}

bool Matches(std::string_view pattern, std::string_view line) {
  const std::size_t dots = pattern.find("...");
  if (dots == std::string_view::npos) return pattern == line;
  if (!line.starts_with(pattern.substr(0, dots))) return false;
  line.remove_prefix(dots);
  const std::string_view rest = pattern.substr(dots + 3);
  for (std::size_t skipped = 0; skipped <= line.size(); ++skipped) {
    if (Matches(rest, line.substr(skipped))) return true;
  }
  return false;
}

using Position = TextLines::const_iterator;

bool Matches(Position pattern, Position patterns_end, Position line, Position lines_end) {
  if (pattern == patterns_end) return line == lines_end;
  if (*pattern == "...") {
    for (;; ++line) {
      if (Matches(pattern + 1, patterns_end, line, lines_end)) return true;
      if (line == lines_end) return false;
    }
  }
  return line != lines_end && Matches(*pattern, *line) &&
         Matches(pattern + 1, patterns_end, line + 1, lines_end);
}

// What a step has printed, and its exit code, as they would stand in a transcript.
TextLines Printed(const std::string& name) {
  std::ifstream out(name + ".out");
  const std::string text{std::istreambuf_iterator<char>(out), {}};
  TextLines lines = absl::StrSplit(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  std::string code = "none: the shell ended before";
  std::ifstream(name + ".code") >> code;
  if (code != "0") lines.push_back(absl::StrCat("[", code, "]"));
  return lines;
}

class TranscriptTest : public E2eTest {
 public:
  explicit TranscriptTest(const Case& run) : case_(run) {}

  void TestBody() override {
    for (const char* name : {"muster", "torchrun"}) Link(name, MusterPath());
    Link("musterd", DaemonPath());
    std::filesystem::create_directory(Path("work"));
    const HeldPort port;
    std::vector<std::string> environment = Environment();
    environment.push_back(absl::StrCat("PATH=", Path("bin"), ":/usr/local/bin:/usr/bin:/bin"));
    environment.push_back("port=" + port.number());
    environment.push_back("skipped=" + Path("skipped"));
    environment.push_back(absl::StrCat("tests=", std::filesystem::absolute("test").string()));
    Command shell({"/bin/sh", Write("case.sh", Script())}, environment);
    EXPECT_TRUE(shell.Wait(2 * Command::kDeadline).has_value()) << "still running";

    if (std::ifstream reason(Path("skipped")); reason) GTEST_SKIP() << reason.rdbuf();
    bool same = true;
    std::string actual = absl::StrCat("# ", case_.comment, "\n");
    for (std::size_t i = 0; i < case_.steps.size(); ++i) {
      const Step& step = case_.steps[i];
      const TextLines printed = Printed(Path(absl::StrCat("step", i)));
      same = same &&
             Matches(step.expected.begin(), step.expected.end(), printed.begin(), printed.end());
      absl::StrAppend(&actual, "$ ", absl::StrJoin(absl::StrSplit(step.command, '\n'), "\n> "),
                      "\n", absl::StrJoin(printed, "\n"), printed.empty() ? "" : "\n");
    }
    EXPECT_TRUE(same) << "transcripts/" << case_.file << ".txt has something else than\n"
                      << actual << shell.err();
  }

 private:
  void Link(const std::string& name, const std::string& program) const {
    std::filesystem::create_directories(Path("bin"));
    std::filesystem::create_symlink(program, Path("bin/" + name));
  }

  // Each command runs in the case's one shell, with its output and exit code in files.
  std::string Script() const {
    std::string script = absl::StrCat("cd ", Path("work"), " || exit 1", kPrelude, case_.preamble);
    for (std::size_t i = 0; i < case_.steps.size(); ++i) {
      const std::string step = Path(absl::StrCat("step", i));
      absl::StrAppend(&script, "{\n", case_.steps[i].command, "\n} >", step, ".out 2>&1\necho $? >",
                      step, ".code\n");
    }
    return script;
  }

  const Case case_;
};

// "A worker count of 0 starts nothing." -> "AWorkerCountOf0StartsNothing".
std::string NameOf(const Case& one) {
  const std::string_view sentence = std::string_view(one.comment).substr(0, one.comment.find(". "));
  std::string name;
  bool begins = true;
  for (const char c : sentence) {
    if (absl::ascii_isalnum(c)) name.push_back(begins ? absl::ascii_toupper(c) : c);
    if (c != '\'') begins = !absl::ascii_isalnum(c);
  }
  return name;
}

const bool kRegistered = [] {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator("test/e2e/transcripts")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    for (const Case& one : ReadCases(file)) {
      testing::RegisterTest(("Transcript_" + one.file).c_str(), NameOf(one).c_str(), nullptr,
                            nullptr, __FILE__, __LINE__,
                            [one]() -> E2eTest* { return new TranscriptTest(one); });
    }
  }
  return !files.empty();
}();

}  // namespace
}  // namespace muster::test
