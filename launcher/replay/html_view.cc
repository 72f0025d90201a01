#include "launcher/replay/views.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include <openssl/sha.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

#include "base/safe_text.h"
#include "base/text.h"
#include "launcher/replay/page.h"

namespace muster::launcher {
namespace {

// The width of all drawings in their own units; they scale to the page.
constexpr double kWidth = 1000;
constexpr std::size_t kMostBesidesOnPage = 200;

std::string Head(const Timeline& timeline) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src ",
      PolicyHash(kPageStyle), "; script-src ", PolicyHash(kPageScript),
      "; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>job ",
      HtmlText(timeline.job), "</title>\n<style>", kPageStyle, "</style>\n</head>\n");
}

// A rectangle in a drawing; `title` is its tooltip.
std::string Rect(const char* className, double from, double to, const std::string& title) {
  return absl::StrFormat(
      "<rect class=\"%s\" x=\"%.2f\" y=\"0\" width=\"%.2f\" height=\"20\"><title>%s</title></rect>",
      className, from, std::max(0.0, to - from), HtmlText(title));
}

std::string Svg(const std::string& label, const std::string& rects) {
  return absl::StrCat(
      "<svg viewBox=\"0 0 1000 20\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"",
      HtmlText(label), "\">", rects, "</svg>");
}

double Share(Offset part, Offset whole) {
  return whole.count() == 0
             ? 0
             : kWidth * static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

std::string Strip(const Timeline& timeline) {
  std::string rects = Rect("idle", 0, kWidth, "no round runs");
  for (const RoundSpan& round : timeline.rounds) {
    if (!round.started) continue;
    absl::StrAppend(
        &rects, Rect(round.got_further ? "useful" : "useless",
                     Share(*round.started, timeline.length), Share(round.ended, timeline.length),
                     absl::StrCat("round ", round.number, ": ", round.cause)));
  }
  return Svg("when workers ran", rects);
}

std::string Summary(const Timeline& timeline) {
  return absl::StrCat(
      "<h1>job ", HtmlText(timeline.job), "</h1>\n<p>",
      HtmlText(timeline.verdict.empty() ? "the logs do not say how it ended" : timeline.verdict),
      "</p>\n<p class=\"faint\">", SizeText(timeline), ", ", base::Measured(timeline.length),
      " from ", OriginText(timeline), "</p>\n<p><span class=\"figure\">", GoodputText(timeline),
      "</span> goodput: workers of rounds that got further ran for ",
      base::Measured(timeline.useful), " of ", base::Measured(timeline.length), "</p>\n",
      Strip(timeline),
      "<p class=\"faint\"><span class=\"key useful\"></span>got further<span class=\"key "
      "useless\"></span>ran and got no further</p>\n");
}

// `first` is the content of a row's first cell, `note` follows the title.
std::string HtmlTable(const ReplayTable& table,
                      const std::function<std::string(std::size_t)>& first, const char* note = "") {
  if (table.rows.empty()) return "";
  const auto kind = [last = table.columns.size() - 1](std::size_t column) {
    return column == 0 ? "first" : column == last ? "words" : "number";
  };
  std::string html =
      absl::StrCat("<h2>", table.title, "</h2>\n", note, "<div class=\"wide\"><table><thead><tr>");
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    absl::StrAppend(&html, "<th class=\"", kind(i), "\">", absl::AsciiStrToLower(table.columns[i]),
                    "</th>");
  }
  absl::StrAppend(&html, "</tr></thead><tbody>\n");
  for (std::size_t at = 0; at < table.rows.size(); ++at) {
    const std::vector<std::string>& row = table.rows[at];
    absl::StrAppend(&html, "<tr>");
    for (std::size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&html, "<td class=\"", kind(i), "\">", i == 0 ? first(at) : HtmlText(row[i]),
                      "</td>");
    }
    absl::StrAppend(&html, "</tr>\n");
  }
  return absl::StrCat(html, "</tbody></table></div>\n",
                      table.left_out > 0
                          ? absl::StrCat("<p class=\"faint\">and ", table.left_out, " more</p>\n")
                          : "");
}

std::string RoundTable(const Timeline& timeline) {
  return HtmlTable(RoundsOf(timeline), [&timeline](std::size_t i) {
    return absl::StrCat("<button type=\"button\" class=\"round\" aria-pressed=\"false\">",
                        timeline.rounds[i].number, "</button>");
  });
}

// The phases of one restart, on a scale common to all restarts.
std::string PhaseBar(const RestartCost& cost, Offset longest) {
  std::string rects;
  const auto add = [&](const char* phase, Offset from, const std::optional<Offset>& to) {
    if (!to) return;
    absl::StrAppend(&rects, Rect(phase, Share(from - cost.detected, longest),
                                 Share(*to - cost.detected, longest),
                                 absl::StrCat(phase, " ", base::Measured(*to - from))));
  };
  add("stopping", cost.detected, cost.stopped);
  add("gathering", cost.stopped, cost.gathered);
  add("starting", cost.gathered, cost.started);
  if (cost.started) add("progress", *cost.started, cost.progress);
  return Svg(absl::StrCat("restart ", cost.from, " to ", cost.to), rects);
}

Offset EndOf(const RestartCost& cost) {
  return cost.progress.value_or(cost.started.value_or(cost.gathered));
}

