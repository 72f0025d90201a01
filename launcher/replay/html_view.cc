#include "launcher/replay/html_view.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launcher/replay/html_text.h"
#include "launcher/replay/incident_groups.h"
#include "launcher/replay/page_data.h"
#include "launcher/replay/page_script.h"
#include "launcher/replay/page_style.h"
#include "launcher/replay/text_view.h"

namespace muster::launcher {
namespace {

// All drawings are this wide, in units of their own, and as wide as there is room on the screen.
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

// A piece of a drawing; `title` is shown where the pointer rests.
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
      HtmlText(timeline.verdict.empty() ? "no log says how it ended" : timeline.verdict),
      "</p>\n<p class=\"faint\">", SizeText(timeline), ", ", DurationText(timeline.length),
      " from ", OriginText(timeline), "</p>\n<p><span class=\"figure\">", GoodputText(timeline),
      "</span> goodput: workers of rounds that got further ran for ", DurationText(timeline.useful),
      " of ", DurationText(timeline.length), "</p>\n", Strip(timeline),
      "<p class=\"faint\"><span class=\"key useful\"></span>got further<span class=\"key "
      "useless\"></span>ran and got no further</p>\n");
}

std::string NumberCell(const std::string& text) {
  return absl::StrCat("<td class=\"number\">", text, "</td>");
}

std::string RoundTable(const Timeline& timeline) {
  std::string html =
      "<h2>Rounds</h2>\n<div class=\"wide\"><table><thead><tr><th>round</th>"
      "<th class=\"number\">nodes</th><th class=\"number\">ranks</th><th "
      "class=\"number\">started</th><th class=\"number\">ran for</th><th>ended by</th></tr></thead>"
      "<tbody>\n";
  for (const RoundSpan& round : timeline.rounds) {
    absl::StrAppend(&html,
                    "<tr><td><button type=\"button\" class=\"round\" aria-pressed=\"false\">",
                    round.number, "</button></td>", NumberCell(absl::StrCat(round.nodes)),
                    NumberCell(absl::StrCat(round.world_size)),
                    NumberCell(round.started ? MomentText(*round.started) : "never"),
                    NumberCell(round.started ? DurationText(round.ended - *round.started) : ""),
                    "<td class=\"words\">", HtmlText(round.cause), "</td></tr>\n");
  }
  return html + "</tbody></table></div>\n";
}

// The phases of one restart, to a scale that all restarts share.
std::string PhaseBar(const RestartCost& cost, Offset longest) {
  std::string rects;
  const auto add = [&](const char* phase, Offset from, const std::optional<Offset>& to) {
    if (!to) return;
    absl::StrAppend(&rects, Rect(phase, Share(from - cost.detected, longest),
                                 Share(*to - cost.detected, longest),
                                 absl::StrCat(phase, " ", DurationText(*to - from))));
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

std::string PhaseCells(const RestartCost& cost) {
  const auto cell = [](Offset from, const std::optional<Offset>& to) {
    return NumberCell(to ? DurationText(*to - from) : "");
  };
  return absl::StrCat(NumberCell(MomentText(cost.detected)), cell(cost.detected, cost.stopped),
                      cell(cost.stopped, cost.gathered), cell(cost.gathered, cost.started),
                      cost.started ? cell(*cost.started, cost.progress) : NumberCell(""));
}

std::string RestartTable(const Timeline& timeline) {
  if (timeline.restarts.empty()) return "";
  Offset longest{0};
  for (const RestartCost& cost : timeline.restarts) {
    longest = std::max(longest, EndOf(cost) - cost.detected);
  }
  std::string html =
      "<h2>Cost of each restart</h2>\n<p class=\"faint\"><span class=\"key stopping\"></span>"
      "stopping<span class=\"key gathering\"></span>gathering<span class=\"key starting\"></span>"
      "starting<span class=\"key progress\"></span>to first progress</p>\n<div "
      "class=\"wide\"><table "
      "class=\"bars\"><thead><tr><th>rounds</th><th>phases</th><th "
      "class=\"number\">detected</th><th "
      "class=\"number\">stopping</th><th class=\"number\">gathering</th><th "
      "class=\"number\">starting</th><th class=\"number\">to first progress</th></tr></thead>"
      "<tbody>\n";
  for (const RestartCost& cost : timeline.restarts) {
    absl::StrAppend(&html, "<tr><td>", cost.from, " to ", cost.to, "</td><td class=\"bar\">",
                    PhaseBar(cost, longest), "</td>", PhaseCells(cost), "</tr>\n");
  }
  return html + "</tbody></table></div>\n";
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
  const std::vector<Incident> besides = Besides(timeline);
  if (besides.empty()) return "";
  std::size_t left_out = 0;
  std::string html =
      "<h2>What else happened</h2>\n<div class=\"wide\"><table><thead><tr><th "
      "class=\"number\">moment</th><th class=\"number\">times</th><th>what</th></tr></thead>"
      "<tbody>\n";
  for (const IncidentGroup& group : GroupIncidents(besides, kMostBesidesOnPage, &left_out)) {
    absl::StrAppend(&html, "<tr>", NumberCell(MomentText(group.at)),
                    NumberCell(absl::StrCat(group.count)), "<td class=\"words\">",
                    HtmlText(group.what), "</td></tr>\n");
  }
  absl::StrAppend(&html, "</tbody></table></div>\n");
  if (left_out > 0) absl::StrAppend(&html, "<p class=\"faint\">and ", left_out, " more</p>\n");
  return html;
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
  if (!timeline.rounds.empty()) absl::StrAppend(&html, RoundTable(timeline));
  absl::StrAppend(&html, RestartTable(timeline), Grid(timeline), BesidesTable(timeline),
                  Notes(timeline), "</main>\n");
  if (!timeline.rounds.empty()) {
    absl::StrAppend(&html, "<script type=\"application/json\" id=\"data\">",
                    JsonForHtml(PageData(timeline)), "</script>\n<script>", kPageScript,
                    "</script>\n");
  }
  return html + "</body>\n</html>\n";
}

}  // namespace muster::launcher
