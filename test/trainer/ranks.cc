#include "test/trainer/ranks.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "test/support/require.h"
#include "test/trainer/program.h"

namespace muster::trainer {
namespace {

using test::Require;

// Processes that load LibTorch, several at a time, on a machine that may have one slow core.
constexpr std::chrono::seconds kRanksDeadline(240);

}  // namespace

Ranks::Ranks(const std::vector<std::string>& arguments, int world_size,
             const std::vector<std::string>& environment)
    : Ranks(std::vector(static_cast<std::size_t>(world_size), arguments), environment) {}

Ranks::Ranks(const std::vector<std::vector<std::string>>& arguments,
             const std::vector<std::string>& environment) {
  const int world_size = static_cast<int>(arguments.size());
  const std::string port = std::to_string(FreePort());
  for (int rank = 0; rank < world_size; ++rank) {
    std::vector<std::string> variables = {"OMP_NUM_THREADS=1", "GLOO_SOCKET_IFNAME=lo"};
    if (world_size > 1) {
      variables.insert(
          variables.end(),
          {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(world_size),
           "LOCAL_RANK=" + std::to_string(rank), "LOCAL_WORLD_SIZE=" + std::to_string(world_size),
           "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port});
    }
    variables.insert(variables.end(), environment.begin(), environment.end());
    commands_.emplace_back(arguments[static_cast<std::size_t>(rank)], variables);
  }
}

std::vector<int> Ranks::Wait() {
  std::vector<int> codes;
  for (test::Command& command : commands_)
    codes.push_back(command.Wait(kRanksDeadline).value_or(-1000));
  return codes;
}

std::string Ranks::errors() const {
  std::string text;
  for (const test::Command& command : commands_) text += command.err();
  return text;
}

std::string TrainOk(const std::vector<std::string>& arguments, int world_size) {
  Ranks ranks(MusterTrainWith(arguments), world_size);
  const std::vector<int> zeros(static_cast<std::size_t>(world_size), 0);
  EXPECT_EQ(ranks.Wait(), zeros) << ranks.errors();
  return ranks[0].out();
}

std::vector<std::string> MusterTrainWith(const std::vector<std::string>& arguments) {
  return test::Joined({MusterTrain()}, arguments);
}

BeatEar::BeatEar() : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  dir_.Path("beats").copy(address.sun_path, sizeof address.sun_path - 1);
  Require(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "bind");
}

BeatEar::~BeatEar() {
  close(fd_);
}

bool BeatEar::WaitForStep(std::int64_t step) {
  const Clock::time_point end = Clock::now() + kRanksDeadline;
  for (;;) {
    const std::optional<std::int64_t> done = Hear(end);
    if (!done) return false;
    if (*done >= step) return true;
  }
}

bool BeatEar::WaitForBeats(int count) {
  const Clock::time_point end = Clock::now() + kRanksDeadline;
  while (count > 0 && Hear(end)) --count;
  return count == 0;
}

std::optional<std::int64_t> BeatEar::Hear(Clock::time_point end) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd readable{fd_, POLLIN, 0};
    if (left.count() <= 0 || poll(&readable, 1, static_cast<int>(left.count())) <= 0) {
      return std::nullopt;
    }
    char text[256] = {};
    if (recv(fd_, text, sizeof text - 1, MSG_DONTWAIT) < 0) continue;
    int rank = 0;
    long long done = 0;
    if (std::sscanf(text, "beat %d %lld", &rank, &done) == 2) return done;
  }
}

}  // namespace muster::trainer
