#include "launcher/run/failure_report.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/failure.h"
#include "base/json.h"

namespace muster::launcher {
namespace {

bool IsOneOf(const worker::ExitStatus& status, const std::vector<ExitCodeRange>& codes) {
  if (status.signal != 0) return false;
  return std::any_of(codes.begin(), codes.end(), [&status](const ExitCodeRange& range) {
    return range.first <= status.exit_code && status.exit_code <= range.last;
  });
}

using base::Json;

// The member `name` of `object`; null when `object` has none or is no object.
const Json& Member(const Json& object, const char* name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

std::string Text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : "";
}

std::optional<std::int64_t> Seconds(const Json& value) {
  std::int64_t seconds = 0;
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_string() && absl::SimpleAtoi(value.get_ref<const std::string&>(), &seconds)) {
    return seconds;
  }
  return std::nullopt;
}

// A longer file is not read as JSON, which would hold up the loop.
constexpr std::uintmax_t kMaxJson = 16 << 20;
// What else a longer file says is not passed on: to look through it for secrets takes too long.
constexpr std::uintmax_t kMaxPassedOn = 1 << 20;
// Deeper JSON is not written again: that takes a call for each level.
constexpr int kMaxDepth = 100;

// What is shown of a text that is longer than both together, and more than that by what is said
// between them. A message fits into a line that the rendezvous passes on (4 KiB).
struct Ends {
  std::size_t first = 0;
  std::size_t last = 0;
};
constexpr Ends kOfMessage = {.first = 2048, .last = 1536};
constexpr Ends kOfTraceback = {.first = 8 * 1024, .last = 7 * 1024};

// Bytes 10xxxxxx continue a character of UTF-8.
bool ContinuesCharacter(char byte) {
  return (byte & 0xc0) == 0x80;
}

// What more of a long text is looked through for secrets than is shown: a half of one must not
// remain. All of a tensor would take seconds.
constexpr std::size_t kMargin = 1024;

// A text of `size` bytes that begins with `first` and ends with `last`, both with their margins.
// Neither is cut in the middle of a character.
std::string Abridged(absl::string_view first, absl::string_view last, std::uintmax_t size,
                     const Ends& ends, const base::Redactor& redact) {
  const std::string whole_first = redact(first);
  const std::string whole_last = redact(last);
  first = absl::string_view(whole_first).substr(0, ends.first);
  last = whole_last;
  last.remove_prefix(last.size() - std::min(last.size(), ends.last));
  while (!first.empty() && ContinuesCharacter(first.back())) first.remove_suffix(1);
  if (!first.empty() && (first.back() & 0x80) != 0) first.remove_suffix(1);
  while (!last.empty() && ContinuesCharacter(last.front())) last.remove_prefix(1);
  return absl::StrCat(first, " [... ", size - ends.first - ends.last,
                      " bytes more in the error file ...] ", last);
}

std::string Abridged(absl::string_view text, const Ends& ends, const base::Redactor& redact) {
  if (text.size() <= ends.first + ends.last + 2 * kMargin) {
    const std::string redacted = redact(text);
    if (redacted.size() <= ends.first + ends.last) return redacted;
    return Abridged(redacted, redacted, redacted.size(), ends, base::Redactor());
  }
  return Abridged(text.substr(0, ends.first + kMargin),
                  text.substr(text.size() - ends.last - kMargin), text.size(), ends, redact);
}

bool IsDeeperThan(int depth, const Json& value) {
  if (!value.is_structured()) return false;
  return depth == 0 || std::any_of(value.begin(), value.end(), [depth](const Json& member) {
           return IsDeeperThan(depth - 1, member);
         });
}

// Its size; nothing when it is not there or is no regular file.
std::optional<std::uintmax_t> SizeOf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  return error ? std::nullopt : std::optional(size);
}

std::string ReadBytes(const std::string& path, std::uintmax_t from, std::uintmax_t count) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(static_cast<std::size_t>(count), '\0');
  file.seekg(static_cast<std::streamoff>(from));
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return bytes;
}

// All of it; nothing when it is longer than kMaxPassedOn, or cannot be had.
std::optional<std::string> ReadText(const std::string& path) {
  const auto size = SizeOf(path);
  if (!size || *size > kMaxPassedOn) return std::nullopt;
  return ReadBytes(path, 0, *size);
}

// JSON that holds nothing.
bool SaysNothing(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  return text.empty() || text == "{}" || text == "[]" || text == "null" || text == "\"\"";
}

constexpr int kUsageError = 2;
// To read a large framework from a busy file server takes a while, and arguments are looked at
// after that.
constexpr std::chrono::minutes kMostOfAStart(5);
constexpr std::chrono::minutes kSoon(1);

// Python's compiler is in the last line, and has refused the script or a module that it imports,
// which is the same each time; not a text that the program had it read (ast.literal_eval, exec), as
// a configuration that somebody was just writing: that has a name such as "<string>".
bool IsCompilersError(const std::vector<absl::string_view>& lines) {
  const auto is_error = [&lines](absl::string_view error) {
    return absl::StartsWith(lines.back(), error);
  };
  if (!is_error("SyntaxError: ") && !is_error("IndentationError: ") && !is_error("TabError: ")) {
    return false;
  }
  constexpr absl::string_view kTraceback = "Traceback (most recent call last):";
  if (std::find(lines.begin(), lines.end(), kTraceback) == lines.end()) return true;
  const auto place = std::find_if(lines.rbegin(), lines.rend(), [](absl::string_view line) {
    return absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "File \"");
  });
  // What was compiled has a place without ", in FUNCTION"; a program that raises such an error
  // itself has one with it, as Pillow for a broken image.
  if (place == lines.rend() || absl::StrContains(*place, "File \"<")) return false;
  const std::size_t end = place->rfind('"');
  return absl::EndsWith(place->substr(0, end), ".py") &&
         !absl::StrContains(place->substr(end), ", in ");
}

