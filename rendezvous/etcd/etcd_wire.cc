// What is asked of etcd and what it answers, as its API's messages.
#include <string>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "rendezvous/etcd/etcd_members.h"

namespace muster::rendezvous::etcd {
namespace {

constexpr char kLimits[] =
    "; Muster needs etcd's --max-txn-ops and --max-request-bytes to be no less than their defaults";

void Add(const WasCreated& condition, etcdserverpb::Compare& wire) {
  wire.set_target(etcdserverpb::Compare::CREATE);
  wire.set_result(etcdserverpb::Compare::EQUAL);
  wire.set_key(condition.key);
  wire.set_create_revision(condition.in);
}

void Add(const HasValue& condition, etcdserverpb::Compare& wire) {
  wire.set_target(etcdserverpb::Compare::VALUE);
  wire.set_result(etcdserverpb::Compare::EQUAL);
  wire.set_key(condition.key);
  wire.set_value(condition.value);
}

void Add(const Put& put, etcdserverpb::RequestOp& wire) {
  etcdserverpb::PutRequest& request = *wire.mutable_request_put();
  request.set_key(put.key);
  request.set_value(put.value);
  request.set_lease(put.lease);
}

void Add(const Delete& range, etcdserverpb::RequestOp& wire) {
  etcdserverpb::DeleteRangeRequest& request = *wire.mutable_request_delete_range();
  request.set_key(range.key);
  request.set_range_end(range.end);
}

void Add(const Get& get, etcdserverpb::RequestOp& wire) {
  etcdserverpb::RangeRequest& request = *wire.mutable_request_range();
  request.set_key(get.key);
  request.set_range_end(get.end);
  request.set_limit(get.limit);
}

}  // namespace

etcdserverpb::TxnRequest ToWire(const Transaction& transaction) {
  etcdserverpb::TxnRequest wire;
  for (const Condition& condition : transaction.conditions) {
    std::visit([&](const auto& kind) { Add(kind, *wire.add_compare()); }, condition);
  }
  for (const Operation& operation : transaction.then) {
    std::visit([&](const auto& kind) { Add(kind, *wire.add_success()); }, operation);
  }
  for (const Operation& operation : transaction.otherwise) {
    std::visit([&](const auto& kind) { Add(kind, *wire.add_failure()); }, operation);
  }
  return wire;
}

Outcome FromWire(const etcdserverpb::TxnResponse& response) {
  Outcome outcome{.held = response.succeeded(), .revision = response.header().revision()};
  for (const etcdserverpb::ResponseOp& each : response.responses()) {
    if (!each.has_response_range()) continue;
    Outcome::Found& found = outcome.found.emplace_back();
    found.more = each.response_range().more();
    for (const mvccpb::KeyValue& key : each.response_range().kvs()) {
      found.keys.push_back({.key = key.key(),
                            .value = key.value(),
                            .created = key.create_revision(),
                            .lease = key.lease()});
    }
  }
  return outcome;
}

etcdserverpb::WatchRequest ToWire(const Range& range, Revision after) {
  etcdserverpb::WatchRequest wire;
  etcdserverpb::WatchCreateRequest& create = *wire.mutable_create_request();
  create.set_key(range.key);
  create.set_range_end(range.end);
  // As in EtcdClient::AwaitDeletion.
  create.set_start_revision(after);
  create.set_fragment(true);
  return wire;
}

std::vector<Change> FromWire(const etcdserverpb::WatchResponse& response, Revision after) {
  std::vector<Change> changes;
  for (const mvccpb::Event& event : response.events()) {
    if (event.kv().mod_revision() <= after) continue;
    Change& change = changes.emplace_back();
    change.revision = event.kv().mod_revision();
    change.key = event.kv().key();
    if (event.type() == mvccpb::Event::PUT) change.value = event.kv().value();
  }
  return changes;
}

// Etcd's codes and sentences: etcdserver/api/v3rpc/rpctypes/error.go.
absl::Status FromWire(const grpc::Status& status) {
  const std::string sentence = absl::StrCat("etcd: ", status.error_message());
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return absl::OkStatus();
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      if (absl::StrContains(status.error_message(), "database space exceeded")) {
        return absl::ResourceExhaustedError(
            "etcd's space is used up (NOSPACE): compact and defragment it, or raise its "
            "--quota-backend-bytes, and then `etcdctl alarm disarm`");
      }
      if (absl::StrContains(status.error_message(), "larger than max")) {
        return absl::InvalidArgumentError(absl::StrCat(sentence, kLimits));
      }
      return absl::UnavailableError(sentence);
    case grpc::StatusCode::INVALID_ARGUMENT:
      if (absl::StrContains(status.error_message(), "user name is empty")) {
        return absl::PermissionDeniedError(
            "etcd asks for a user; name one with --etcd-user and --etcd-password-file");
      }
      if (absl::StrContains(status.error_message(), "revision of auth store is old")) {
        return absl::UnauthenticatedError(sentence);
      }
      if (absl::StrContains(status.error_message(), "too many operations") ||
          absl::StrContains(status.error_message(), "too large")) {
        return absl::InvalidArgumentError(absl::StrCat(sentence, kLimits));
      }
      return absl::InvalidArgumentError(sentence);
    case grpc::StatusCode::UNAUTHENTICATED:
      return absl::UnauthenticatedError(sentence);
    case grpc::StatusCode::PERMISSION_DENIED:
      return absl::PermissionDeniedError(sentence);
    case grpc::StatusCode::NOT_FOUND:
      return absl::NotFoundError(sentence);
    case grpc::StatusCode::UNIMPLEMENTED:
    case grpc::StatusCode::OUT_OF_RANGE:
      return absl::InternalError(sentence);
    default:
      return absl::UnavailableError(sentence);
  }
}

}  // namespace muster::rendezvous::etcd
