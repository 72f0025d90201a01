// Feeds arbitrary bytes to what reads lists of hosts and what the hosts of a launch tree say, for
// libFuzzer (scripts/fuzz.sh) and for fuzz_seeds_test. The first byte chooses the reader.
//
// In addition to the sanitizers' checks: a list that is written again is read as the same, nothing
// in it could be taken for an option, a stream says the same in one piece as in many, and no text
// of a host moves the cursor.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "launcher/remote/host_list.h"
#include "launcher/remote/launch_wire.h"
#include "launcher/remote/link_command.h"
#include "proto/launch.pb.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/quiet_protobuf.h"

namespace muster::launcher {
namespace {

void Expect(bool holds) {
  if (!holds) std::abort();
}

std::string Written(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts) {
    const bool address = absl::StrContains(host.name, ':');
    absl::StrAppend(&text, text.empty() ? "" : ",", host.user, host.user.empty() ? "" : "@",
                    address ? "[" : "", host.name, address ? "]" : "");
    if (host.workers) absl::StrAppend(&text, ":", *host.workers);
  }
  return text;
}

void Check(const absl::StatusOr<std::vector<Host>>& hosts) {
  if (!hosts.ok()) return Expect(!hosts.status().message().empty());
  Expect(!hosts->empty());
  for (const Host& host : *hosts) {
    Expect(!host.name.empty() && host.name.front() != '-');
    Expect(host.user.empty() || host.user.front() != '-');
    for (const std::string& word : SshCommand(host, "command", std::nullopt)) {
      Expect(!word.empty());
    }
  }
  // A list of thousands takes as long as thousands of lists.
  if (hosts->size() > 64) return;
  const auto again = ParseHostList(Written(*hosts));
  Expect(again.ok() && *again == *hosts);
}

void CheckLaunchWith(const std::string& text) {
  const auto words = ParseLaunchWith(text);
  if (!words.ok()) return;
  const auto command = LaunchWithCommand(*words, {.name = "node", .user = "alice"}, "c");
  Expect(command.size() == words->size());
}

struct Said {
  std::vector<std::string> messages;
  bool wrong = false;

  bool operator==(const Said&) const = default;
};

// What a stream says that comes in pieces of that size.
Said Listen(absl::string_view bytes, std::size_t piece, bool upwards) {
  FrameReader reader(upwards ? kMaxFrameUp : kMaxFrameDown, upwards);
  Said said;
  for (std::size_t at = 0; at < bytes.size() && !said.wrong; at += piece) {
    reader.Add(bytes.substr(at, piece));
    for (;;) {
      const auto next = reader.Next();
      said.wrong = !next.ok();
      if (!next.ok() || !next->has_value()) break;
      said.messages.push_back(**next);
    }
  }
  return said;
}

bool IsPlain(const std::string& text) {
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c < ' ' || c == 0x7f; });
}

void CheckUp(const std::string& bytes) {
  launch::v1::Up up;
  if (!up.ParseFromString(bytes) || !up.has_news()) return;
  const HostNews news = ToNews(up.news());
  Expect(IsPlain(news.reason) && IsPlain(news.endpoint));
  Expect(ToNews(ToMessage(news)) == news);
}

void CheckDown(const std::string& bytes) {
  launch::v1::Down down;
  if (!down.ParseFromString(bytes) || !down.has_adopt()) return;
  for (const launch::v1::Host& host : down.adopt().hosts()) {
    ToHost(host);
    ToCharge(host);
  }
}

// Whether the text may stand for thousands of hosts, over which an hour would go by.
bool IsManifold(const std::string& text) {
  if (!absl::StrContains(text, '-')) return false;
  int digits = 0;
  for (const char c : text) {
    digits = absl::ascii_isdigit(static_cast<unsigned char>(c)) ? digits + 1 : 0;
    if (digits > 3) return true;
  }
  return std::count(text.begin(), text.end(), '[') > 1;
}

void Read(unsigned which, const std::string& text) {
  if (which % 5 < 2 && IsManifold(text)) return;
  switch (which % 5) {
    case 0:
      return Check(ParseHostList(text));
    case 1:
      return Check(ParseHostfile(text, "hosts"));
    case 2:
      return CheckLaunchWith(text);
    default: {
      const bool upwards = which % 5 == 3;
      const Said said = Listen(text, text.size() + 1, upwards);
      Expect(Listen(text, 1, upwards) == said);
      for (const std::string& message : said.messages)
        upwards ? CheckUp(message) : CheckDown(message);
    }
  }
}

}  // namespace
}  // namespace muster::launcher

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  muster::QuietProtobuf();
  muster::launcher::Read(data[0], std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
