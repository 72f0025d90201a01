// Transcripts: tests of the core as text that a person can read and edit.
//
//   # A comment. Blank lines and comments are for the reader only.
//   @0 wait alpha beta timeout=500
//     pending 1
//   @120 set alpha ""
//   @500 tick
//     1 timed out
//
// A line that begins with `@` is a command: the time in milliseconds since the start, then words. A
// word in double quotes may hold spaces and C escapes ("\x00"). The lines below it that begin with
// two spaces are the outcomes it must have, compared exactly; none are written for a command
// without any.
//
// When behaviour changes on purpose, run the test with MUSTER_REWRITE=1 in its environment: it
// prints each transcript as it would have to be, to be read and copied over the old one.
//   bazel test --test_env=MUSTER_REWRITE=1 --test_output=all //test/rendezvous/core:...
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// What a command does to the thing under test. Returns its outcomes, one line each, without
// indentation.
using TranscriptStep =
    std::function<std::vector<std::string>(TimePoint now, const std::vector<std::string>& words)>;

// One place where a transcript does not say what happened.
struct TranscriptDifference {
  std::string file;
  int line = 0;  // of the command, from 1
  std::string message;
};

struct TranscriptResult {
  // Empty when the transcript is true.
  std::vector<TranscriptDifference> differences;
  // The transcript with the outcomes that the steps really had; comments and blank lines are kept.
  std::string actual;
};

// Runs every command of `text` through `step`, in order, also after a difference. `file` is only
// shown. Lines that are no transcript (no time, a time that runs backwards, an open quote) are
// differences too.
TranscriptResult RunTranscript(std::string_view file, std::string_view text,
                               const TranscriptStep& step);

// Runs the transcript at `path` and fails the current test at each line that differs.
void ExpectTranscript(const std::string& path, const TranscriptStep& step);

// Paths of test/rendezvous/testdata/<prefix>*.txt, sorted: the parameters of a TEST_P.
std::vector<std::string> TranscriptPaths(std::string_view prefix);

// "test/rendezvous/testdata/round_late_node.txt" -> "round_late_node": the name of a TEST_P's case.
std::string TranscriptName(std::string_view path);

}  // namespace muster::rendezvous
