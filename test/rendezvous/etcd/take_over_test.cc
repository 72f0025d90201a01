// What a take-over with many tenants costs where etcd is far away.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "rendezvous/etcd/etcd_journal.h"
#include "rendezvous/etcd/journal_keys.h"
#include "rendezvous/etcd/journal_mirror.h"
#include "rendezvous/etcd/journal_source.h"
#include "rendezvous/server/tenant_openings.h"
#include "test/rendezvous/etcd/near_etcd.h"
#include "test/rendezvous/etcd/sim_etcd.h"

namespace muster::rendezvous {
namespace {

constexpr int kTenants = 24;
constexpr std::chrono::milliseconds kRoundTrip(300);
// Whatever is not done by then never will be.
constexpr std::chrono::hours kLongest(1);

class TakeOverTest : public testing::Test {
 protected:
  static std::string Tenant(int number) { return absl::StrCat("t", number); }

  etcd::Fence Elect() {
    EXPECT_TRUE(etcd_.Apply({.then = {etcd::Delete{"/m/leader"}}}).ok());
    return {"/m/leader", etcd_.Apply({.then = {etcd::Put{"/m/leader", "x"}}})->revision};
  }

  using SourceFor = std::function<std::shared_ptr<etcd::JournalSource>()>;
  void Open(const etcd::Fence& fence, const std::string& tenant, const SourceFor& source_for,
            std::function<void(const absl::Status&)> opened) {
    const std::shared_ptr<etcd::JournalSource> source = source_for();
    etcd::OpenEtcdJournal(
        client_, fence, "/m/tenants/" + tenant, *source,
        [this, source, tenant, opened = std::move(opened)](absl::StatusOr<OpenedJournal> journal) {
          ASSERT_TRUE(journal.ok()) << tenant << ": " << journal.status();
          open_[tenant] = *std::move(journal);
          scheduler_.After({}, [source] {});
          opened(absl::OkStatus());
        });
  }

  // All of them, as a daemon does that takes over; how long that takes.
  Duration OpenAll(const etcd::Fence& fence, const SourceFor& source_for) {
    TenantOpenings openings({}, [&](const std::string& tenant, auto opened) {
      Open(fence, tenant, source_for, std::move(opened));
    });
    const TimePoint began = scheduler_.now();
    for (int i = 0; i < kTenants; ++i) openings.Ask(Tenant(i)).IgnoreError();
    while (open_.size() < kTenants && scheduler_.now() - began < kLongest && scheduler_.Step()) {
    }
    return scheduler_.now() - began;
  }

  SourceFor FromEtcd(const etcd::Fence& fence) {
    return [this, fence] { return std::make_shared<etcd::EtcdSource>(client_, pages_, fence); };
  }

  // Each tenant has a job of its own.
  void Remember() {
    const etcd::Fence fence = Elect();
    OpenAll(fence, FromEtcd(fence));
    for (auto& [tenant, journal] : open_) {
      JournalBatch batch;
      batch.jobs.push_back({"job of " + tenant, "record"});
      batch.entries.push_back({"job of " + tenant, "key", "value of " + tenant});
      journal.journal->Commit(std::move(batch), [](const absl::Status& s) { EXPECT_TRUE(s.ok()); });
    }
    while (scheduler_.Step()) {
    }
    open_.clear();
    client_.takes = kRoundTrip;
    client_.transactions = 0;
  }

  // So many of these keys has each tenant's store.
  void Fill(int keys, std::size_t bytes) {
    const std::string value(bytes, 'v');
    for (int i = 0; i < kTenants; ++i) {
      const etcd::JournalKeys of("/m/tenants/" + Tenant(i));
      for (int key = 0; key < keys; ++key) {
        for (etcd::Put& put : etcd::ToChunks(of.Entry("filled", absl::StrCat(key)), value)) {
          ASSERT_TRUE(etcd_.Apply({.then = {std::move(put)}}).ok());
        }
      }
    }
  }

  // Journals of so many entries, each of so many bytes, are opened in little more time than their
  // bytes take.
  void TakesAsLongAsTheLink(std::size_t keys, std::size_t bytes, std::size_t bytes_per_second) {
    Fill(static_cast<int>(keys), bytes);
    const etcd::Fence fence = Elect();
    client_.HaveLink(bytes_per_second);
    const double takes =
        static_cast<double>(kTenants * keys * bytes) / static_cast<double>(bytes_per_second);
    const std::chrono::duration<double> took = OpenAll(fence, FromEtcd(fence));
    ASSERT_EQ(open_.size(), std::size_t{kTenants});
    EXPECT_LT(took.count(), 1.25 * takes) << takes;
    for (const auto& [tenant, journal] : open_) EXPECT_EQ(journal.contents.entries.size(), keys);
  }

