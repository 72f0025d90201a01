// The jobs of a daemon as they change, for tools that go on looking.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"

#include "base/async/timer.h"
#include "rendezvous/client/daemon_channel.h"
#include "rendezvous/core/values/snapshot.h"

namespace grpc {
class Status;
}  // namespace grpc

namespace muster::rendezvous {

namespace v1 {
class WatchUpdate;
}  // namespace v1

template <typename Out, typename In>
class ClientStream;

// The call Watch, made again when its connection breaks: at once, then after growing pauses of up
// to four seconds, for as long as this exists. All is done on the loop; callbacks come from there,
// never from inside a method, and may destroy this.
class JobWatch {
 public:
  // Receives what there is to see. Must outlive the watch.
  class Listener {
   public:
    virtual ~Listener() = default;
    // How things are now; also first thing after an outage.
    virtual void OnJobs(const WatchedJobs& watched) = 0;
    // The daemon cannot be reached, after it could be: the watch tries to come back. `why` is one
    // sentence, which begins with the endpoint. Said each time that an attempt fails.
    virtual void OnOutOfTouch(const std::string& why) = 0;
    // The last call. OK: the job that was watched has ended, and OnJobs has said how. NotFound: the
    // daemon has no such job. Unavailable: the very first attempt has failed. PermissionDenied, or
    // otherwise what the daemon says: it would not help to ask again. One sentence, which begins
    // with the endpoint.
    virtual void OnOver(const absl::Status& status) = 0;
  };

  // Watches from now on the job `run_id`, or all when that is empty. `io` must outlive it.
  // `daemon.patience` is for the first answer.
  JobWatch(boost::asio::io_context& io, DaemonOptions daemon, std::string run_id,
           Listener& listener);
  ~JobWatch();
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

 private:
  void Connect();
  void HandleUpdate(const v1::WatchUpdate& wire);
  void HandleDone(const grpc::Status& status);
  // With the stream's end there is nothing more to come.
  void Fail(const absl::Status& why);

  boost::asio::io_context& io_;
  const DaemonOptions daemon_;
  const std::string run_id_;
  Listener& listener_;
  std::shared_ptr<ClientStream<void, v1::WatchUpdate>> stream_;  // null: there is a pause
  bool has_answered_ = false;                                    // the daemon, at any time
  bool answers_ = false;                                         // over this connection
  base::Backoff backoff_{std::chrono::milliseconds(250), std::chrono::seconds(4)};
  base::Timer timer_;
};

}  // namespace muster::rendezvous
