// Beats through a real socket: who may send them, how many at a time, and what else may arrive.
#include "worker/hang/beat_socket.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <tuple>
#include <vector>

#include <boost/asio/post.hpp>

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "test/support/run_until.h"
#include "test/support/socket_dir.h"
#include "test/support/temp_dir.h"
#include "worker/hang/hang_watch.h"

namespace muster::worker {
namespace {

using Heard = std::tuple<int, std::optional<std::int64_t>, pid_t>;

class BeatSocketTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<BeatSocket>> TryOpen(const std::string& path) {
    return BeatSocket::Open(
        io_, path,
        {.on_beat =
             [this](const Beat& beat, pid_t pid) {
               heard_.emplace_back(beat.rank, beat.step, pid);
               if (on_beat_) on_beat_();
             },
         .on_warning = [this](const std::string& text) { warnings_.push_back(text); }});
  }
  void Open() {
    auto socket = TryOpen(path_);
    ASSERT_TRUE(socket.ok()) << socket.status();
    socket_ = *std::move(socket);
  }

  // A worker's end.
  base::UniqueFd Connect() const {
    base::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0)
        << std::strerror(errno);
    return fd;
  }
  void Send(const std::string& text) const {
    EXPECT_EQ(::send(Connect().get(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
  }
  bool RunUntilHeard(std::size_t count) {
    return test::RunUntil(io_, [&] { return heard_.size() >= count; });
  }

  test::SocketDir dir_;
  const std::string path_ = dir_.Path("beats");
  boost::asio::io_context io_;
  std::vector<Heard> heard_;
  std::vector<std::string> warnings_;
  std::function<void()> on_beat_;
  std::unique_ptr<BeatSocket> socket_;
};

TEST_F(BeatSocketTest, TellsRankStepAndSender) {
  Open();
  Send("beat 3 1200");
  Send("beat 4\n");
  ASSERT_TRUE(RunUntilHeard(2));
  EXPECT_EQ(heard_[0], Heard(3, 1200, ::getpid()));
  EXPECT_EQ(heard_[1], Heard(4, std::nullopt, ::getpid()));
  EXPECT_EQ(socket_->malformed() + socket_->foreign(), 0u);
}

TEST_F(BeatSocketTest, IsTheOwnersAloneAndGoesWithItsObject) {
  Open();
  struct stat info;
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  socket_.reset();
  EXPECT_NE(::access(path_.c_str(), F_OK), 0);
}

TEST_F(BeatSocketTest, WhatIsThereAlreadyIsNotReplaced) {
  std::ofstream(path_) << "precious" << std::flush;
  const auto socket = TryOpen(path_);
  ASSERT_FALSE(socket.ok());
  EXPECT_EQ(socket.status().message(),
            "make the socket for beats " + path_ + ": Address already in use");
  EXPECT_EQ(test::ReadAll(path_), "precious");
}

TEST_F(BeatSocketTest, APathThatIsTooLongIsRefused) {
  const auto socket = TryOpen(dir_.Path(std::string(108, 'x')));
  ASSERT_FALSE(socket.ok());
  EXPECT_TRUE(absl::StrContains(socket.status().message(), "too long")) << socket.status();
}

TEST_F(BeatSocketTest, GarbageIsCountedAndToldOnce) {
  Open();
  Send("hello");
  Send("beat -1");
  Send("beat 3" + std::string(kMaxBeat, ' '));
  Send("");
  Send("beat 3");
  ASSERT_TRUE(RunUntilHeard(1));
  EXPECT_EQ(socket_->malformed(), 4u);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_TRUE(absl::StrContains(warnings_[0], "process " + std::to_string(::getpid())))
      << warnings_[0];
}

TEST_F(BeatSocketTest, DescriptorsThatAreSentAlongAreNotKept) {
  Open();
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const base::UniqueFd read_end(ends[0]);
  base::UniqueFd write_end(ends[1]);
  char text[] = "beat 5";
  iovec piece = {text, 6};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), &ends[1], sizeof(int));
  ASSERT_EQ(::sendmsg(Connect().get(), &message, 0), 6);
  write_end.reset();
  ASSERT_TRUE(RunUntilHeard(1));
  char byte;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 0) << "somebody still holds the other end";
}

TEST_F(BeatSocketTest, OtherUsersAreLeftOut) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can send as another user";
  Open();
  // Connected earlier, as that user cannot reach the socket by its name.
  const base::UniqueFd end = Connect();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool sent =
        ::setresuid(65534, 65534, 65534) == 0 && ::send(end.get(), "beat 6", 6, 0) == 6;
    ::_exit(sent ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  Send("beat 3");
  ASSERT_TRUE(RunUntilHeard(1));
  EXPECT_EQ(heard_[0], Heard(3, std::nullopt, ::getpid()));
  EXPECT_EQ(socket_->foreign(), 1u);
}

TEST_F(BeatSocketTest, AnotherUserCannotReachItByItsName) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Open();
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(100);
    const base::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::_exit(errno);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), EACCES);
}

TEST_F(BeatSocketTest, DrainTellsWhatIsWaitingAtOnce) {
  Open();
  Send("beat 1 1");
  Send("beat 1 2");
  socket_->Drain();
  EXPECT_EQ(heard_.size(), 2u);
  socket_->Drain();
  EXPECT_EQ(heard_.size(), 2u);
}

TEST_F(BeatSocketTest, MayBeDestroyedByABeat) {
  Open();
  on_beat_ = [this] { socket_.reset(); };
  Send("beat 1");
  Send("beat 2");
  ASSERT_TRUE(RunUntilHeard(1));
  io_.poll();
  EXPECT_EQ(heard_.size(), 1u);
}

TEST_F(BeatSocketTest, AWorkerThatSendsWithoutEndDoesNotStopTheLoop) {
  Open();
  const pid_t flooder = ::fork();
  if (flooder == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const base::UniqueFd end = Connect();
    for (;;) ::send(end.get(), "beat 0", 6, 0);
  }
  ASSERT_GT(flooder, 0);
  // Other handlers run although the socket never becomes empty, and so does another worker's beat
  // that waits for room.
  int turns = 0;
  std::function<void()> turn = [&] {
    if (++turns < 1000) boost::asio::post(io_, turn);
  };
  turn();
  EXPECT_TRUE(test::RunUntil(io_, [&] { return turns == 1000 && heard_.size() > 1000; }));
  const pid_t honest = ::fork();
  if (honest == 0) {
    const base::UniqueFd end = Connect();
    ::_exit(::send(end.get(), "beat 7", 6, 0) == 6 ? 0 : 1);
  }
  bool honest_heard = false;
  on_beat_ = [&] { honest_heard |= std::get<0>(heard_.back()) == 7; };
  EXPECT_TRUE(test::RunUntil(io_, [&] { return honest_heard; }));
  ::kill(flooder, SIGKILL);
  for (const pid_t child : {flooder, honest}) ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace muster::worker
