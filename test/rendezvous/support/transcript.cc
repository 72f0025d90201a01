#include "test/rendezvous/support/transcript.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"

namespace muster::rendezvous {
namespace {

constexpr char kFolder[] = "test/rendezvous/testdata";
constexpr std::string_view kIndent = "  ";

// The words of a command line; nothing when a quote stays open or an escape has no meaning.
std::optional<std::vector<std::string>> SplitWords(std::string_view line) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while (at < line.size()) {
    if (line[at] == ' ') {
      ++at;
      continue;
    }
    std::string word;
    while (at < line.size() && line[at] != ' ') {
      if (line[at] != '"') {
        word += line[at++];
        continue;
      }
      const std::size_t open = ++at;
      while (at < line.size() && line[at] != '"') at += line[at] == '\\' ? 2 : 1;
      std::string quoted;
      if (at >= line.size()) return {};
      if (!absl::CUnescape(std::string(line.substr(open, at - open)), &quoted)) return {};
      word += quoted;
      ++at;
    }
    words.push_back(std::move(word));
  }
  return words;
}

struct Command {
  TimePoint time;
  std::vector<std::string> words;
};

std::optional<Command> ParseCommand(std::string_view line) {
  std::optional<std::vector<std::string>> words = SplitWords(line);
  std::int64_t ms = 0;
  if (!words || words->size() < 2 || !absl::SimpleAtoi((*words)[0].substr(1), &ms)) return {};
  words->erase(words->begin());
  return Command{TimePoint(std::chrono::milliseconds(ms)), *std::move(words)};
}

bool IsForReaderOnly(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  return begin == line.npos || line[begin] == '#';
}

std::string Indented(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text.append(kIndent).append(line).append("\n");
  return text;
}

std::vector<std::string> SplitLines(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TranscriptResult RunTranscript(std::string_view file, std::string_view text,
                               const TranscriptStep& step) {
  const std::vector<std::string> lines = SplitLines(text);
  TranscriptResult result;
  TimePoint latest = TimePoint::min();

  std::size_t at = 0;
  while (at < lines.size()) {
    const std::string& line = lines[at++];
    const int number = static_cast<int>(at);
    const auto differs = [&](std::string message) {
      result.differences.push_back({std::string(file), number, line + "\n" + std::move(message)});
    };
    result.actual += line + "\n";
    if (IsForReaderOnly(line)) continue;

    const std::optional<Command> command =
        line.front() == '@' ? ParseCommand(line) : std::optional<Command>();
    if (!command) {
      differs("is neither \"@<ms> command ...\" nor an outcome of one");
      continue;
    }
    if (command->time < latest) {
      differs("runs backwards in time");
      continue;
    }
    latest = command->time;

    std::vector<std::string> expected;
    while (at < lines.size() && lines[at].starts_with(kIndent)) {
      expected.push_back(lines[at++].substr(kIndent.size()));
    }
    const std::vector<std::string> outcomes = step(command->time, command->words);
    result.actual += Indented(outcomes);
    if (outcomes != expected) {
      differs("expected:\n" + Indented(expected) + "actual:\n" + Indented(outcomes));
    }
  }
  return result;
}

void ExpectTranscript(const std::string& path, const TranscriptStep& step) {
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  ASSERT_TRUE(stream) << "cannot read " << path;
  const TranscriptResult result = RunTranscript(path, text.str(), step);
  if (std::getenv("MUSTER_REWRITE") != nullptr) {
    std::cout << "---- " << path << "\n" << result.actual;
  }
  for (const TranscriptDifference& difference : result.differences) {
    ADD_FAILURE_AT(difference.file.c_str(), difference.line) << difference.message;
  }
}

std::vector<std::string> TranscriptPaths(std::string_view prefix) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".txt")) {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string TranscriptName(std::string_view path) {
  return std::filesystem::path(path).stem().string();
}

}  // namespace muster::rendezvous
