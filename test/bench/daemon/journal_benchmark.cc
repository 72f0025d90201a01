// The cost of making a batch of changes durable, without event loop and network: the disk's fsync
// and SQLite's work. Uses TEST_TMPDIR, or /tmp.
#include <chrono>
#include <string>

#include <benchmark/benchmark.h>
#include <boost/asio/io_context.hpp>

#include "absl/strings/str_cat.h"
#include "rendezvous/journal/sqlite_journal.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

// Batches of N entries of a store.
void BM_Commit(benchmark::State& state) {
  const int entries = static_cast<int>(state.range(0));
  const test::TempDir directory;
  boost::asio::io_context io;
  auto opened = OpenSqliteJournal(io, directory.path());
  if (!opened.ok()) {
    state.SkipWithError(std::string(opened.status().message()).c_str());
    return;
  }
  for (auto _ : state) {
    JournalBatch batch;
    for (int i = 0; i < entries; ++i) {
      batch.entries.push_back({"bench", absl::StrCat("key-", i), std::string(100, 'v')});
    }
    opened->journal->Commit(std::move(batch), [&state](const absl::Status& status) {
      if (!status.ok()) state.SkipWithError(std::string(status.message()).c_str());
    });
    // The journal keeps the loop from running dry until the batch is on disk.
    io.restart();
    io.run();
  }
  state.SetItemsProcessed(state.iterations() * entries);
}
BENCHMARK(BM_Commit)->Arg(1)->Arg(8)->Arg(64)->Arg(512)->UseRealTime()->Unit(
    benchmark::kMicrosecond);

}  // namespace
}  // namespace muster::rendezvous
