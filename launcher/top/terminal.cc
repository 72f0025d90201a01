#include "launcher/top/terminal.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

// ncurses' macros have the names of common functions.
#define NCURSES_NOMACROS
#include <curses.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/safe_text.h"

// From <term.h>, which defines macros "lines" and "columns".
extern "C" int setupterm(const char* term, int fd, int* found);

namespace muster::launcher {
namespace {

// How long ncurses waits after an ESC for the rest of a key sequence: a slow connection may delay
// it. Nothing else waits.
constexpr int kEscapeMs = 25;

absl::Status Unusable(absl::string_view why) {
  return absl::FailedPreconditionError(why);
}

// Checks what ncurses needs; without it newterm() would exit the process.
absl::Status LookAtTerminal() {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
    return Unusable("stdin and stdout have to be a terminal");
  }
  const char* const name = std::getenv("TERM");
  if (name == nullptr || *name == '\0') {
    return Unusable("the variable TERM is not set");
  }
  int found = 0;
  if (::setupterm(name, STDOUT_FILENO, &found) != OK && found < 0) {
    return Unusable("this machine has no terminfo database (package ncurses-base)");
  }
  if (found == 0) {
    return Unusable(
        absl::StrCat("terminfo has no entry for TERM=", name, ", or one without a cursor"));
  }
  const char* const move = ::tigetstr("cup");
  const bool can_draw = move != nullptr && move != reinterpret_cast<const char*>(-1);
  if (!can_draw)
    return Unusable(absl::StrCat("a terminal of TERM=", name, " has no cursor to move"));
  return absl::OkStatus();
}

Key KeyOf(int code) {
  using enum Key::Kind;
  constexpr std::pair<int, Key::Kind> kCodes[] = {
      {KEY_UP, kUp},     {KEY_DOWN, kDown}, {KEY_LEFT, kLeft},    {KEY_RIGHT, kRight},
      {KEY_HOME, kHome}, {KEY_END, kEnd},   {KEY_PPAGE, kPageUp}, {KEY_NPAGE, kPageDown},
      {'\r', kEnter},    {'\n', kEnter},    {KEY_ENTER, kEnter},  {'\t', kTab},
      {'\x1b', kEscape}};
  for (const auto& [known, kind] : kCodes) {
    if (known == code) return {kind};
  }
  if (code >= ' ' && code < 0x7f) return {kCharacter, static_cast<char>(code)};
  return {kOther};
}

// A descriptor that becomes readable when stdin does. The loop must not own stdin itself, as it
// would make the open file nonblocking, which stdout and the shell share.
int InputReadiness() {
  const int readiness = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event readable = {};
  readable.events = EPOLLIN;
  ::epoll_ctl(readiness, EPOLL_CTL_ADD, STDIN_FILENO, &readable);
  return readiness;
}

// Whether stdin is readable but empty: then it stays so for good.
bool IsGone() {
  pollfd terminal = {STDIN_FILENO, POLLIN, 0};
  if (::poll(&terminal, 1, 0) <= 0) return false;
  int bytes = 0;
  return (terminal.revents & (POLLHUP | POLLERR)) != 0 ||
         ::ioctl(STDIN_FILENO, FIONREAD, &bytes) != 0 || bytes == 0;
}

// Defines a colour pair for each coloured tone, by its number.
void MakeColours() {
  using enum Style::Tone;
  ::start_color();
  // The terminal's default background; black if it has none.
  const short background = ::use_default_colors() == OK ? short{-1} : short{COLOR_BLACK};
  ::init_pair(static_cast<short>(kGood), COLOR_GREEN, background);
  ::init_pair(static_cast<short>(kBusy), COLOR_YELLOW, background);
  ::init_pair(static_cast<short>(kBad), COLOR_RED, background);
}

attr_t AttributesOf(const Style& style, bool has_colours) {
  attr_t attributes = A_NORMAL;
  if (style.bold) attributes |= A_BOLD;
  if (style.reverse) attributes |= A_REVERSE;
  if (style.tone == Style::Tone::kFaint) {
    attributes |= A_DIM;
  } else if (has_colours && style.tone != Style::Tone::kPlain) {
    attributes |= COLOR_PAIR(static_cast<int>(style.tone));
  }
  return attributes;
}

// Replaces characters that the locale cannot show.
std::string Showable(const std::string& given) {
  const std::string text = base::SafeLine(given);
  if (MB_CUR_MAX > 1) return text;
  std::string shown;
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    if (value < 0x80) shown += byte;
    if (value >= 0xC0) shown += '?';
  }
  return shown;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Terminal>> Terminal::Open(boost::asio::io_context& io,
                                                         Listener listener) {
  if (const absl::Status status = LookAtTerminal(); !status.ok()) return status;
  return std::unique_ptr<Terminal>(new Terminal(io, std::move(listener)));
}

// signals_ is set up first: ncurses installs handlers for signals that have none.
Terminal::Terminal(boost::asio::io_context& io, Listener listener)
    : listener_(std::move(listener)),
      input_(io, InputReadiness()),
      signals_(io, SIGWINCH, SIGTSTP) {
  std::setlocale(LC_ALL, "");
  ::set_escdelay(kEscapeMs);
  ::newterm(nullptr, stdout, stdin);
  const char* const no_colour = std::getenv("NO_COLOR");
  has_colours_ = ::has_colors() && (no_colour == nullptr || *no_colour == '\0');
  if (has_colours_) MakeColours();
  ::cbreak();
  ::noecho();
  ::nonl();
  ::nodelay(::stdscr, TRUE);
  ::keypad(::stdscr, TRUE);
  AwaitInput();
  AwaitSignal();
}

Terminal::~Terminal() {
  ::endwin();
}

ScreenSize Terminal::size() const {
  return {.columns = ::getmaxx(::stdscr), .rows = ::getmaxy(::stdscr)};
}

void Terminal::Draw(const Screen& screen) {
  ::werase(::stdscr);
  int row = 0;
  for (const ScreenLine& line : screen.lines) {
    ::wmove(::stdscr, row++, 0);
    for (const Span& span : line) {
      ::wattrset(::stdscr, static_cast<int>(AttributesOf(span.style, has_colours_)));
      ::waddstr(::stdscr, Showable(span.text).c_str());
    }
  }
  ::wattrset(::stdscr, A_NORMAL);
  ::curs_set(screen.cursor ? 1 : 0);
  if (screen.cursor) ::wmove(::stdscr, screen.cursor->row, screen.cursor->column);
  ::wrefresh(::stdscr);
}

void Terminal::AwaitInput() {
  input_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [this](const boost::system::error_code& error) {
                      if (!error) ReadKeys();
                    });
}

void Terminal::ReadKeys() {
  bool has_read = false;
  for (int code = ::wgetch(::stdscr); code != ERR; code = ::wgetch(::stdscr)) {
    has_read = true;
    if (code != KEY_RESIZE) listener_.on_key(KeyOf(code));
  }
  if (!has_read && IsGone()) return listener_.on_gone();
  AwaitInput();
}

void Terminal::AwaitSignal() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    AwaitSignal();
    signal == SIGWINCH ? Resize() : Suspend();
  });
}

void Terminal::Resize() {
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
    ::resizeterm(size.ws_row, size.ws_col);
  }
  // Redraw everything, as the terminal may have changed the contents.
  ::clearok(::stdscr, TRUE);
  listener_.on_change();
}

void Terminal::Suspend() {
  ::endwin();
  // The default action of Ctrl-Z.
  ::kill(::getpid(), SIGSTOP);
  // After SIGCONT: the next drawing takes the terminal again.
  Resize();
}

}  // namespace muster::launcher
