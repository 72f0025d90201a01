// The event log: what is written, and that the table, the documentation and the JSON schema say the
// same of it.
#include "launcher/replay/agent_event.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "launcher/replay/event_file.h"
#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;
using enum AgentEventKind;

const std::chrono::system_clock::time_point kTime(std::chrono::milliseconds(1700000000123));
const std::chrono::steady_clock::time_point kMonotonic(std::chrono::microseconds(5321000412));

std::string LineOf(const AgentEvent& event) {
  return EventLine(event, {.job = "j7", .node = "n-1", .workers = 2}, kTime, kMonotonic);
}

// An event of this kind that says all that one can say.
AgentEvent FullEvent(AgentEventKind kind) {
  AgentEvent event{.kind = kind, .round = 0, .rank = 3, .pid = 4711, .cause = "stopped"};
  if (kind == kAssigned) {
    event.place = EventPlace{.incarnation = 0xfedcba9876543210,
                             .node_rank = 1,
                             .nodes = 2,
                             .first_rank = 2,
                             .world_size = 4};
  }
  return event;
}

TEST(EventLogTest, LineHasWhatTheEventHas) {
  EXPECT_EQ(LineOf({.kind = kWorkerFailed, .round = 0, .rank = 3, .pid = 4711, .cause = "exited"}),
            R"({"time":"2023-11-14T22:13:20.123Z","monotonic":5321.000412,)"
            R"("event":"worker_failed","job":"j7","node":"n-1","round":0,"rank":3,"pid":4711,)"
            R"("cause":"exited"})");
  EXPECT_EQ(LineOf({.kind = kJoining}),
            R"({"time":"2023-11-14T22:13:20.123Z","monotonic":5321.000412,"event":"joining",)"
            R"("job":"j7","node":"n-1"})");
  EXPECT_EQ(LineOf({.kind = kLogOpened}),
            R"({"time":"2023-11-14T22:13:20.123Z","monotonic":5321.000412,"event":"log_opened",)"
            R"("job":"j7","node":"n-1","version":1,"muster":"0.1.0","workers":2})");
  EXPECT_EQ(LineOf(FullEvent(kAssigned)),
            R"({"time":"2023-11-14T22:13:20.123Z","monotonic":5321.000412,"event":"assigned",)"
            R"("job":"j7","node":"n-1","round":0,"incarnation":"fedcba9876543210",)"
            R"("node_rank":1,"nodes":2,"first_rank":2,"world_size":4,"cause":"stopped"})");
}

TEST(EventLogTest, AgentsMayShareAFileAndKeepWhatIsInIt) {
  const TempDir dir;
  const std::string path = dir.Write("events", "before\n");
  {
    auto one = EventLog::Open(path, {.job = "j", .node = "a"});
    auto other = EventLog::Open(path, {.job = "j", .node = "b"});
    ASSERT_TRUE(one.ok() && other.ok());
    (*one)->Write({.kind = kJoining});
    (*other)->Write({.kind = kVerdict, .cause = "done"});
  }
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  EXPECT_THAT(lines, ElementsAre("before", HasSubstr("\"log_opened\",\"job\":\"j\",\"node\":\"a\""),
                                 HasSubstr("\"log_opened\",\"job\":\"j\",\"node\":\"b\""),
                                 HasSubstr("\"node\":\"a\""), HasSubstr("\"cause\":\"done\"")));
}

TEST(EventLogTest, FileThatCannotBeOpenedIsNamed) {
  EXPECT_EQ(EventLog::Open("/no/such/dir/events", {.job = "j", .node = "a"}).status().message(),
            "open the event log /no/such/dir/events: No such file or directory");
}

TEST(EventLogTest, FullDiskCostsLinesAndNothingElse) {
  auto log = EventLog::Open("/dev/full", {.job = "j", .node = "a"});
  ASSERT_TRUE(log.ok());
  (*log)->Write({.kind = kJoining});
  EXPECT_EQ((*log)->lost(), 2);
}

TEST(EventSchemaTest, WhatIsWrittenFits) {
  for (const EventRow& row : EventTable()) {
    const std::string line = LineOf(FullEvent(row.kind));
    EXPECT_TRUE(CheckEventLine(base::ParseJson(line), MoreFields::kRefused).ok())
        << line << CheckEventLine(base::ParseJson(line), MoreFields::kRefused);
  }
}

TEST(EventSchemaTest, WhatIsMissingIsNamed) {
  for (const EventRow& row : EventTable()) {
    for (const EventFieldRow& field : EventFieldTable()) {
      base::Json line = base::ParseJson(LineOf(FullEvent(row.kind)));
      if (line.erase(std::string(field.name)) == 0) continue;
      const absl::Status status = CheckEventLine(line, MoreFields::kRefused);
      if ((row.sometimes & In(field.field)) != 0) {
        EXPECT_TRUE(status.ok()) << status;
      } else {
        EXPECT_THAT(std::string(status.message()), HasSubstr("has no " + std::string(field.name)));
      }
    }
  }
}

TEST(EventSchemaTest, WhatIsWrongIsNamed) {
  const auto said = [](const char* field, base::Json value, MoreFields more) {
    base::Json line = base::ParseJson(LineOf(FullEvent(kWorkersGone)));
    line[field] = std::move(value);
    return std::string(CheckEventLine(line, more).message());
  };
  const MoreFields refused = MoreFields::kRefused;
  EXPECT_EQ(said("round", "0", refused), "workers_gone has a round that is none");
  EXPECT_EQ(said("round", -1, refused), "workers_gone has a round that is none");
  EXPECT_EQ(said("round", 18446744073709551615U, refused), "workers_gone has a round that is none");
  EXPECT_EQ(said("round", 0.5, refused), "workers_gone has a round that is none");
  EXPECT_EQ(said("monotonic", -1, refused), "the line has a monotonic that is none");
  EXPECT_EQ(said("time", "2023-11-14 22:13:20Z", refused), "the line has a time that is none");
  EXPECT_EQ(said("node", "<b>", refused), "the line has a node that is none");
  EXPECT_EQ(said("cause", "vanished", refused), "workers_gone has a cause that is none");
  EXPECT_EQ(said("event", "danced", refused), "there is no event 'danced'");
  EXPECT_EQ(said("rank", 1, refused), "workers_gone has a rank");
  EXPECT_EQ(said("rank", 1, MoreFields::kIgnored), "");
  EXPECT_EQ(CheckEventLine(base::Json::array(), refused).message(),
            "the line is not a JSON object");
}

// The documentation is made from the table: with MUSTER_REWRITE=1 this test prints it.
TEST(EventSchemaTest, DocumentationSaysWhatTheTableSays) {
  const std::string schema = base::JsonText(EventSchema(), 2) + "\n";
  if (std::getenv("MUSTER_REWRITE") != nullptr) {
    std::printf("== docs/event_log.schema.json\n%s== docs/event_log.md\n%s\n%s", schema.c_str(),
                EventFieldsInMarkdown().c_str(), EventsInMarkdown().c_str());
  }
  EXPECT_EQ(test::ReadAll("docs/event_log.schema.json"), schema);
  const std::string page = test::ReadAll("docs/event_log.md");
  EXPECT_THAT(page, HasSubstr("\n" + EventFieldsInMarkdown() + "\n"));
  EXPECT_THAT(page, HasSubstr("\n" + EventsInMarkdown() + "\n"));
}

}  // namespace
}  // namespace muster::launcher
