// What the rendezvous is told about a worker that failed: what its group saw, and what that means
// for the job.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "base/redact.h"
#include "launcher/cli/launch_config.h"
#include "rendezvous/core/values/types.h"
#include "worker/exit_status.h"

namespace muster::launcher {

// What is known of a worker's progress. The defaults mean that it was not watched.
struct ProgressFacts {
  // Workers report progress, and this one had not done so yet.
  bool no_beat_yet = false;
  // It was killed for its silence, and the user wants no restart then.
  bool ends_job = false;
};

// The report on a worker of `node`, without the content of its error file. It is final, so that no
// restart follows, when `progress` says so or when the worker exited with one of
// `final_exit_codes`; a signal does not count as one.
rendezvous::WorkerFailure ReportOf(const worker::FailureRecord& record,
                                   const rendezvous::NodeInfo& node, const ProgressFacts& progress,
                                   const std::vector<ExitCodeRange>& final_exit_codes);

// What a Python worker decorated with torch's @record leaves behind when it fails: a JSON file that
// names the exception (torch/distributed/elastic/multiprocessing/errors/error_handler.py).

// Of a long text (an exception's message may be a tensor) only the beginning and the end, with how
// much is left out between them.
struct ErrorFile {
  // "ValueError: no such layer".
  std::string message;
  // Python's, lines ended by '\n'; empty when there is none.
  std::string traceback;
  // When it happened, in seconds since 1970 by that node's clock.
  std::optional<std::int64_t> timestamp;

  bool operator==(const ErrorFile&) const = default;
};

// Reads {"message": {"message": TEXT, "extraInfo": {"py_callstack": TEXT, "timestamp": "SECONDS"}}}
// or the older {"message": TEXT, "timestamp": SECONDS}. nullopt when there is no message in it:
// workers write these files while they die, so any part may be missing. Secrets are taken out
// before anything is left out, lest a half of one remain.
std::optional<ErrorFile> ParseErrorFile(absl::string_view json, const base::Redactor& redact = {});

// Writes the root cause of a failed job as such a file, replacing any that exists. torchrun does
// the same at the end for whoever started it, with the worker's exit code (-n for signal n) as
// message.errorCode. Whatever else the worker's own file says is kept if it can be read here. A
// failure without an error file gets one that says how the worker ended.
absl::Status WriteRootCause(const std::string& path, const rendezvous::WorkerFailure& failure,
                            const base::Redactor& redact = {});

// Reads the file at `path`. nullopt when it does not exist, is not a regular file or says nothing.
// What is not such a record, or is larger than 16 MiB, is its own message: it may have been written
// by something else, or not to its end.
std::optional<ErrorFile> ReadErrorFile(const std::string& path, const base::Redactor& redact = {});

// Failures that every start of the same command would repeat: a script that cannot be compiled,
// arguments that are wrong.

// What is known of the start of the round in which a worker failed.
struct StartFacts {
  // No worker of its node had beaten.
  bool no_beat = false;
  // Since the workers of its node were started.
  std::chrono::nanoseconds elapsed{};
  // All workers of its node have exited with the same code.
  bool alike = false;
};

// A worker that ends so, that soon and without a beat, may have been given arguments that are
// wrong: the code for that is 2 (Python's argparse, click and absl, and every shell). If so, all
// others of its node are about to end in the same way.
bool MayBeUsageError(const worker::ExitStatus& status, const StartFacts& facts);

// Why another start would fail as this one did, a phrase that follows "as": "its script cannot be
// compiled". Empty: it might not. Only of a worker that has not beaten, and within five minutes:
// that it was a start that failed is known from the worker's last words; or, if these do not say
// so, from code 2 of all workers of the node within a minute.
std::string WhyEachStartFails(const rendezvous::WorkerFailure& failure, const StartFacts& facts);

}  // namespace muster::launcher
