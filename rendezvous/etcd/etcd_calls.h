// Calls over gRPC whose answers come to the loop.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace muster::rendezvous::etcd {

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

// A stream over which one thing is said, and answers are read until it ends. Deletes itself once
// gRPC is done with it; its owner lets go of it with Abandon or when `ended` is called.
template <typename Request, typename Answer>
class Stream final : public grpc::ClientBidiReactor<Request, Answer> {
 public:
  struct Handlers {
    std::function<void(const Answer&)> answered;
    std::function<void(const grpc::Status&)> ended;
  };

  Stream(boost::asio::io_context& io, Request request)
      : io_(io), stay_(io.get_executor()), request_(std::move(request)) {}

  grpc::ClientContext& context() { return context_; }

  void Start(Handlers handlers) {
    handlers_ = std::move(handlers);
    this->StartWrite(&request_);
    this->StartRead(&answer_);
    this->AddHold();
    this->StartCall();
  }

  void Abandon() {
    handlers_ = {};
    context_.TryCancel();
    Release();
  }

  void OnReadDone(bool ok) override {
    boost::asio::post(io_, [this, ok] { HandleRead(ok); });
  }
  void OnDone(const grpc::Status& status) override {
    boost::asio::post(io_, [self = std::unique_ptr<Stream>(this), status] {
      if (const auto ended = self->handlers_.ended) ended(status);
    });
  }

 private:
  void HandleRead(bool ok) {
    if (!ok) return Release();
    // A copy, as the handler may abandon us.
    if (const auto answered = handlers_.answered) answered(answer_);
    if (!released_) this->StartRead(&answer_);
  }

  void Release() {
    if (released_) return;
    released_ = true;
    this->RemoveHold();
  }

  boost::asio::io_context& io_;
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> stay_;
  grpc::ClientContext context_;
  Request request_;
  Answer answer_;
  Handlers handlers_;
  bool released_ = false;
};

}  // namespace muster::rendezvous::etcd
