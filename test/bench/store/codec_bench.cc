// The cost of decoding a request and encoding a reply, without a socket.
#include <cstdint>
#include <string>
#include <string_view>

#include <benchmark/benchmark.h>

#include "rendezvous/wire/tcpstore_codec.h"

namespace muster::rendezvous {
namespace {

constexpr std::string_view kHello("\0\xce\xf7\x85\x3c", 5);  // PyTorch 2.2 and later
constexpr int kRequestsPerRead = 512;

void Opcode(TcpStoreOp op, std::string& out) {
  AppendByte(static_cast<std::uint8_t>(op), out);
}

// Decodes the same read again and again, as from a client that pipelines.
void DecodeAll(benchmark::State& state, const std::string& read) {
  const TcpStoreDecodeLimits limits;
  DialectHint hint;
  TcpStoreDecoder decoder(limits, hint);
  TcpStoreRequest request;
  std::string_view hello = kHello;
  decoder.Next(hello, request);
  for (auto _ : state) {
    std::string_view input = read;
    while (decoder.Next(input, request) == TcpStoreDecoder::Result::kRequest) {
      benchmark::DoNotOptimize(request);
    }
  }
  state.SetItemsProcessed(state.iterations() * kRequestsPerRead);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(read.size()));
}

void DecodeAdd(benchmark::State& state) {
  std::string read;
  for (int i = 0; i < kRequestsPerRead; ++i) {
    Opcode(TcpStoreOp::kAdd, read);
    AppendString("/bench/counter", read);
    AppendNumber(1, read);
  }
  DecodeAll(state, read);
}
BENCHMARK(DecodeAdd);

void DecodeSet(benchmark::State& state) {
  std::string read;
  for (int i = 0; i < kRequestsPerRead; ++i) {
    Opcode(TcpStoreOp::kSet, read);
    AppendString("/default_pg/0//cpu//0/" + std::to_string(i), read);
    AppendString(std::string(static_cast<std::size_t>(state.range(0)), 'v'), read);
  }
  DecodeAll(state, read);
}
BENCHMARK(DecodeSet)->Arg(32)->Arg(1024);

// A wait for many keys in one request, as gloo's newer clients send it.
void DecodeWait(benchmark::State& state) {
  std::string read;
  for (int i = 0; i < kRequestsPerRead; ++i) {
    Opcode(TcpStoreOp::kWait, read);
    AppendNumber(state.range(0), read);
    for (std::int64_t key = 0; key < state.range(0); ++key) {
      AppendString("/default_pg/0//cpu//0/" + std::to_string(key), read);
    }
  }
  DecodeAll(state, read);
}
BENCHMARK(DecodeWait)->Arg(1)->Arg(128);

// The worst split there is: every byte comes alone.
void DecodeByteByByte(benchmark::State& state) {
  std::string read;
  Opcode(TcpStoreOp::kAdd, read);
  AppendString("/bench/counter", read);
  AppendNumber(1, read);
  const TcpStoreDecodeLimits limits;
  DialectHint hint;
  TcpStoreDecoder decoder(limits, hint);
  TcpStoreRequest request;
  std::string_view hello = kHello;
  decoder.Next(hello, request);
  for (auto _ : state) {
    for (std::size_t i = 0; i < read.size(); ++i) {
      std::string_view byte = std::string_view(read).substr(i, 1);
      benchmark::DoNotOptimize(decoder.Next(byte, request));
    }
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(DecodeByteByByte);

void EncodeString(benchmark::State& state) {
  const std::string value(static_cast<std::size_t>(state.range(0)), 'v');
  std::string out;
  for (auto _ : state) {
    out.clear();
    for (int i = 0; i < kRequestsPerRead; ++i) AppendString(value, out);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * kRequestsPerRead);
}
BENCHMARK(EncodeString)->Arg(32)->Arg(1024);

}  // namespace
}  // namespace muster::rendezvous
