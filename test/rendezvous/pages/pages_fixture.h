// A daemon's pages without a socket: what they answer, and an agent's job that they show.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "rendezvous/server/daemon_pages.h"
#include "test/rendezvous/support/join_request.h"

namespace muster::rendezvous {

class PagesFixture : public ::testing::Test {
 protected:
  std::unique_ptr<DaemonPages> Open(const Credentials& credentials) {
    auto pages = DaemonPages::Open(io_, {"127.0.0.1", 0}, credentials, server_);
    EXPECT_TRUE(pages.ok()) << pages.status();
    return *std::move(pages);
  }
  static HttpAnswer Ask(DaemonPages& pages, const std::string& path,
                        const std::string& bearer = "") {
    return pages.AnswerTo({.path = path, .bearer = bearer});
  }
  // An agent of the job "job", which needs one node.
  AgentId Join() {
    const AgentId agent = server_.daemon_loop().Attach([this](const Directive& directive) {
      if (const auto* const assignment = std::get_if<Assignment>(&directive)) {
        round_ = {assignment->incarnation, assignment->round};
      }
    });
    JoinRequest request = RequestFor(1, 1);
    request.settings.max_restarts = 3;
    request.settings.lease = Duration::zero();
    server_.daemon_loop().Hear(agent, request);
    return agent;
  }

  // The agent's job ends by a failure after which there is no restart, and it leaves.
  void Fail(AgentId agent) {
    const WorkerFailure failure{.exit_code = 3,
                                .what = "exited with code 3",
                                .stderr_tail = "no such layer",
                                .final = true};
    server_.daemon_loop().Hear(agent,
                               WorkersExited{round_, {.succeeded = false, .failure = failure}});
    server_.daemon_loop().Hear(agent, Goodbye{});
  }

  boost::asio::io_context io_;
  Server server_{io_};
  RoundId round_{};
};

}  // namespace muster::rendezvous
