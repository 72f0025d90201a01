// The journal in a state directory on disk.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "absl/status/statusor.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/journal/journal_file.h"
#include "rendezvous/journal/state_directory.h"

namespace muster::rendezvous {

// Opens the journal in `directory`, and holds the directory until the journal is destroyed. On
// return this start has been counted, durably. Waits for the disk; later writes are done by the
// journal's own thread, so that a slow disk never holds up the loop. `io` must outlive the journal.
//
// Each error is one sentence for whoever starts the daemon:
//   DataLoss             the journal is damaged; nothing was changed
//   FailedPrecondition   the directory cannot be used, or a later version has written the journal
//   ResourceExhausted    the disk is full
//   Internal             anything else
absl::StatusOr<OpenedJournal> OpenSqliteJournal(boost::asio::io_context& io,
                                                StateDirectory directory,
                                                SqliteJournalOptions options = {});
// The same, for a directory that it takes first, with the errors of StateDirectory::Take.
absl::StatusOr<OpenedJournal> OpenSqliteJournal(boost::asio::io_context& io,
                                                const std::string& directory,
                                                SqliteJournalOptions options = {});

}  // namespace muster::rendezvous
