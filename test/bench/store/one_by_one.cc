#include "test/bench/store/one_by_one.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "test/bench/store/connection.h"
#include "test/bench/store/wire.h"

namespace muster::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Microseconds(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double Median(std::vector<double> figures) {
  const auto middle = figures.begin() + static_cast<std::ptrdiff_t>(figures.size() / 2);
  std::nth_element(figures.begin(), middle, figures.end());
  return *middle;
}

// Of one run of `work`, in microseconds.
double MedianFor(double seconds, const std::function<void()>& work) {
  std::vector<double> took;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    took.push_back(Microseconds(work));
  } while (Clock::now() < end);
  return Median(std::move(took));
}

void Get(const Connection& connection, const std::string& key, std::size_t bytes) {
  std::string request;
  EncodeGet(key, request);
  connection.Send(request);
  std::uint64_t length = 0;
  const std::string header = connection.Receive(kNumberBytes);
  std::memcpy(&length, header.data(), sizeof length);
  if (length != bytes || connection.Receive(length).size() != bytes) Die("get another value");
}

void Set(const Connection& connection, const std::string& key, const std::string& value) {
  std::string request;
  EncodeSet(key, value, request);
  connection.Send(request);
  connection.Add("sets", 1);
}

}  // namespace

void MeasureOneByOne(std::uint16_t port, double seconds, std::size_t value_bytes, int times) {
  constexpr double kMiB = 1 << 20;
  const Connection connection(port);
  connection.Add("init/", 1);
  const double add = MedianFor(seconds, [&] { connection.Add("counter", 1); });
  Set(connection, "small", std::string(32, 'v'));
  const double get = MedianFor(seconds, [&] { Get(connection, "small", 32); });
  const std::string value(value_bytes, 'v');
  std::vector<double> set, got;
  for (int i = 0; i < times; ++i) {
    set.push_back(Microseconds([&] { Set(connection, "large", value); }));
    got.push_back(Microseconds([&] { Get(connection, "large", value_bytes); }));
  }
  const double mib_us = static_cast<double>(value_bytes) / kMiB * 1e6;
  std::printf("{\"add_us\": %.2f, \"get_us\": %.2f, \"set_mib_s\": %.1f, \"get_mib_s\": %.1f}\n",
              add, get, mib_us / Median(std::move(set)), mib_us / Median(std::move(got)));
}

}  // namespace muster::bench
