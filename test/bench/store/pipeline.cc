#include "test/bench/store/pipeline.h"

#include <poll.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "test/bench/store/connection.h"
#include "test/bench/store/wire.h"

namespace muster::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRequestsPerBlock = 512;
// Sent, and not yet answered whole: enough that neither side ever waits for the other to have read.
constexpr std::uint64_t kBlocksInFlight = 8;
constexpr std::size_t kValueBytes = 32;
constexpr double kWarmUpShare = 0.2;

// Some requests that are sent again and again.
struct Block {
  std::string requests;
  int count = 0;
  std::size_t reply_bytes = 0;
};

std::string KeyOf(int i) {
  return "/bench/" + std::to_string(i);
}

Block Adds() {
  Block block{.count = kRequestsPerBlock, .reply_bytes = kRequestsPerBlock * kNumberBytes};
  for (int i = 0; i < kRequestsPerBlock; ++i) EncodeAdd("/bench/counter", 1, block.requests);
  return block;
}

// Sets are not answered; so that one knows when they are done, an add follows.
Block Sets() {
  Block block{.count = kRequestsPerBlock, .reply_bytes = kNumberBytes};
  const std::string value(kValueBytes, 'v');
  for (int i = 0; i < kRequestsPerBlock; ++i) EncodeSet(KeyOf(i), value, block.requests);
  EncodeAdd("/bench/counter", 1, block.requests);
  return block;
}

Block Gets() {
  Block block{.count = kRequestsPerBlock,
              .reply_bytes = kRequestsPerBlock * (kNumberBytes + kValueBytes)};
  for (int i = 0; i < kRequestsPerBlock; ++i) EncodeGet(KeyOf(i), block.requests);
  return block;
}

// Requests in a second.
double Rate(const Connection& connection, const Block& block, double seconds) {
  std::vector<char> replies(256 << 10);
  std::string_view unsent;
  std::uint64_t blocks_sent = 0;
  std::uint64_t bytes_answered = 0;
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration<double>(seconds);
  bool more = true;
  while (more || !unsent.empty() || bytes_answered < blocks_sent * block.reply_bytes) {
    const std::uint64_t in_flight = blocks_sent - bytes_answered / block.reply_bytes;
    if (unsent.empty() && more && in_flight < kBlocksInFlight) {
      more = Clock::now() < end;
      if (!more) continue;  // there may be nothing left to wait for
      unsent = block.requests;
      ++blocks_sent;
    }
    const short events = unsent.empty() ? POLLIN : POLLIN | POLLOUT;
    pollfd waiting{connection.fd(), events, 0};
    if (poll(&waiting, 1, -1) < 0) Die("poll");
    if (waiting.revents & ~POLLOUT) {
      bytes_answered += connection.ReceiveSome(replies.data(), replies.size());
    }
    if (waiting.revents & POLLOUT) unsent.remove_prefix(connection.SendSome(unsent));
  }
  const std::chrono::duration<double> took = Clock::now() - start;
  return static_cast<double>(blocks_sent) * block.count / took.count();
}

double Measure(const Connection& connection, const Block& block, double seconds) {
  Rate(connection, block, seconds * kWarmUpShare);
  return Rate(connection, block, seconds);
}

}  // namespace

void MeasurePipelined(std::uint16_t port, double seconds) {
  const Connection connection(port);
  const double adds = Measure(connection, Adds(), seconds);
  const double sets = Measure(connection, Sets(), seconds);
  const double gets = Measure(connection, Gets(), seconds);  // of the keys just set
  std::printf("{\"add\": %.1f, \"set\": %.1f, \"get\": %.1f}\n", adds, sets, gets);
}

}  // namespace muster::bench
