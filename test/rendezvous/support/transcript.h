// Transcripts: tests of the core as text that people can read and edit.
//
//   # A comment. Blank lines and comments are for the reader only.
//   @0 wait alpha beta timeout=500
//     pending 1
//   @120 set alpha ""
//   @500 tick
//     1 timed out
//
// A line that begins with `@` is a command: the time in milliseconds since the start, then words. A
// word in double quotes may contain spaces and C escapes ("\x00"). The lines below it that begin
// with two spaces are its expected outcomes, compared exactly; a command without outcomes has none.
//
// When behaviour changes on purpose, run the test with MUSTER_REWRITE=1 in its environment: it
// prints each transcript with the actual outcomes, to be reviewed and copied over the old one.
//   bazel test --test_env=MUSTER_REWRITE=1 --test_output=all //test/rendezvous/core:...
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// Applies a command to the object under test. Returns its outcomes, one line each, without
// indentation.
using TranscriptStep =
    std::function<std::vector<std::string>(TimePoint now, const std::vector<std::string>& words)>;

// A difference between a transcript and what happened.
struct TranscriptDifference {
  std::string file;
  int line = 0;  // of the command, from 1
  std::string message;
};

struct TranscriptResult {
  // Empty if the transcript is correct.
  std::vector<TranscriptDifference> differences;
  // The transcript with the actual outcomes. Comments and blank lines are kept.
  std::string actual;
};

// Runs every command of `text` through `step`, in order, and continues after a difference. `file`
// is only used in messages. Malformed lines (no time, a time that goes backwards, an open quote)
// count as differences.
TranscriptResult RunTranscript(std::string_view file, std::string_view text,
                               const TranscriptStep& step);

// Runs the transcript at `path` and reports each difference as a failure of the current test.
void ExpectTranscript(const std::string& path, const TranscriptStep& step);

// Paths of test/rendezvous/testdata/<prefix>*.txt, sorted: the parameters of a TEST_P.
std::vector<std::string> TranscriptPaths(std::string_view prefix);

// "test/rendezvous/testdata/round_late_node.txt" -> "round_late_node": the name of a TEST_P's case.
std::string TranscriptName(std::string_view path);

}  // namespace muster::rendezvous
