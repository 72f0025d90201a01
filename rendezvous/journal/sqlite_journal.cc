#include "rendezvous/journal/sqlite_journal.h"

#include <signal.h>

#include <cstdint>
#include <cstdlib>
#include <functional>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/lifetime.h"

namespace muster::rendezvous {
namespace {

// A pool of one thread, which takes no signals: they are the main thread's.
std::unique_ptr<boost::asio::thread_pool> StartThread() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  auto thread = std::make_unique<boost::asio::thread_pool>(1);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

class SqliteJournal : public Journal {
 public:
  SqliteJournal(boost::asio::io_context& io, StateDirectory directory,
                std::unique_ptr<JournalFile> file)
      : io_(io), directory_(std::move(directory)), file_(std::move(file)), thread_(StartThread()) {}

  void Commit(JournalBatch batch, std::function<void(absl::Status)> done) override {
    if (std::exchange(is_busy_, true)) std::abort();
    boost::asio::post(
        *thread_, [this, batch = std::move(batch), done = std::move(done),
                   watch = lifetime_.watch(), stay = boost::asio::make_work_guard(io_)]() mutable {
          absl::Status status = file_->Write(batch);
          boost::asio::post(io_, [this, status = std::move(status), done = std::move(done),
                                  watch = std::move(watch), bytes = file_->Bytes()]() mutable {
            if (watch.over()) return;
            is_busy_ = false;
            bytes_ = bytes;
            done(std::move(status));
          });
          stay.reset();
          // While the loop goes on; only the next batch waits for it.
          file_->Tidy();
        });
  }

  std::uint64_t bytes() const override { return bytes_; }

 private:
  boost::asio::io_context& io_;
  const StateDirectory directory_;
  // The thread's, from the first Commit until the thread has ended.
  const std::unique_ptr<JournalFile> file_;

  bool is_busy_ = false;
  std::uint64_t bytes_ = 0;
  const base::Lifetime lifetime_;
  // Last: it is waited for before what it uses goes.
  const std::unique_ptr<boost::asio::thread_pool> thread_;
};

}  // namespace

absl::StatusOr<OpenedJournal> OpenSqliteJournal(boost::asio::io_context& io,
                                                StateDirectory directory,
                                                SqliteJournalOptions options) {
  OpenedJournal opened;
  auto file = JournalFile::Open(directory, std::move(options), opened.contents);
  if (!file.ok()) return file.status();
  opened.journal = std::make_unique<SqliteJournal>(io, std::move(directory), *std::move(file));
  return opened;
}

absl::StatusOr<OpenedJournal> OpenSqliteJournal(boost::asio::io_context& io,
                                                const std::string& directory,
                                                SqliteJournalOptions options) {
  absl::StatusOr<StateDirectory> taken = StateDirectory::Take(directory);
  if (!taken.ok()) return taken.status();
  return OpenSqliteJournal(io, *std::move(taken), std::move(options));
}

}  // namespace muster::rendezvous
