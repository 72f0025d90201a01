// Reading of complete and of damaged logs.
#include "launcher/replay/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "launcher/replay/job_events.h"
#include "test/launcher/replay/logs.h"

namespace muster::launcher {
namespace {

using test::AgentLog;
using test::LogText;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using enum AgentEventKind;

std::string ErrorOf(const std::string& text) {
  return std::string(ReadEvents("events.json", text).status().message());
}

EventFile Read(const std::string& text) {
  const auto file = ReadEvents("events.json", text);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? *file : EventFile();
}

TEST(EventFileTest, LogsOfRealRunsFitTheSchema) {
  for (const char* name : {"two_failures_0.json", "two_failures_1.json", "lost_node_0.json",
                           "lost_node_1.json", "lost_node_2.json", "hang.json"}) {
    const std::string text = LogText(name);
    std::size_t lines = 0;
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1, ++lines) {
      const base::Json line = base::ParseJson(text.substr(at, text.find('\n', at) - at));
      EXPECT_TRUE(CheckEventLine(line, MoreFields::kRefused).ok())
          << name << ": " << CheckEventLine(line, MoreFields::kRefused) << line;
    }
    EXPECT_GT(lines, 3u) << name;
    EXPECT_THAT(Read(text).notes, IsEmpty()) << name;
  }
}

TEST(EventFileTest, NewerVersionIsRefusedInOneSentence) {
  std::string text = AgentLog("n0", 1).At(1, {.kind = kJoining}).text();
  const std::string version = "\"version\":1,\"muster\":\"0.1.0\"";
  text.replace(text.find(version), version.size(), "\"version\":2,\"muster\":\"0.9.3\"");
  EXPECT_EQ(ErrorOf(text),
            "read the event log events.json: it has version 2 of the format, and this muster reads "
            "version 1; use muster 0.9.3 or newer");
}

TEST(EventFileTest, FileWithoutEventsIsRefused) {
  const std::string sentence =
      "read the event log events.json: it has no events; give files written by muster run "
      "--event-log=FILE";
  EXPECT_EQ(ErrorOf(""), sentence);
  EXPECT_EQ(ErrorOf("#!/bin/sh\necho\n"), sentence);
  EXPECT_EQ(ErrorOf(std::string("\0\xff\n{}\n[[[", 8)), sentence);
}

TEST(EventFileTest, LastLineThatWasTornOffIsLeftOutAndTold) {
  const std::string whole =
      AgentLog("n0", 1).At(1, {.kind = kJoining}).At(2, {.kind = kVerdict, .cause = "x"}).text();
  const EventFile file = Read(whole.substr(0, whole.size() - 20));
  ASSERT_EQ(file.nodes.size(), 1u);
  EXPECT_EQ(file.nodes[0].events.size(), 2u);
  EXPECT_THAT(file.notes, ElementsAre("events.json: its last line is incomplete"));
}

TEST(EventFileTest, UnknownEventsAndFieldsOfTheSameVersionAreNoMistake) {
  std::string text = AgentLog("n0", 1).At(1, {.kind = kJoining}).text();
  std::string unknown = AgentLog("n0", 1).text();
  unknown.replace(unknown.find("log_opened"), 10, "teleported");
  text += unknown + unknown;
  text.insert(text.find("\"job\""), "\"mood\":\"good\",");
  const EventFile file = Read(text);
  EXPECT_EQ(file.nodes.at(0).events.size(), 2u);
  EXPECT_THAT(file.notes,
              ElementsAre("events.json: events that this version does not know are left out: "
                          "teleported 2"));
}

TEST(EventFileTest, LinesThatAreNoEventsAreCountedAndTheFirstIsExplained) {
  const EventFile file = Read(AgentLog("n0", 1).text() + "garbage\n{\"event\":\"joining\"}\n" +
                              AgentLog("n1", 1).text());
  EXPECT_EQ(file.nodes.size(), 2u);
  EXPECT_THAT(file.notes, ElementsAre("events.json: 2 lines are not events and are left out (line "
                                      "2: the line is not JSON)"));
}

TEST(EventFileTest, LogWithoutItsBeginningIsRead) {
  const std::string text = AgentLog("n0", 1).At(1, {.kind = kJoining}).text();
  const EventFile file = Read(text.substr(text.find('\n') + 1));
  EXPECT_EQ(file.nodes.at(0).events.size(), 1u);
  EXPECT_THAT(file.notes, ElementsAre(HasSubstr("the log of node n0 has no beginning")));
}

// A file that is appended to contains yesterday's runs, too.
TEST(JobEventsTest, LifeThatEndedLastIsTaken) {
  AgentLog old("n0", 1);
  old.Assigned(5, 0, 0, 1, 1);
  AgentLog now("n1", 1, AgentLog::kNoon + std::chrono::hours(1));
  now.At(5, {.kind = kAssigned, .round = 0, .place = EventPlace{.incarnation = 8}});
  const auto chosen = ChooseJob({Read(old.text() + now.text())}, "");
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  ASSERT_EQ(chosen->nodes.size(), 1u);
  EXPECT_EQ(chosen->nodes[0].node, "n1");
  EXPECT_THAT(chosen->notes, ElementsAre("1 node of another job of the same name, which ended "
                                         "earlier, is left out"));
}

TEST(JobEventsTest, SeveralJobsMustBeToldApart) {
  std::string other = AgentLog("n1", 1).text();
  other.replace(other.find("\"j7\""), 4, "\"j8\"");
  const EventFile file = Read(AgentLog("n0", 1).text() + other);
  EXPECT_EQ(ChooseJob({file}, "").status().message(),
            "these logs are of several jobs, j7, j8; name one with --job");
  EXPECT_EQ(ChooseJob({file}, "j9").status().message(),
            "these logs say nothing of job 'j9'; they are of j7, j8");
  const auto chosen = ChooseJob({file}, "j8");
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->nodes.at(0).node, "n1");
}

}  // namespace
}  // namespace muster::launcher
