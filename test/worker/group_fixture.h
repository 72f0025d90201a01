// A fixture with a WorkerGroup of real processes, whose console is two pipes that a test may read.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <gtest/gtest.h>

#include "test/support/process_scan.h"
#include "test/support/run_until.h"
#include "test/support/temp_dir.h"
#include "worker/group/worker_group.h"
#include "worker/output/console.h"

namespace muster::worker {

using test::IsAlive;
using test::ReadAll;
using test::TempDir;

// A pipe in place of the terminal.
class ConsolePipe {
 public:
  explicit ConsolePipe(boost::asio::io_context& io) : read_end_(io) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    read_end_.assign(ends[0]);
    write_end_.reset(ends[1]);
  }

  // Starts to read whatever arrives.
  void Read() {
    read_end_.async_read_some(boost::asio::buffer(buffer_),
                              [this](boost::system::error_code error, std::size_t count) {
                                if (error) return;
                                text_.append(buffer_.data(), count);
                                Read();
                              });
  }
  void CloseReadEnd() { read_end_.close(); }

  int write_fd() const { return write_end_.get(); }
  const std::string& text() const { return text_; }

 private:
  boost::asio::posix::stream_descriptor read_end_;
  base::UniqueFd write_end_;
  std::array<char, 65536> buffer_;
  std::string text_;
};

class GroupTest : public testing::Test {
 protected:
  // Every test checks that no process outlives its group.
  void TearDown() override {
    group_.reset();
    EXPECT_TRUE(test::WaitForProcesses(mark_, 0));
  }

  // A worker that runs a shell script and inherits the console. A mark in its environment
  // identifies all of its descendants.
  WorkerSpec Sh(int rank, std::string script) const {
    WorkerSpec spec;
    spec.rank = rank;
    spec.local_rank = rank;
    spec.argv = {"sh", "-c", std::move(script)};
    spec.env = {"PATH=/usr/local/bin:/usr/bin:/bin", "RANK=" + std::to_string(rank), mark_};
    return spec;
  }

  // A worker that runs until a signal kills it.
  WorkerSpec Sleeper(int rank) const {
    WorkerSpec spec = Sh(rank, "");
    spec.argv = {"sleep", "10000"};
    return spec;
  }

  // A worker that ignores SIGTERM. It writes "stubborn" to the console once it does.
  WorkerSpec Stubborn(int rank) const {
    return Sh(rank, "trap '' TERM; echo stubborn; while :; do sleep 10000; done");
  }

  void Start(std::vector<WorkerSpec> specs, StopLadder ladder = {}) {
    WorkerGroupCallbacks callbacks;
    callbacks.on_first_failure = [this](const FailureRecord& failure) {
      EXPECT_TRUE(results_.empty()) << "a failure is told before the end";
      failures_.push_back(failure);
      if (on_failure_) on_failure_();
    };
    callbacks.on_done = [this](const GroupResult& result) { results_.push_back(result); };
    callbacks.on_output_lost = [this](int rank, const std::string& what) {
      lost_.push_back(std::to_string(rank) + ": " + what);
    };
    callbacks.on_warning = [this](const std::string& text) { warnings_.push_back(text); };
    group_ =
        std::make_unique<WorkerGroup>(io_,
                                      WorkerGroupOptions{.ladder = ladder,
                                                         .leftovers = leftovers_,
                                                         .use_cgroup = use_cgroup_,
                                                         .may_be_end_of_all = may_be_end_of_all_},
                                      console_, std::move(callbacks));
    group_->Start(std::move(specs));
    EXPECT_TRUE(failures_.empty() && results_.empty()) << "callbacks come from the loop only";
  }

  bool RunUntilDone() {
    return test::RunUntil(io_, [this] { return !results_.empty(); });
  }
  [[nodiscard]] bool RunToEnd(std::vector<WorkerSpec> specs, StopLadder ladder = {}) {
    Start(std::move(specs), ladder);
    return RunUntilDone();
  }
  bool RunUntilOut(const std::string& text) {
    return test::RunUntil(io_, [&] { return out_.text().find(text) != std::string::npos; });
  }
  bool RunUntilDead(pid_t pid) {
    return test::RunUntil(io_, [pid] { return !IsAlive(pid); });
  }
  // Waits for a script to write a number and a line feed to a file in dir_, and returns the number.
  pid_t PidFrom(const std::string& name) {
    std::string text;
    EXPECT_TRUE(test::RunUntil(io_, [&] {
      text = ReadAll(dir_.Path(name));
      return text.ends_with('\n');
    }));
    return static_cast<pid_t>(std::atoi(text.c_str()));
  }

  // The number of running processes that descend from this test's workers.
  std::size_t CountProcesses() const { return test::ProcessesWith(mark_).size(); }
  bool RunUntilProcesses(std::size_t count) {
    return test::RunUntil(io_, [&] { return CountProcesses() == count; });
  }

  const std::string mark_ = test::UniqueMark();
  TempDir dir_;
  boost::asio::io_context io_;
  ConsolePipe out_{io_};
  ConsolePipe err_{io_};
  std::vector<std::string> warnings_;
  std::vector<std::string> lost_;
  Console console_{io_, [this](const std::string& text) { warnings_.push_back(text); },
                   out_.write_fd(), err_.write_fd()};
  // What the group reported.
  std::vector<FailureRecord> failures_;
  std::vector<GroupResult> results_;
  // Off by default: without a control group Muster has more to do itself.
  bool use_cgroup_ = false;
  // WorkerGroupOptions::may_be_end_of_all.
  std::function<bool(const ExitStatus&)> may_be_end_of_all_;
  // Most tests have no time to wait.
  LeftoverPolicy leftovers_ = LeftoverPolicy::kStop;
  // Called on a failure, if set.
  std::function<void()> on_failure_;
  std::unique_ptr<WorkerGroup> group_;
};

// One whose console is read.
class ReadGroupTest : public GroupTest {
 protected:
  ReadGroupTest() {
    out_.Read();
    err_.Read();
  }
};

}  // namespace muster::worker
