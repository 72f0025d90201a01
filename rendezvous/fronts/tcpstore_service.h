// What the requests of c10d's TCPStore protocol do: calls the KeyValueStore once, appends the
// reply.
//
// No I/O, no clock: clients are told by appending to what is sent to them. On the loop's thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "rendezvous/core/job/key_value_store.h"
#include "rendezvous/core/values/key_map.h"
#include "rendezvous/wire/tcpstore_codec.h"

namespace muster::rendezvous {

// One connection, as the service sees it. Must be disconnected before it is destroyed.
class TcpStoreClient {
 public:
  TcpStoreClient() = default;
  TcpStoreClient(const TcpStoreClient&) = delete;
  TcpStoreClient& operator=(const TcpStoreClient&) = delete;
  virtual ~TcpStoreClient() = default;

  // Something was appended to `output` that does not answer the request being applied. Must not
  // call the service.
  virtual void OnPushed() = 0;

  // Its last request is not carried out as a whole yet (TcpStoreService::Continue), and what it
  // names has to stay.
  bool has_begun() const { return begun_ != nullptr; }

  // What is to be sent, in order. The sender takes it out.
  std::string output;

 private:
  friend class TcpStoreService;

  // A WAIT or a BARRIER.
  struct Wait {
    TcpStoreClient* client;
    std::size_t parts = 0;  // that pend; it is over when all have been added and none does
  };

  std::vector<WaiterId> waits_;
  std::shared_ptr<Wait> begun_;
  std::span<const std::string_view> keys_;  // of begun_, that have not been added
  std::vector<std::string> watched_;
};

// The store of one namespace and its connected clients.
//
// WAIT and BARRIER are never timed out here; the client's clock does that. A client of 2.1 or later
// then sends CANCEL_WAIT, which is always answered with 01: if the wait has just ended, its 00 is
// ahead of that, and the client accepts either. A client before 2.1 just stops waiting and sends
// another request, so that request drops the wait: its 00 would be taken for a part of the reply.
//
// To wait for a key takes 2 us, and a WAIT may name 131,072. So it begins with some of them, and
// goes on with others when the other clients have had their turn: as if it had come a little later.
class TcpStoreService {
 public:
  // A reply that makes a client's output larger than `output_limit_bytes` is refused.
  TcpStoreService(const KeyValueLimits& limits, std::size_t output_limit_bytes)
      : output_limit_bytes_(output_limit_bytes), store_(limits) {}

  // Carries out a request and appends to the outputs of all clients it concerns. On an error
  // nothing is appended for this request, and the connection is to be closed, since the protocol
  // has no error replies.
  absl::Status Apply(TcpStoreClient& client, const TcpStoreRequest& request);

  // Goes on with a request that has begun and is not carried out as a whole (TcpStoreClient).
  // Nothing else is applied for the client until it is. Errors as Apply.
  absl::Status Continue(TcpStoreClient& client);

  // The connection is gone: its waits and watches end.
  void Disconnect(TcpStoreClient& client);

 private:
  // What a watched key was before a write.
  struct Before {
    bool watched = false;
    std::optional<std::string> value;
  };

  absl::Status Do(TcpStoreClient& client, const TcpStoreRequest& request);
  absl::Status DoMultiGet(TcpStoreClient& client, const TcpStoreRequest& request);
  absl::Status DoMultiSet(const TcpStoreRequest& request);
  absl::Status DoListKeys(TcpStoreClient& client);
  absl::Status DoWatchKey(TcpStoreClient& client, std::string_view key);
  // One more part of the wait, which pends unless there is nothing to wait for.
  absl::Status Park(const std::shared_ptr<TcpStoreClient::Wait>& wait,
                    const absl::StatusOr<std::optional<WaiterId>>& waiter);
  // Answers a wait of which no part pends.
  static void AnswerIfOver(const TcpStoreClient::Wait& wait);
  void DropWaits(TcpStoreClient& client);
  // Answers the clients whose wait has ended.
  void Wake();
  absl::Status CheckReply(const TcpStoreClient& client, std::size_t bytes) const;

  // Around each write of a key: tells the clients that watch it.
  Before Look(std::string_view key) const;
  void Tell(std::string_view key, const Before& before);

  const std::size_t output_limit_bytes_;

  KeyValueStore store_;
  absl::flat_hash_map<WaiterId, std::shared_ptr<TcpStoreClient::Wait>> waiting_;
  KeyMap<std::vector<TcpStoreClient*>> watchers_;  // no key without any
};

}  // namespace muster::rendezvous