// "/usr/bin/python3: No module named train", of `python -m train`; "python3: can't open file
// '/work/train.py': [Errno 2] No such file or directory".
bool FoundNoScript(absl::string_view line) {
  const std::size_t colon = line.find(": ");
  if (colon == absl::string_view::npos) return false;
  const absl::string_view path = line.substr(0, colon);
  const absl::string_view program = path.substr(path.rfind('/') + 1);
  if (absl::StrContains(program, ' ') || !absl::StrContains(program, "python")) return false;
  const absl::string_view what = line.substr(colon + 2);
  return absl::StartsWith(what, "No module named ") || absl::StartsWith(what, "can't open file ");
}

}  // namespace

rendezvous::WorkerFailure ReportOf(const worker::FailureRecord& record,
                                   const rendezvous::NodeInfo& node, const ProgressFacts& progress,
                                   const std::vector<ExitCodeRange>& final_exit_codes) {
  return {.rank = record.rank,
          .local_rank = record.local_rank,
          .node_id = node.node_id,
          .host = node.host,
          .pid = record.pid,
          .exit_code = record.status.exit_code,
          .signal = record.status.signal,
          .what = record.what,
          .stderr_tail = record.stderr_tail,
          .log_path = record.log_path,
          .error_file = record.error_file,
          .before_first_beat = progress.no_beat_yet,
          .final = progress.ends_job || IsOneOf(record.status, final_exit_codes)};
}

std::optional<ErrorFile> ParseErrorFile(absl::string_view text, const base::Redactor& redact) {
  const Json root = base::ParseJson({text.data(), text.size()});
  const Json& message = Member(root, "message");
  ErrorFile file;
  if (message.is_string()) {
    file.message = Text(message);
    file.timestamp = Seconds(Member(root, "timestamp"));
  } else {
    const Json& extra = Member(message, "extraInfo");
    file.message = Text(Member(message, "message"));
    file.traceback = Text(Member(extra, "py_callstack"));
    file.timestamp = Seconds(Member(extra, "timestamp"));
  }
  if (file.message.empty()) return std::nullopt;
  file.message = Abridged(file.message, kOfMessage, redact);
  file.traceback = Abridged(file.traceback, kOfTraceback, redact);
  return file;
}

std::optional<ErrorFile> ReadErrorFile(const std::string& path, const base::Redactor& redact) {
  const auto size = SizeOf(path);
  if (!size) return std::nullopt;
  if (*size > kMaxJson) {
    const std::uintmax_t last = kOfMessage.last + kMargin;
    return ErrorFile{.message =
                         Abridged(ReadBytes(path, 0, kOfMessage.first + kMargin),
                                  ReadBytes(path, *size - last, last), *size, kOfMessage, redact)};
  }
  const std::string text = ReadBytes(path, 0, *size);
  if (auto file = ParseErrorFile(text, redact)) return file;
  if (SaysNothing(text)) return std::nullopt;
  return ErrorFile{.message = Abridged(text, kOfMessage, redact)};
}

absl::Status WriteRootCause(const std::string& path, const rendezvous::WorkerFailure& failure,
                            const base::Redactor& redact) {
  const std::string own = ReadText(failure.error_file).value_or("");
  Json root = base::ParseJson(own);
  // What is reported is abridged, and has no secrets any more.
  const bool same = root.is_object() && root.contains("message") && root["message"].is_object() &&
                    Abridged(Text(Member(root["message"], "message")), kOfMessage, redact) ==
                        redact(failure.error_message) &&
                    !IsDeeperThan(kMaxDepth, root);
  if (!same) {
    root = {{"message",
             {{"message", failure.error_message.empty() ? failure.what : failure.error_message},
              {"extraInfo",
               {{"py_callstack", failure.error_traceback},
                {"timestamp", absl::StrCat(failure.error_time)}}}}}};
  }
  root["message"]["errorCode"] = failure.signal != 0 ? -failure.signal : failure.exit_code;
  base::RedactTexts(redact, root);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << base::JsonText(root);
  file.close();
  if (file) return absl::OkStatus();
  return base::SystemFailure(absl::StatusCode::kUnavailable, "write the root cause to",
                             path + " (TORCHELASTIC_ERROR_FILE)");
}

bool MayBeUsageError(const worker::ExitStatus& status, const StartFacts& facts) {
  return status.signal == 0 && status.exit_code == kUsageError && facts.no_beat &&
         facts.elapsed < kSoon;
}

std::string WhyEachStartFails(const rendezvous::WorkerFailure& failure, const StartFacts& facts) {
  if (failure.signal != 0 || !facts.no_beat || facts.elapsed >= kMostOfAStart) return "";
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::StripTrailingAsciiWhitespace(failure.stderr_tail), '\n');
  if (failure.exit_code == 1 && IsCompilersError(lines)) return "its script cannot be compiled";
  if (FoundNoScript(lines.back())) return "its script was not found";
  if (failure.exit_code != kUsageError) return "";
  const bool tells_usage = std::any_of(lines.begin(), lines.end(), [](absl::string_view line) {
    return absl::StartsWithIgnoreCase(absl::StripLeadingAsciiWhitespace(line), "usage:");
  });
  if (tells_usage) return "its arguments are wrong";
  if (!facts.alike || facts.elapsed >= kSoon) return "";
  return "all workers of its node ended with code 2, which means that their command line is wrong";
}

}  // namespace muster::launcher
