#include "rendezvous/client/daemon_query.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/client/daemon_channel.h"
#include "rendezvous/wire/wire.h"

namespace muster::rendezvous {
namespace {

// It grows with the jobs of the daemon and their nodes.
constexpr int kMaxAnswerBytes = 256 << 20;

// Before the next place is looked for where the last one leads no longer.
constexpr std::chrono::milliseconds kBetweenAsking(50);

template <typename Request, typename Response>
using RendezvousMethod = grpc::Status (v1::Rendezvous::Stub::*)(grpc::ClientContext*,
                                                                const Request&, Response*);

template <typename Request, typename Response>
absl::StatusOr<Response> Ask(const DaemonOptions& daemon,
                             RendezvousMethod<Request, Response> method, const Request& request) {
  using std::chrono::milliseconds;
  const auto end = std::chrono::steady_clock::now() + daemon.patience;
  const auto left = [end] {
    const auto left = end - std::chrono::steady_clock::now();
    return std::max(std::chrono::duration_cast<milliseconds>(left), milliseconds(1));
  };
  const bool may_be_elsewhere = EachOf(daemon.endpoint).size() > 1;
  for (;;) {
    const auto stub = v1::Rendezvous::NewStub(
        OpenChannel(ChannelTarget(FindLeader(daemon.endpoint, left())), daemon.credentials,
                    {.max_message_bytes = kMaxAnswerBytes}));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + left());
    Response response;
    const grpc::Status status = (stub.get()->*method)(&context, request, &response);
    if (status.ok()) return response;
    // The one that was found has just been followed by another, and does not listen for long.
    const bool again = status.error_code() == grpc::StatusCode::UNAVAILABLE && may_be_elsewhere &&
                       std::chrono::steady_clock::now() + kBetweenAsking < end;
    if (!again) return ExplainFailure(status, daemon);
    std::this_thread::sleep_for(kBetweenAsking);
  }
}

}  // namespace

absl::StatusOr<JobSnapshot> DescribeJob(const DaemonOptions& daemon, const std::string& run_id) {
  v1::DescribeRequest request;
  request.set_run_id(run_id);
  const auto response = Ask(daemon, &v1::Rendezvous::Stub::Describe, request);
  if (!response.ok()) return response.status();
  return FromWire(*response);
}

absl::StatusOr<std::optional<ClockReading>> ReadDaemonClock(const DaemonOptions& daemon) {
  using std::chrono::milliseconds;
  const auto asked = std::chrono::steady_clock::now();
  const auto response = Ask(daemon, &v1::Rendezvous::Stub::List, v1::ListRequest());
  const auto took = std::chrono::steady_clock::now() - asked;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  if (!response.ok()) return response.status();
  if (!response->has_clock_ms()) return std::optional<ClockReading>();
  const auto here = std::chrono::duration_cast<milliseconds>(now - took / 2);
  return std::optional(ClockReading{.ahead = milliseconds(response->clock_ms()) - here,
                                    .uncertainty = std::chrono::ceil<milliseconds>(took / 2)});
}

absl::StatusOr<std::vector<JobSnapshot>> ListJobs(const DaemonOptions& daemon) {
  const auto response = Ask(daemon, &v1::Rendezvous::Stub::List, v1::ListRequest());
  if (!response.ok()) return response.status();
  std::vector<JobSnapshot> jobs;
  for (const v1::JobDescription& job : response->jobs()) jobs.push_back(FromWire(job));
  return jobs;
}

}  // namespace muster::rendezvous
