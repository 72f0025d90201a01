// The page: logs' contents stay text, and a large job's page stays small.
#include "launcher/replay/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/launcher/replay/logs.h"

namespace muster::launcher {
namespace {

using test::AgentLog;
using testing::HasSubstr;
using testing::Not;
using enum AgentEventKind;

std::size_t CountOf(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(HtmlTextTest, NothingIsMarkup) {
  EXPECT_EQ(HtmlText("<b a=\"1\" c='2'>&\n\x1b\x7f\xc3\xa4"),
            "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;\n??\xc3\xa4");
  EXPECT_EQ(HtmlText("a\u202eb\u2069\u00e4"), "a?b?\u00e4") << "and nothing turns the line around";
  EXPECT_EQ(JsonForHtml("a\u202eb\nc"), R"("a?b\nc")");
  EXPECT_EQ(JsonForHtml("</script><!--"), R"("\u003c/script>\u003c!--")");
}

// As browsers compute it: printf '' | openssl dgst -sha256 -binary | base64.
TEST(HtmlTextTest, PolicyNamesTheHashOfAContent) {
  EXPECT_EQ(PolicyHash(""), "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
}

// The page lacked incidents that ended no round.
TEST(HtmlViewTest, WhatElseHappenedIsOnThePage) {
  AgentLog log("n0", 1);
  log.Assigned(1, 0, 0, 1, 1).At(2, {.kind = kWorkersStarted, .round = 0});
  EXPECT_THAT(HtmlView(test::TimelineOfTexts({log.text()})), Not(HasSubstr("What else happened")));
  log.At(3, {.kind = kStraggler, .round = 0, .rank = 0, .cause = "rank 0 <is> a straggler"});
  const std::string page = HtmlView(test::TimelineOfTexts({log.text()}));
  EXPECT_THAT(page, HasSubstr("<h2>What else happened</h2>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"words\">rank 0 &lt;is&gt; a straggler</td>"));
}

// "A worker's output ran as a script in the browser of everyone who opened the page."
TEST(HtmlViewTest, WordsOfAWorkerAreNoMarkup) {
  const std::string hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'";
  AgentLog log("n0", 1);
  log.Assigned(1, 0, 0, 1, 1).At(2, {.kind = kWorkersStarted, .round = 0});
  log.At(3, {.kind = kWorkerFailed, .round = 0, .rank = 0, .cause = hostile});
  log.At(4, {.kind = kToldToStop, .round = 0, .cause = hostile});
  log.Assigned(5, 1, 0, 1, 1).At(6, {.kind = kWorkersStarted, .round = 1});
  log.At(7, {.kind = kSignal, .round = 1, .cause = hostile});
  log.At(8, {.kind = kVerdict, .round = 1, .cause = hostile});
  std::string text = log.text() + "{\"event\":\"" + "<img src=y>" + "\"}\n";
  const std::string page = HtmlView(test::TimelineOfTexts({text}));
  EXPECT_THAT(page, HasSubstr("&lt;img src=x"));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  // The data and the page's own script.
  EXPECT_EQ(CountOf("<script", page), 2u);
  EXPECT_EQ(CountOf("</script", page), 2u);
}

// A round of a thousand nodes takes one letter per node, and equal messages from all of them appear
// once.
TEST(HtmlViewTest, LargeJobIsShownByNode) {
  constexpr int kNodes = 150;
  constexpr int kRounds = 10;
  std::vector<std::string> logs;
  for (int node = 0; node < kNodes; ++node) {
    AgentLog log("n" + std::to_string(node), 8);
    for (int round = 0; round < kRounds; ++round) {
      const int at = 1000 * round;
      log.Assigned(at + 1, round, node, kNodes, 8 * kNodes);
      log.At(at + 2, {.kind = kWorkersStarted, .round = round});
      log.At(at + 900, {.kind = kToldToStop, .round = round, .cause = "node n7 joined"});
      log.At(at + 950, {.kind = kWorkersGone, .round = round, .cause = "stopped"});
    }
    logs.push_back(log.text());
  }
  const std::string page = HtmlView(test::TimelineOfTexts(logs));
  EXPECT_THAT(page, HasSubstr("\"byNode\":true"));
  EXPECT_EQ(CountOf("\"states\":\"" + std::string(kNodes, 'x') + "\"", page), 10u);
  EXPECT_EQ(CountOf("\"node n7 joined\",150]", page), 10u);
  EXPECT_EQ(CountOf(",1192,8]", page), 1u);
}

}  // namespace
}  // namespace muster::launcher
