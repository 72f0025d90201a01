#include "test/bench/store/replay.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "test/bench/store/connection.h"
#include "test/bench/store/wire.h"

namespace muster::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kOpcodeBytes = 1;

enum class Reply { kNone, kByte, kNumber, kString, kGather };

struct Step {
  std::string request;
  Reply reply = Reply::kNone;
};

struct Rank {
  explicit Rank(std::uint16_t port) : connection(port), idle(port) {}

  Connection connection;
  Connection idle;
  std::vector<Step> steps;
  std::size_t next = 0;
  std::string received;  // of the reply that is waited for
};

[[noreturn]] void Reject(const std::string& line) {
  std::cerr << "store_client: a trace has no such line: " << line << "\n";
  std::exit(1);
}

Step ParseStep(const std::string& line, const std::string& op, const std::string& key,
               std::int64_t number) {
  Step step;
  if (op == "set") {
    EncodeSet(key, std::string(static_cast<std::size_t>(number), 'v'), step.request);
  } else if (op == "add") {
    EncodeAdd(key, number, step.request);
    step.reply = Reply::kNumber;
  } else if (op == "wait") {
    EncodeWait(key, step.request);
    step.reply = Reply::kByte;
  } else if (op == "get") {
    EncodeGet(key, step.request);
    step.reply = Reply::kString;
  } else if (op == "gather") {
    step.reply = Reply::kGather;
  } else {
    Reject(line);
  }
  return step;
}

std::deque<Rank> Load(const std::string& file, std::uint16_t port) {
  std::deque<Rank> ranks;
  std::ifstream lines(file);
  if (!lines) Die("open " + file);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::size_t rank = 0;
    std::string op;
    std::string key;
    std::int64_t number = 0;
    if (!(words >> rank >> op >> key >> number)) Reject(line);
    while (ranks.size() <= rank) ranks.emplace_back(port);
    ranks[rank].steps.push_back(ParseStep(line, op, key, number));
  }
  return ranks;
}

class Replay {
 public:
  explicit Replay(std::deque<Rank> ranks)
      : ranks_(std::move(ranks)), poller_(epoll_create1(EPOLL_CLOEXEC)) {
    if (poller_ < 0) Die("epoll_create1");
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      epoll_event interest{.events = EPOLLIN, .data = {.u64 = i}};
      if (epoll_ctl(poller_, EPOLL_CTL_ADD, ranks_[i].connection.fd(), &interest) != 0) {
        Die("epoll_ctl");
      }
    }
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  ~Replay() { close(poller_); }

  void Run() {
    for (Rank& rank : ranks_) Advance(rank);
    std::vector<epoll_event> ready(ranks_.size());
    while (finished_ < ranks_.size()) {
      const int count = epoll_wait(poller_, ready.data(), static_cast<int>(ready.size()), -1);
      if (count < 0) Die("epoll_wait");
      for (int i = 0; i < count; ++i) {
        Receive(ranks_[ready[static_cast<std::size_t>(i)].data.u64]);
      }
    }
  }

  std::uint64_t requests() const { return requests_; }

 private:
  // Sends until there is a reply to wait for.
  void Advance(Rank& rank) {
    for (;;) {
      if (rank.next == rank.steps.size()) {
        ++finished_;
        return;
      }
      const Step& step = rank.steps[rank.next];
      if (step.reply == Reply::kGather) return Gather(rank);
      rank.connection.Send(std::string_view(step.request).substr(0, kOpcodeBytes));
      rank.connection.Send(std::string_view(step.request).substr(kOpcodeBytes));
      ++requests_;
      if (step.reply != Reply::kNone) return;
      ++rank.next;
    }
  }

  void Gather(Rank& rank) {
    gathered_.push_back(&rank);
    if (gathered_.size() < ranks_.size()) return;
    for (Rank* each : std::exchange(gathered_, {})) {
      ++each->next;
      Advance(*each);
    }
  }

  void Receive(Rank& rank) {
    char bytes[4096];
    rank.received.append(bytes, rank.connection.ReceiveSome(bytes, sizeof bytes));
    if (rank.received.size() < ReplyBytes(rank)) return;
    rank.received.clear();
    ++rank.next;
    Advance(rank);
  }

  // As far as one can know yet.
  static std::size_t ReplyBytes(const Rank& rank) {
    if (rank.steps[rank.next].reply == Reply::kByte) return 1;
    if (rank.steps[rank.next].reply == Reply::kNumber) return kNumberBytes;
    if (rank.received.size() < kNumberBytes) return kNumberBytes;
    std::uint64_t length = 0;
    std::memcpy(&length, rank.received.data(), sizeof length);
    return kNumberBytes + length;
  }

  std::deque<Rank> ranks_;
  int poller_;
  std::vector<Rank*> gathered_;
  std::size_t finished_ = 0;
  std::uint64_t requests_ = 0;
};

}  // namespace

void MeasureReplay(std::uint16_t port, const std::string& file) {
  Replay replay(Load(file, port));
  const auto start = Clock::now();
  replay.Run();
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  std::printf("{\"ms\": %.3f, \"requests\": %llu}\n", ms,
              static_cast<unsigned long long>(replay.requests()));
}

}  // namespace muster::bench
