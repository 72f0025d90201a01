#include "test/rendezvous/journal/history.h"

#include <cstdlib>
#include <random>

namespace muster::rendezvous::test {
namespace {

const std::string kCounter = "counter";

std::string Bytes(std::mt19937& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

}  // namespace

void Remembered::Apply(const JournalBatch& batch) {
  for (const auto& job : batch.jobs) {
    if (job.record.has_value()) {
      jobs[job.run_id] = *job.record;
      continue;
    }
    jobs.erase(job.run_id);
    std::erase_if(entries, [&](const auto& entry) { return entry.first.first == job.run_id; });
  }
  for (const auto& entry : batch.entries) {
    if (entry.value.has_value()) {
      entries[{entry.run_id, entry.key}] = *entry.value;
    } else {
      entries.erase({entry.run_id, entry.key});
    }
  }
}

Remembered From(const JournalContents& contents) {
  Remembered remembered;
  for (const auto& [run_id, record] : contents.jobs) remembered.jobs[run_id] = record;
  for (const auto& entry : contents.entries) {
    remembered.entries[{entry.run_id, entry.key}] = entry.value.value();
  }
  // No duplicates, which the maps would hide.
  if (remembered.jobs.size() != contents.jobs.size()) std::abort();
  if (remembered.entries.size() != contents.entries.size()) std::abort();
  return remembered;
}

JournalBatch BatchNumber(int number) {
  std::mt19937 random(static_cast<unsigned>(number));
  const auto run_id = [&] { return "job-" + std::to_string(random() % 4); };
  JournalBatch batch;
  batch.jobs.push_back({kCounter, std::to_string(number)});
  if (random() % 4 == 0) batch.jobs.push_back({run_id(), std::nullopt});
  batch.jobs.push_back({run_id(), Bytes(random, random() % 200)});
  for (unsigned left = random() % 6; left > 0; --left) {
    const std::string key = "key-" + std::to_string(random() % 20);
    if (random() % 4 == 0) {
      batch.entries.push_back({run_id(), key, std::nullopt});
    } else {
      // Some exceed a page.
      batch.entries.push_back({run_id(), key, Bytes(random, random() % (left == 1 ? 6000 : 300))});
    }
  }
  return batch;
}

std::optional<int> BatchesIn(const JournalContents& contents) {
  const Remembered found = From(contents);
  const auto counter = found.jobs.find(kCounter);
  const int count = counter == found.jobs.end() ? 0 : std::atoi(counter->second.c_str());
  Remembered expected;
  for (int number = 1; number <= count; ++number) expected.Apply(BatchNumber(number));
  if (found == expected) return count;
  return std::nullopt;
}

}  // namespace muster::rendezvous::test
