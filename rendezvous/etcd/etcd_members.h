// The members of an etcd, of which one is asked at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/status.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "absl/status/status.h"
#include "etcd/etcdserver/etcdserverpb/rpc.grpc.pb.h"
#include "etcd/etcdserver/etcdserverpb/rpc.pb.h"

#include "base/async/timer.h"
#include "base/lifetime.h"
#include "rendezvous/etcd/adaptive_timeout.h"
#include "rendezvous/etcd/etcd.h"

namespace muster::rendezvous::etcd {

// Calls over gRPC whose answers come to the loop.

// A call that is answered once; gRPC's from its start until the answer has been posted.
template <typename Request, typename Answer>
struct UnaryCall {
  explicit UnaryCall(boost::asio::io_context& io) : stay(io.get_executor()) {}

  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> stay;
  grpc::ClientContext context;
  Request request;
  Answer answer;
};

// Begins a call of the service; how it ended is told to `ended` from the loop.
template <typename Call, typename Service, typename Method>
void StartUnary(boost::asio::io_context& io, std::shared_ptr<Call> call, Service& service,
                Method method, std::function<void(const grpc::Status&)> ended) {
  (service.*method)(&call->context, &call->request, &call->answer,
                    [&io, call, ended = std::move(ended)](grpc::Status status) mutable {
                      boost::asio::post(io, [call = std::move(call), ended = std::move(ended),
                                             status = std::move(status)] { ended(status); });
                    });
}

// The one that answered last, until it does not; and with which token, where etcd has users. When a
// member does not answer, and before each login, the credentials are read again, and connections
// are made anew where certificates have changed: what is under way over the old ones goes on there.
// Lives on the loop's thread. What is under way when it is destroyed ends with it, and calls
// nobody.
class EtcdMembers {
 public:
  struct Member {
    std::unique_ptr<etcdserverpb::KV::Stub> kv;
    // Over a connection of its own, for what has large answers: over a slow way megabytes of them
    // wait in that member's socket, and a lease would end before an answer behind them had come.
    std::unique_ptr<etcdserverpb::KV::Stub> large_kv;
    std::unique_ptr<etcdserverpb::Lease::Stub> lease;
    std::unique_ptr<etcdserverpb::Watch::Stub> watch;
    std::unique_ptr<etcdserverpb::Auth::Stub> auth;
  };
  struct Handlers {
    // None answers, or the credentials cannot be read, and why; at most once a minute.
    std::function<void(const std::string& why)> trouble;
    // This one does not, and another will be asked.
    std::function<void(std::size_t member, const absl::Status& why)> silent;
    // All of them belong to another cluster than before, and are asked from now on.
    std::function<void()> replaced;
  };
  // Who is asked something, and in whose name.
  struct Asked {
    std::size_t member = 0;
    std::string token;
  };

  EtcdMembers(boost::asio::io_context& io, EtcdOptions options, Handlers handlers);
  EtcdMembers(const EtcdMembers&) = delete;
  EtcdMembers& operator=(const EtcdMembers&) = delete;
  ~EtcdMembers();

  std::size_t size() const { return members_.size(); }
  const EtcdOptions& options() const { return options_; }

  // Asks one member once by a unary call of the service whose stub is `stub`; waits as long as the
  // options say, or for `patience`.
  template <typename Answer, typename Request, typename Stub, typename Service>
  void Call(Request request, std::unique_ptr<Stub> Member::*stub,
            void (Service::*method)(grpc::ClientContext*, const Request*, Answer*,
                                    std::function<void(grpc::Status)>),
            std::function<void(const absl::Status&, const Answer&)> done,
            std::optional<std::chrono::milliseconds> patience = std::nullopt) {
    using ThisQuestion = Question<Request, Answer, Stub, Service>;
    Ask(std::make_shared<ThisQuestion>(ThisQuestion{
        std::move(request), stub, method, std::move(done), patience.value_or(options_.patience)}));
  }

  // For what is no unary call. Calls `go` at once where etcd has no users, else when there is a
  // token, or with why there is none: who was refused asks again after a pause, or with other
  // credentials, and until then is told so at once.
  void WithToken(std::function<void(const absl::Status&)> go);
  // Then: who is to be asked, by a call with this context.
  Asked Next(grpc::ClientContext& context) const;
  Member& at(std::size_t member) { return members_[member]; }
  // Whether an answer with this header is of the cluster that the others' were; of several members
  // half have to agree first. One that is not counts as none: it is over with Stranger().
  bool IsOurs(const Asked& asked, const etcdserverpb::ResponseHeader& header);
  static grpc::Status Stranger();
  // It has answered. Where answers come and go the silence is still told once a minute.
  void AllIsWell() { unanswered_ = 0; }
  // It has not, as the call has ended so; the next one goes to another member, unless it was only
  // the token. The end in words.
  absl::Status Unanswered(const Asked& asked, const grpc::Status& end);
  // The token may not be used any more.
  void ForgetToken(const std::string& token);
  // Something is under way that `cancel` ends; the number is for IsOver.
  std::uint64_t IsUnderWay(std::function<void()> cancel);
  void IsOver(std::uint64_t number) { under_way_.erase(number); }

