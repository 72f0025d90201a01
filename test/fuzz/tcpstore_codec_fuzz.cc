// Feeds arbitrary bytes to the TCPStore codec and to the service behind it, for libFuzzer
// (scripts/fuzz.sh) and for its test.
//
// In addition to the sanitizers' checks: however the bytes are split, the same requests and replies
// must result. The first byte of the input selects the split.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/fronts/tcpstore_service.h"
#include "rendezvous/wire/tcpstore_codec.h"
#include "test/fuzz/fuzz.h"

namespace muster::rendezvous {
namespace {

// Small, so that short inputs reach them.
constexpr TcpStoreDecodeLimits kDecodeLimits = {
    .key_bytes = 16, .value_bytes = 32, .keys_per_request = 8, .request_bytes = 256};
constexpr KeyValueLimits kStoreLimits = {.key_bytes = 12,
                                         .value_bytes = 24,
                                         .keys = 8,
                                         .total_bytes = 200,
                                         .waits = 4,
                                         .wait_bytes = 300};
constexpr std::size_t kOutputLimit = 200;

class Client final : public TcpStoreClient {
 public:
  void OnPushed() override {}
};

// A connection and a store of its own.
class Run {
 public:
  ~Run() { service_.Disconnect(client_); }

  void Feed(std::string_view bytes) {
    while (!over_) {
      TcpStoreRequest request;
      switch (decoder_.Next(bytes, request)) {
        case TcpStoreDecoder::Result::kRequest:
          Take(request);
          break;
        case TcpStoreDecoder::Result::kNeedsMore:
        case TcpStoreDecoder::Result::kNeedsGrace:
          if (!bytes.empty()) std::abort();  // all input is taken in
          if (decoder_.buffered() > 4 * kDecodeLimits.request_bytes) std::abort();
          return;
        case TcpStoreDecoder::Result::kBroken:
          log_ += "broken: " + decoder_.error();
          over_ = true;
          break;
      }
    }
  }

  void End() {
    decoder_.EndGrace();
    Feed("");
  }

  // What came out, in order.
  std::string Result() const { return log_ + client_.output; }

 private:
  void Take(const TcpStoreRequest& request) {
    AppendByte(static_cast<std::uint8_t>(request.op), log_);
    for (const std::string_view string : request.strings) AppendString(string, log_);
    AppendNumber(request.number, log_);
    if (service_.Apply(client_, request).ok()) return;
    log_ += "refused";
    over_ = true;
  }

  DialectHint hint_;
  TcpStoreDecoder decoder_{kDecodeLimits, hint_};
  TcpStoreService service_{kStoreLimits, kOutputLimit};
  Client client_;
  std::string log_;
  bool over_ = false;
};

}  // namespace
}  // namespace muster::rendezvous

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using muster::rendezvous::Run;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Run whole;
  whole.Feed(bytes);
  whole.End();

  Run split;
  unsigned choice = data[0];
  for (std::size_t at = 0; at < bytes.size();) {
    // Each part has memory of its own, so that a look beyond its end is found.
    const std::vector<char> part(
        bytes.begin() + static_cast<std::ptrdiff_t>(at),
        bytes.begin() + static_cast<std::ptrdiff_t>(std::min(bytes.size(), at + 1 + choice % 23)));
    split.Feed({part.data(), part.size()});
    at += part.size();
    choice = choice * 5 + 3;
  }
  split.End();
  if (whole.Result() != split.Result()) std::abort();
  return 0;
}
