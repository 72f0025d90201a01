#include "rendezvous/confine.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

#include "base/failure.h"
#include "base/unique_fd.h"

namespace muster::rendezvous {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "the architecture's name for seccomp is missing here"
#endif

// Calls without a use here.
constexpr int kRefused[] = {
    // Other programs, and other processes' insides.
    SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev,
    SYS_pidfd_getfd, SYS_kcmp, SYS_process_madvise, SYS_personality,
    // The machine.
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_move_mount, SYS_open_tree, SYS_fsopen,
    SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr, SYS_swapon, SYS_swapoff, SYS_reboot,
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_acct, SYS_quotactl,
    SYS_sethostname, SYS_setdomainname, SYS_clock_settime, SYS_settimeofday, SYS_adjtimex,
    SYS_clock_adjtime, SYS_syslog, SYS_vhangup,
    // Parts of the kernel that are large, and were often the way in.
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_io_uring_enter,
    SYS_io_uring_register, SYS_add_key, SYS_request_key, SYS_keyctl, SYS_unshare, SYS_setns,
    SYS_fanotify_init, SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_lookup_dcookie,
    SYS_migrate_pages, SYS_move_pages, SYS_mbind, SYS_set_mempolicy,
    // Who the process is.
    SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setfsuid,
    SYS_setfsgid, SYS_setgroups, SYS_capset};

constexpr int kFamilies[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

sock_filter Load(std::uint32_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset);
}
sock_filter Return(std::uint32_t what) {
  return BPF_STMT(BPF_RET | BPF_K, what);
}
// Goes on with the next instruction if what was loaded is `value`, else skips it.
sock_filter UnlessSkip(std::uint32_t value) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
}

std::vector<sock_filter> Filter() {
  constexpr std::uint32_t kEperm = SECCOMP_RET_ERRNO | EPERM;
  std::vector<sock_filter> filter = {
    Load(offsetof(seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
    Return(SECCOMP_RET_KILL_PROCESS),
    Load(offsetof(seccomp_data, nr)),
#if defined(__x86_64__)
    // A call that a tracer has already answered has no number any more.
    UnlessSkip(0xffffffff),
    Return(SECCOMP_RET_ALLOW),
    // The numbers of the x32 convention.
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
    Return(SECCOMP_RET_KILL_PROCESS),
#endif
  };
  for (const int call : kRefused) {
    filter.push_back(UnlessSkip(static_cast<std::uint32_t>(call)));
    filter.push_back(Return(kEperm));
  }
  // socket(): of these families alone. Each is a comparison and the way out.
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0));
  filter.push_back(Return(SECCOMP_RET_ALLOW));
  // A family is an int, and the low half of what the register holds.
  filter.push_back(Load(offsetof(seccomp_data, args)));
  for (const int family : kFamilies) {
    filter.push_back(UnlessSkip(static_cast<std::uint32_t>(family)));
    filter.push_back(Return(SECCOMP_RET_ALLOW));
  }
  filter.push_back(Return(kEperm));
  return filter;
}

bool RefuseCalls() {
  std::vector<sock_filter> filter = Filter();
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

// Rights of the first version of Landlock (Linux 5.13); later ones are added where the kernel knows
// them.
constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kWrite = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |
                                 LANDLOCK_ACCESS_FS_MAKE_REG;
constexpr std::uint64_t kNever = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                                 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                 LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
constexpr std::uint64_t kTruncate = 1 << 14;  // the third version's, newer than Debian 12's header
constexpr std::uint64_t kOfFiles =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;

void Permit(int rules, const std::string& path, std::uint64_t rights) {
  const base::UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat file = {};
  // What is not there need not be reached.
  if (fd.get() < 0 || ::fstat(fd.get(), &file) != 0) return;
  if (!S_ISDIR(file.st_mode)) rights &= kOfFiles;
  const landlock_path_beneath_attr rule = {rights, fd.get()};
  ::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

bool LockLand(const Confinement& confinement) {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return false;
  const std::uint64_t write = version >= 3 ? kWrite | kTruncate : kWrite;
  landlock_ruleset_attr attributes = {};
  attributes.handled_access_fs = kRead | write | kNever;
  const base::UniqueFd rules(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0)));
  if (rules.get() < 0) return false;
  for (const char* path :
       {"/etc", "/usr/lib", "/lib", "/lib64", "/proc/self", "/run/systemd/resolve",
        "/sys/devices/system/cpu", "/dev/null", "/dev/urandom"}) {
    Permit(rules.get(), path, kRead);
  }
  for (const std::string& path : PlacesOfSystemFiles()) Permit(rules.get(), path, kRead);
  for (const std::string& path : confinement.reads) Permit(rules.get(), path, kRead);
  for (const std::string& path : confinement.writes) Permit(rules.get(), path, kRead | write);
  return ::syscall(SYS_landlock_restrict_self, rules.get(), 0) == 0;
}