 private:
  template <typename Request, typename Answer, typename Stub, typename Service>
  struct Question {
    using Call = UnaryCall<Request, Answer>;
    Request request;
    std::unique_ptr<Stub> Member::*stub;
    void (Service::*method)(grpc::ClientContext*, const Request*, Answer*,
                            std::function<void(grpc::Status)>);
    std::function<void(const absl::Status&, const Answer&)> done;
    std::chrono::milliseconds patience;
    bool again = true;  // when only the token was refused
  };

  template <typename Question>
  void Ask(std::shared_ptr<Question> question) {
    WithToken([this, question = std::move(question)](const absl::Status& status) {
      if (!status.ok()) return question->done(status, {});
      Send(question);
    });
  }

  template <typename Question>
  void Send(const std::shared_ptr<Question>& question) {
    const auto call = std::make_shared<typename Question::Call>(io_);
    call->request = question->request;
    const Asked asked = Next(call->context);
    Begin(call, *(members_[asked.member].*(question->stub))->async(), question->method,
          question->patience, [this, question, call, asked](const grpc::Status& end) {
            Hear(question, call->answer, asked, end);
          });
  }

  template <typename Question, typename Answer>
  void Hear(const std::shared_ptr<Question>& question, const Answer& answer, const Asked& asked,
            const grpc::Status& end) {
    const bool is_ours = !end.ok() || IsOurs(asked, answer.header());
    if (end.ok() && is_ours) {
      AllIsWell();
      return question->done(absl::OkStatus(), answer);
    }
    // It may be the cluster: another member is asked whether it is of the same one.
    if (end.ok() && cluster_ == 0 && first_answers_.size() < members_.size()) {
      member_ = (asked.member + 1) % members_.size();
      return Ask(question);
    }
    const absl::Status why = Unanswered(asked, is_ours ? end : Stranger());
    // Etcd has done nothing; a take-over must not wait because a token has run out.
    if (std::exchange(question->again, false) && IsRefused(end, asked.token)) return Ask(question);
    question->done(why, {});
  }

  // Begins a call, which is under way until it has ended.
  template <typename Call, typename Service, typename Method>
  void Begin(const std::shared_ptr<Call>& call, Service& service, Method method,
             std::chrono::milliseconds patience, std::function<void(const grpc::Status&)> ended) {
    call->context.set_deadline(std::chrono::system_clock::now() + patience);
    const std::uint64_t number = IsUnderWay([call] { call->context.TryCancel(); });
    StartUnary(io_, call, service, method,
               lifetime_.Guard([this, number, ended = std::move(ended)](const grpc::Status& end) {
                 IsOver(number);
                 ended(end);
               }));
  }

  // The token was not accepted, so that another is needed.
  static bool IsRefused(const grpc::Status& end, const std::string& token);
  void AskForToken();
  void HearOfToken(absl::Status status);
  void Connect();
  void RereadCredentials();
  void Settle(std::uint64_t cluster);
  void TellOfStranger(std::size_t member, std::uint64_t cluster);

  boost::asio::io_context& io_;
  const EtcdOptions options_;
  const Handlers handlers_;
  EtcdCredentials credentials_;
  std::vector<Member> members_;
  std::size_t member_ = 0;      // to be asked next
  std::size_t unanswered_ = 0;  // in a row
  std::uint64_t cluster_ = 0;   // that is followed; 0: none yet
  // The clusters of members that have answered since the start, until one is followed.
  std::map<std::size_t, std::uint64_t> first_answers_;
  // The clusters of members that have last answered for another one, since one has for this.
  std::map<std::size_t, std::uint64_t> strangers_;
  Reminder strangeness_;
  Reminder silence_;
  Reminder unreadable_;
  std::string token_;
  AdaptiveTimeout login_patience_;
  // Why etcd gives no token, when it is asked again, and how long the pause after that is.
  absl::Status refusal_;
  std::chrono::steady_clock::time_point next_login_{};
  base::Backoff login_pause_;
  std::deque<std::function<void(const absl::Status&)>> await_token_;
  std::uint64_t last_number_ = 0;
  // How to end what is under way.
  std::map<std::uint64_t, std::function<void()>> under_way_;
  const base::Lifetime lifetime_;
};

// Etcd's messages, made of our values and turned into them.

etcdserverpb::TxnRequest ToWire(const Transaction& transaction);
Outcome FromWire(const etcdserverpb::TxnResponse& response);

// Asks for each change to keys of the range after the revision. What is much at once, as after a
// while without a connection, comes in fragments: etcd puts up to 1000 revisions into one answer.
etcdserverpb::WatchRequest ToWire(const Range& range, Revision after);
std::vector<Change> FromWire(const etcdserverpb::WatchResponse& response, Revision after);

// What has become of a call:
//   Unavailable         it has to be made again, of another member
//   Unauthenticated     it has to be made again, with a new token
//   others              as Etcd says
absl::Status FromWire(const grpc::Status& status);

}  // namespace muster::rendezvous::etcd