  void ExpectAll() {
    ASSERT_EQ(open_.size(), std::size_t{kTenants});
    for (const auto& [tenant, journal] : open_) {
      ASSERT_EQ(journal.contents.jobs.size(), 1u);
      EXPECT_EQ(journal.contents.jobs[0].first, "job of " + tenant);
      ASSERT_EQ(journal.contents.entries.size(), 1u);
      EXPECT_EQ(journal.contents.entries[0].value, "value of " + tenant);
    }
  }

  Scheduler scheduler_;
  Random random_{1};
  SimEtcd etcd_{scheduler_, random_};
  NearEtcd client_{scheduler_, etcd_};
  etcd::PageReader pages_{client_,
                          [this] { return etcd::PageReader::TimePoint(scheduler_.now()); }};
  std::map<std::string, OpenedJournal> open_;
};

// "24 tenants cost a commit each, one after the other: seven seconds of the eleven in which nobody
// was served."
TEST_F(TakeOverTest, TenantsThatWereFollowedCostOneRoundTripTogether) {
  Remember();
  const etcd::Fence fence = Elect();
  const auto memory = std::make_shared<etcd::MemorySource>(
      etcd_.Values(etcd::JournalKeys("/m").Everything()),
      [this](std::function<void()> part) { scheduler_.After({}, std::move(part)); });
  EXPECT_EQ(OpenAll(fence, [memory] { return memory; }), Duration(kRoundTrip));
  EXPECT_EQ(client_.transactions, kTenants);
  ExpectAll();
}

TEST_F(TakeOverTest, ThoseThatAreReadCostNoMoreThanOne) {
  Remember();
  const etcd::Fence fence = Elect();
  // What is there, that it counts, its jobs and their stores.
  EXPECT_EQ(OpenAll(fence, FromEtcd(fence)), Duration(4 * kRoundTrip));
  ExpectAll();
}

// "Over a link of less than 270 Mbit/s no tenant was ever served: 32 of them asked for 8 MiB each
// at a time, all of it came too late, and all of them asked again."
TEST_F(TakeOverTest, MuchIsReadOverASlowLinkInTheTimeThatTheLinkTakes) {
  TakesAsLongAsTheLink(/*keys=*/40, /*bytes=*/32 << 10, /*bytes_per_second=*/1 << 20);
}

// Where a single page takes longer than it is waited for.
TEST_F(TakeOverTest, LinkThatIsTooSlowForAPageIsAskedForLess) {
  TakesAsLongAsTheLink(/*keys=*/2, /*bytes=*/1 << 20, /*bytes_per_second=*/100'000);
}

// "Etcd stood still for ten seconds. Until the daemon was started again it read a key at a time,
// and every page waited eight seconds for a member that was down."
TEST_F(TakeOverTest, PagesAreReadAsQuicklyAsBeforeOnceTheLinkIs) {
  constexpr int kKeys = 8;
  Fill(kKeys, std::size_t{128} << 10);
  client_.HaveLink(20'000);
  scheduler_.After(std::chrono::seconds(30), [this] { client_.HaveLink(1 << 30); });
  const etcd::Fence during = Elect();
  OpenAll(during, FromEtcd(during));
  ASSERT_EQ(open_.size(), std::size_t{kTenants});
  client_.HaveLink(0);
  client_.takes = std::chrono::milliseconds(20);
  // Whoever reads now needs no longer than one who knows of nothing.
  const auto takes = [this](etcd::PageReader& pages) {
    open_.clear();
    const etcd::Fence fence = Elect();
    const Duration took =
        OpenAll(fence, [&] { return std::make_shared<etcd::EtcdSource>(client_, pages, fence); });
    EXPECT_EQ(open_.size(), std::size_t{kTenants});
    return took;
  };
  const Duration now = takes(pages_);
  etcd::PageReader fresh(client_, [this] { return etcd::PageReader::TimePoint(scheduler_.now()); });
  EXPECT_EQ(now, takes(fresh));
}

}  // namespace
}  // namespace muster::rendezvous