namespace fs = std::filesystem;

constexpr const char* kFilesOfNames[] = {
    "/etc/resolv.conf", "/etc/hosts",    "/etc/nsswitch.conf", "/etc/gai.conf",
    "/etc/host.conf",   "/etc/services", "/etc/protocols",
};

// As many as the kernel follows.
constexpr int kMostLinks = 40;

// Of "/" and what lies in it.
bool IsAnybodys(const fs::path& folder) {
  return !folder.has_relative_path() || !folder.parent_path().has_relative_path();
}

// Follows a path link by link.
class Walk {
 public:
  explicit Walk(const fs::path& file) {
    std::error_code error;
    Prepend(fs::absolute(file, error));
    int links = 0;
    while (!ahead_.empty() && links <= kMostLinks) links += Step() ? 1 : 0;
    folders_.push_back(at_.parent_path());
  }

  const std::vector<fs::path>& folders() const { return folders_; }
  const fs::path& end() const { return at_; }

 private:
  void Prepend(const fs::path& path) {
    if (path.is_absolute()) at_ = "/";
    const fs::path relative = path.relative_path();
    ahead_.insert(ahead_.begin(), relative.begin(), relative.end());
  }

  // Whether it was a link.
  bool Step() {
    const fs::path name = std::move(ahead_.front());
    ahead_.pop_front();
    if (name.empty() || name == ".") return false;
    if (name == "..") {
      at_ = at_.parent_path();
      return false;
    }
    std::error_code error;
    const fs::path target = fs::read_symlink(at_ / name, error);
    if (error) {
      at_ /= name;
      return false;
    }
    const bool is_beside = !target.has_parent_path();
    if (ahead_.empty() || is_beside) folders_.push_back(at_);
    Prepend(target);
    return true;
  }

  fs::path at_;
  std::deque<fs::path> ahead_;
  std::vector<fs::path> folders_;
};

}  // namespace

std::vector<std::string> Confine(const Confinement& confinement) {
  std::vector<std::string> missing;
  const auto missed = [&](const char* what) {
    missing.push_back(absl::StrCat(what, " (", base::SystemCause(), ")"));
  };
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) missed("no new privileges");
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) missed("no core files");
  if (!LockLand(confinement)) missed("Landlock");
  if (!RefuseCalls()) missed("seccomp");
  return missing;
}

std::vector<std::string> FoldersOf(const std::string& file) {
  const Walk walk{fs::path(file)};
  std::vector<std::string> folders;
  for (const fs::path& folder : walk.folders()) folders.push_back(folder.string());
  return folders;
}

std::vector<std::string> PlacesOfSystemFiles() {
  std::vector<std::string> places = {"/usr/share/zoneinfo"};
  std::vector<std::string> files(std::begin(kFilesOfNames), std::end(kFilesOfNames));
  files.push_back("/etc/localtime");
  if (const char* const zones = std::getenv("TZDIR")) places.push_back(zones);
  if (const char* zone = std::getenv("TZ")) {
    if (*zone == ':') ++zone;
    if (*zone == '/') files.push_back(zone);
  }
  for (const std::string& file : files) {
    const Walk walk{fs::path(file)};
    for (const fs::path& folder : walk.folders()) {
      places.push_back(IsAnybodys(folder) ? walk.end().string() : folder.string());
    }
  }
  return places;
}

std::vector<std::string> UnreadableFilesOfNames() {
  std::vector<std::string> phrases;
  for (const char* const file : kFilesOfNames) {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(file, error))) continue;
    const base::UniqueFd fd(::open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (fd.get() >= 0) continue;
    const std::string cause = base::SystemCause();
    const std::string end = Walk{fs::path(file)}.end().string();
    phrases.push_back(absl::StrCat(file,
                                   end == file ? "" : absl::StrCat(", which leads to ", end, ","),
                                   " cannot be read: ", cause));
  }
  return phrases;
}

}  // namespace muster::rendezvous
