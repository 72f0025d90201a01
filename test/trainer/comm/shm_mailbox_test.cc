// Messages between real processes: every size, any order of tags, full rings, and members that die,
// leave or do not arrive.
#include "trainer/comm/host/shm_mailbox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "test/trainer/forked_members.h"

namespace muster::trainer {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kRing = 1024;

// Member i is rank 10 + i, so that a message that confuses them is noticed.
ShmMailbox::Options MailboxMemberOptions(int member, int members) {
  ShmMailbox::Options options{.member = member};
  for (int i = 0; i < members; ++i) options.ranks.push_back(10 + i);
  return options;
}

ShmSegment MailboxSegmentFor(int members) {
  return ShmSegment::Create(ShmMailbox::SegmentBytes(members, kRing)).value();
}

ShmSegment Shared(const ShmSegment& segment) {
  return ShmSegment::Open(segment.handle()).value();
}

// Message number `number` from `from` to `to`.
std::vector<std::byte> Message(int from, int to, int number) {
  std::mt19937 random(static_cast<std::uint32_t>((from * 100 + to) * 10000 + number));
  // Empty, less than a cache line, about a ring, and many rings.
  const std::size_t sizes[] = {0, 1, 63, 1000, 1024, 1025, 5000};
  std::vector<std::byte> bytes(sizes[random() % 7]);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

class ShmMailboxTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Members, ShmMailboxTest, testing::Values(1, 2, 3, 4),
                         testing::PrintToStringParamName());

TEST_P(ShmMailboxTest, AllSendToAllAndReceiveInAnotherOrder) {
  const int members = GetParam();
  const ShmSegment segment = MailboxSegmentFor(members);
  ForkedMembers processes(members, [&](int member, const ForkedMembers::Say& say) {
    ShmMailbox mail(Shared(segment), MailboxMemberOptions(member, members));
    constexpr int kRounds = 40;
    constexpr int kMessages = 12;  // to each in a round; two tags have several
    std::mt19937 random(static_cast<std::uint32_t>(member));
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::vector<std::byte>> sent;
      std::vector<std::vector<std::byte>> received;
      std::vector<std::vector<std::byte>> right;
      sent.reserve(1000);
      received.reserve(1000);
      std::vector<ShmMailbox::Ticket> tickets;
      for (int peer = 0; peer < members; ++peer) {
        if (peer == member) continue;
        std::map<int, std::vector<int>> by_tag;
        for (int i = 0; i < kMessages; ++i) {
          by_tag[i % 5].push_back(round * kMessages + i);
          sent.push_back(Message(member, peer, round * kMessages + i));
          tickets.push_back(mail.Send(peer, i % 5, sent.back().data(), sent.back().size()));
        }
        // By tags, the last one first: a different order from the sender's.
        for (auto tag = by_tag.rbegin(); tag != by_tag.rend(); ++tag) {
          for (const int number : tag->second) {
            right.push_back(Message(peer, member, number));
            received.emplace_back(right.back().size());
            tickets.push_back(
                mail.Receive(peer, tag->first, received.back().data(), received.back().size()));
          }
        }
      }
      std::shuffle(tickets.begin(), tickets.end(), random);
      for (const ShmMailbox::Ticket ticket : tickets) {
        const absl::Status status = mail.Wait(ticket);
        if (!status.ok() || !mail.Done(ticket)) {
          say(std::string(status.message()));
          return 1;
        }
      }
      if (received != right) {
        say(absl::StrCat("round ", round));
        return 1;
      }
    }
    return 0;
  });
  EXPECT_TRUE(processes.AllSucceed()) << processes.said(0);
}

TEST(ShmMailboxSizeTest, AMessageOfAnotherSizeIsSaid) {
  const ShmSegment segment = MailboxSegmentFor(2);
  ForkedMembers processes(2, [&](int member, const ForkedMembers::Say& say) {
    ShmMailbox mail(Shared(segment), MailboxMemberOptions(member, 2));
    std::byte bytes[8] = {};
    if (member == 0) return mail.Wait(mail.Send(1, 3, bytes, 8)).ok() ? 0 : 1;
    const absl::Status status = mail.Wait(mail.Receive(0, 3, bytes, 4));
    say(std::string(status.message()));
    // The error lasts.
    return mail.Wait(mail.Receive(0, 4, bytes, 4)) == status ? 0 : 1;
  });
  EXPECT_TRUE(processes.AllSucceed());
  EXPECT_EQ(processes.said(1),
            "shared memory: rank 10 has sent 8 bytes with tag 3, and 4 were awaited");
}

class ShmMailboxFaultTest : public testing::Test {
 protected:
  // Member 0 runs `first`; the other waits for a message, and prints the result.
  void Start(const std::function<void(ShmMailbox&)>& first, milliseconds timeout) {
    processes_.emplace(2, [this, first, timeout](int member, const ForkedMembers::Say& say) {
      ShmMailbox::Options options = MailboxMemberOptions(member, 2);
      options.timeout = timeout;
      ShmMailbox mail(Shared(segment_), options);
      if (member == 0) {
        first(mail);
        return 0;
      }
      std::byte bytes[4] = {};
      say("waiting. ");
      const absl::Status status = mail.Wait(mail.Receive(0, 1, bytes, 4));
      say(status.ok() ? "received." : std::string(status.message()));
      return 0;
    });
  }

  const ShmSegment segment_ = MailboxSegmentFor(2);
  std::optional<ForkedMembers> processes_;
};

TEST_F(ShmMailboxFaultTest, AMemberThatIsKilledIsNamed) {
  Start([](ShmMailbox&) { raise(SIGKILL); }, std::chrono::seconds(300));
  EXPECT_EQ(processes_->Wait(1), 0);
  EXPECT_TRUE(absl::StrContains(processes_->said(1), absl::StrCat("shared memory: rank 10 (pid ",
                                                                  processes_->pid(0), ") is gone")))
      << processes_->said(1);
}

TEST_F(ShmMailboxFaultTest, AMemberThatLeavesIsNamed) {
  Start([](ShmMailbox&) {}, std::chrono::seconds(300));
  EXPECT_EQ(processes_->Wait(1), 0);
  EXPECT_TRUE(absl::StrContains(processes_->said(1), "has given up") ||
              absl::StrContains(processes_->said(1), "is gone"))
      << processes_->said(1);
}

TEST_F(ShmMailboxFaultTest, AMemberThatNeverSendsIsLate) {
  Start([](ShmMailbox&) { raise(SIGSTOP); }, milliseconds(300));
  EXPECT_EQ(processes_->Wait(1), 0);
  EXPECT_TRUE(absl::StrContains(processes_->said(1), "did not come within 0.3 s"))
      << processes_->said(1);
  processes_->Signal(0, SIGCONT);
}

TEST_F(ShmMailboxFaultTest, WhatWasWrittenBeforeTheEndArrives) {
  Start(
      [](ShmMailbox& mail) {
        std::byte bytes[4] = {};
        if (mail.Wait(mail.Send(1, 1, bytes, 4)).ok()) raise(SIGKILL);
      },
      std::chrono::seconds(300));
  EXPECT_EQ(processes_->Wait(1), 0);
  EXPECT_TRUE(absl::StrContains(processes_->said(1), "received.")) << processes_->said(1);
}

}  // namespace
}  // namespace muster::trainer