std::string RestartTable(const Timeline& timeline) {
  Offset longest{0};
  for (const RestartCost& cost : timeline.restarts) {
    longest = std::max(longest, EndOf(cost) - cost.detected);
  }
  return HtmlTable(
      RestartsOf(timeline),
      [&](std::size_t i) {
        const RestartCost& cost = timeline.restarts[i];
        return absl::StrCat(cost.from, " to ", cost.to, PhaseBar(cost, longest));
      },
      "<p class=\"faint\"><span class=\"key stopping\"></span>stopping<span class=\"key "
      "gathering\"></span>gathering<span class=\"key starting\"></span>starting<span class=\"key "
      "progress\"></span>to first progress</p>\n");
}

std::string Grid(const Timeline& timeline) {
  if (timeline.rounds.empty()) return "";
  return "<h2 id=\"which\">Ranks</h2>\n<p class=\"faint\">Choose a round above: Tab and the arrow "
         "keys, or the pointer. Arrow keys also go from cell to cell.</p>\n<noscript><p>The grid "
         "of ranks needs scripts; all else does not.</p></noscript>\n<div id=\"grid\" "
         "role=\"group\" aria-labelledby=\"which\"></div>\n<p id=\"detail\" "
         "aria-live=\"polite\"></p>\n<ul id=\"events\"></ul>\n";
}

std::string BesidesTable(const Timeline& timeline) {
  const ReplayTable table = BesidesOf(timeline, kMostBesidesOnPage);
  return HtmlTable(table, [&table](std::size_t i) { return HtmlText(table.rows[i].front()); });
}

std::string Notes(const Timeline& timeline) {
  if (timeline.notes.empty()) return "";
  std::string html = "<h2>About these logs</h2>\n<ul>\n";
  for (const std::string& note : timeline.notes) {
    absl::StrAppend(&html, "<li>", HtmlText(note), "</li>\n");
  }
  return html + "</ul>\n";
}

}  // namespace

std::string HtmlView(const Timeline& timeline) {
  std::string html = absl::StrCat(Head(timeline), "<body>\n<main>\n", Summary(timeline));
  absl::StrAppend(&html, RoundTable(timeline), RestartTable(timeline), Grid(timeline),
                  BesidesTable(timeline), Notes(timeline), "</main>\n");
  if (!timeline.rounds.empty()) {
    absl::StrAppend(&html, "<script type=\"application/json\" id=\"data\">",
                    JsonForHtml(PageData(timeline)), "</script>\n<script>", kPageScript,
                    "</script>\n");
  }
  return html + "</body>\n</html>\n";
}

std::string HtmlText(absl::string_view text) {
  std::string out;
  for (const char c : base::SafeText({text.data(), text.size()})) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string JsonForHtml(const base::Json& value) {
  // A '<' can occur in strings only, so it can be escaped.
  return absl::StrReplaceAll(base::SafeText(base::JsonText(value)), {{"<", "\\u003c"}});
}

std::string PolicyHash(absl::string_view content) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(), digest.data());
  return absl::StrCat("'sha256-",
                      absl::Base64Escape(absl::string_view(
                          reinterpret_cast<const char*>(digest.data()), digest.size())),
                      "'");
}

namespace {

using base::Json;

constexpr std::size_t kMostEvents = 50;

char StateOf(const RoundNode& member) {
  if (member.end == "succeeded") return 's';
  if (member.end == "failed") return 'f';
  if (!member.gone) return 'e';
  return member.started ? 'x' : 'w';
}

Json LayoutOf(const RoundSpan& round) {
  Json layout = Json::array();
  for (const RoundNode& member : round.members) {
    layout.push_back(Json::array({member.node, member.first_rank, member.workers}));
  }
  return layout;
}

void AddEvents(const RoundSpan& round, Json& json) {
  std::size_t more = 0;
  json["events"] = Json::array();
  for (const IncidentGroup& group : GroupIncidents(round.incidents, kMostEvents, &more)) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(group.at).count();
    json["events"].push_back(Json::array({ms, group.what, group.count}));
  }
  json["more"] = more;
}

Json RoundJson(const RoundSpan& round, std::size_t layout) {
  Json json;
  json["number"] = round.number;
  json["layout"] = layout;
  std::string states;
  json["failed"] = Json::array();
  for (std::size_t at = 0; at < round.members.size(); ++at) {
    const RoundNode& member = round.members[at];
    states += StateOf(member);
    if (member.failed_rank >= 0) {
      json["failed"].push_back(Json::array({at, member.failed_rank}));
    }
  }
  json["states"] = std::move(states);
  json["missing"] = std::max(0, round.nodes - static_cast<int>(round.members.size()));
  AddEvents(round, json);
  return json;
}

// Shows the last round with a failure first, or else the last round.
std::size_t ChosenRound(const Timeline& timeline) {
  for (std::size_t at = timeline.rounds.size(); at > 0; --at) {
    if (timeline.rounds[at - 1].detected) return at - 1;
  }
  return timeline.rounds.empty() ? 0 : timeline.rounds.size() - 1;
}

}  // namespace

base::Json PageData(const Timeline& timeline) {
  Json data;
  data["nodes"] = Json::array();
  for (const TimelineNode& node : timeline.nodes) data["nodes"].push_back(node.id);
  int most = 0;
  data["layouts"] = Json::array();
  data["rounds"] = Json::array();
  for (const RoundSpan& round : timeline.rounds) {
    int ranks = 0;
    for (const RoundNode& member : round.members) ranks += member.workers;
    most = std::max(most, ranks);
    Json layout = LayoutOf(round);
    if (data["layouts"].empty() || data["layouts"].back() != layout) {
      data["layouts"].push_back(std::move(layout));
    }
    data["rounds"].push_back(RoundJson(round, data["layouts"].size() - 1));
  }
  data["byNode"] = most > kMostRankCells;
  data["chosen"] = ChosenRound(timeline);
  return data;
}

}  // namespace muster::launcher
