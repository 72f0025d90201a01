// A daemon that only writes its journal, for tests that kill it.
//   journal_child DIR hold
// prints "ready" and waits.
//   journal_child DIR STEP COUNT
// continues the history where the journal ends, prints "acked N" for each batch, and kills itself
// when STEP has come COUNT times: a step of the journal's, or "write" (half of it done) or "sync".
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "rendezvous/journal/sqlite_journal.h"
#include "test/rendezvous/journal/fault_vfs.h"
#include "test/rendezvous/journal/history.h"

namespace muster::rendezvous::test {
namespace {

// In one write each, so that it arrives even if the process dies right after.
void Say(const std::string& line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::abort();
}

int Run(const std::string& directory, const std::string& step, int left) {
  FaultVfs vfs;
  vfs.before = [&](const FaultVfs::Operation& operation) -> std::optional<FaultVfs::Fault> {
    if (operation.kind != FaultVfs::Kind::kWrite && operation.kind != FaultVfs::Kind::kSync) {
      return std::nullopt;
    }
    const bool is_write = operation.kind == FaultVfs::Kind::kWrite;
    if (step != (is_write ? "write" : "sync") || --left > 0) return std::nullopt;
    return FaultVfs::Fault{.written = operation.size / 2, .kill = true};
  };
  SqliteJournalOptions options{.checkpoint_pages = 30, .vfs = FaultVfs::kName};
  options.at_step = [&](const std::string& at) {
    if (at == step && --left <= 0) ::kill(::getpid(), SIGKILL);
  };

  boost::asio::io_context io;
  auto opened = OpenSqliteJournal(io, directory, options);
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.status().ToString().c_str());
    return 1;
  }
  Say("incarnation " + std::to_string(opened->contents.incarnation) + "\n");
  if (step == "hold") {
    Say("ready\n");
    ::pause();
  }
  const std::optional<int> batches = BatchesIn(opened->contents);
  if (!batches.has_value()) return 2;
  int number = *batches;
  bool failed = false;
  const std::function<void()> next = [&] {
    opened->journal->Commit(BatchNumber(++number), [&](const absl::Status& status) {
      failed = !status.ok();
      if (failed) return;
      Say("acked " + std::to_string(number) + "\n");
      next();
    });
  };
  next();
  io.run();
  return failed ? 3 : 4;
}

}  // namespace
}  // namespace muster::rendezvous::test

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  return muster::rendezvous::test::Run(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 0);
}
