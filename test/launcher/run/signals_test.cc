// "Slurm preempted the job, and workers that were saving were killed at once."
#include "launcher/run/interruptions.h"

#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

namespace muster::launcher {
namespace {

class SignalsTest : public testing::Test {
 protected:
  void Begin(bool in_slurm) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    orders_ = ends[1];
    signals_ = std::make_unique<Signals>(
        io_,
        Signals::Options{
            .stop = {SIGTERM, SIGINT, SIGHUP}, .orders_fd = ends[0], .in_slurm = in_slurm},
        [this](int signal) { requests_.push_back(signal); }, [](int) {});
    signals_->Begin();
  }
  ~SignalsTest() override { close(orders_); }

  // The requests that what is sent comes to.
  std::vector<int> Send(int signal) {
    raise(signal);
    return Take();
  }
  std::vector<int> Order(const std::string& text) {
    EXPECT_EQ(write(orders_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    return Take();
  }

 private:
  std::vector<int> Take() {
    // What is there already is handled, and nothing is waited for: a signal is in asio's pipe when
    // raise() returns, and an order in ours when write() does.
    io_.restart();
    while (io_.poll() > 0) {
    }
    return std::exchange(requests_, {});
  }

  boost::asio::io_context io_;
  int orders_ = -1;
  std::vector<int> requests_;
  std::unique_ptr<Signals> signals_;
};

using Requests = std::vector<int>;

TEST_F(SignalsTest, EachSignalIsARequest) {
  Begin(/*in_slurm=*/false);
  EXPECT_EQ(Send(SIGTERM), Requests{SIGTERM});
  EXPECT_EQ(Send(SIGTERM), Requests{SIGTERM});
}

TEST_F(SignalsTest, SigtermThatSlurmRepeatsIsOneRequest) {
  Begin(/*in_slurm=*/true);
  EXPECT_EQ(Send(SIGTERM), Requests{SIGTERM});
  EXPECT_EQ(Send(SIGTERM), Requests{});
  EXPECT_EQ(Send(SIGINT), Requests{SIGINT});
}

TEST_F(SignalsTest, SignalAndOrderAreOneRequest) {
  Begin(/*in_slurm=*/true);
  EXPECT_EQ(Order(StopOrder(SIGTERM)), Requests{SIGTERM});
  EXPECT_EQ(Send(SIGTERM), Requests{});
  EXPECT_EQ(Order(StopOrder(SIGINT)), Requests{SIGINT});
}

// "Slurm had sent SIGTERM, and the first Ctrl-C did nothing."
TEST_F(SignalsTest, CtrlCAfterSigtermIsASecondRequestWhicheverWayItComes) {
  Begin(/*in_slurm=*/true);
  EXPECT_EQ(Send(SIGTERM), Requests{SIGTERM});
  EXPECT_EQ(Order(StopOrder(SIGINT)), Requests{SIGINT});
  EXPECT_EQ(Send(SIGINT), Requests{});
}

TEST_F(SignalsTest, SigintAfterAnOrderIsASecondRequest) {
  Begin(/*in_slurm=*/true);
  EXPECT_EQ(Order(StopOrder(SIGHUP)), Requests{SIGHUP});
  EXPECT_EQ(Send(SIGTERM), Requests{}) << "Slurm ends a job whose terminal is gone";
  EXPECT_EQ(Send(SIGINT), Requests{SIGINT});
  EXPECT_EQ(Order(StopOrder(SIGINT)), Requests{});
}

// "My script starts the run with & and ends it with kill -INT, which does nothing."
TEST_F(SignalsTest, SignalThatAShellHasIgnoredIsARequest) {
  for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, SIG_IGN);
  Begin(/*in_slurm=*/false);
  EXPECT_EQ(Send(SIGINT), Requests{SIGINT});
  EXPECT_EQ(Send(SIGTERM), Requests{SIGTERM});
}

TEST_F(SignalsTest, HangUpThatNohupIgnoresIsNone) {
  std::signal(SIGHUP, SIG_IGN);
  Begin(/*in_slurm=*/false);
  EXPECT_EQ(Send(SIGHUP), Requests{});
  std::signal(SIGHUP, SIG_DFL);
}

TEST_F(SignalsTest, OrderMayComeInPieces) {
  Begin(/*in_slurm=*/true);
  EXPECT_EQ(Order("1"), Requests{});
  EXPECT_EQ(Order("5\nnonsense\n0\n99999999999999999999999999\n2\n"), (Requests{SIGTERM, SIGINT}));
}

}  // namespace
}  // namespace muster::launcher
