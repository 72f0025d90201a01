// "Ctrl-Z stopped the agent, and its ranks went on printing into my shell."
#include "launcher/run/interruptions.h"

#include <csignal>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

namespace muster::launcher {
namespace {

class SuspensionTest : public testing::Test {
 protected:
  // What a signal has called.
  std::string Send(int signal) {
    raise(signal);
    io_.restart();
    while (io_.poll() > 0) {
    }
    return std::exchange(called_, "");
  }

  boost::asio::io_context io_;
  std::string called_;
};

TEST_F(SuspensionTest, CtrlZSuspendsAndEitherSignalContinues) {
  const Suspension suspension(
      io_, [this] { called_ += "suspend"; }, [this] { called_ += "resume"; });
  EXPECT_EQ(Send(SIGCONT), "") << "what runs is not continued";
  for (const int again : {SIGCONT, SIGTSTP}) {
    EXPECT_EQ(Send(SIGTSTP), "suspend");
    EXPECT_EQ(Send(again), "resume");
    EXPECT_EQ(Send(SIGCONT), "");
  }
}

TEST_F(SuspensionTest, WhoIgnoresCtrlZGoesOn) {
  std::signal(SIGTSTP, SIG_IGN);
  const Suspension suspension(
      io_, [this] { called_ += "suspend"; }, [this] { called_ += "resume"; });
  EXPECT_EQ(Send(SIGTSTP), "");
  std::signal(SIGTSTP, SIG_DFL);
}

}  // namespace
}  // namespace muster::launcher
