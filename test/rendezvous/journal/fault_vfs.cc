#include "test/rendezvous/journal/fault_vfs.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <new>

#include "test/support/temp_dir.h"

namespace muster::rendezvous::test {
namespace {

std::string BaseName(const char* path) {
  const std::string name = path;
  return name.substr(name.rfind('/') + 1);
}

}  // namespace

// What SQLite takes for its file; the system's own follows it in memory.
struct FaultVfs::File {
  sqlite3_file base;
  FaultVfs* vfs;
  // Nothing for a temporary file, which has no name.
  std::string* name;
  // As SQLite asks for it after an operation that failed.
  int last_errno;

  sqlite3_file* system() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  Durable* durable() { return name == nullptr ? nullptr : &vfs->files_[*name]; }
};

struct FaultVfs::Methods {
  static File& Of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
  static sqlite3_file* System(sqlite3_file* file) { return Of(file).system(); }

  static int Close(sqlite3_file* file) {
    delete Of(file).name;
    return System(file)->pMethods->xClose(System(file));
  }
  static int Read(sqlite3_file* file, void* into, int size, sqlite3_int64 offset) {
    return System(file)->pMethods->xRead(System(file), into, size, offset);
  }
  static int Write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
    const auto fault = Ask(file, Kind::kWrite, static_cast<std::size_t>(size));
    const int to_write = fault ? static_cast<int>(fault->written) : size;
    int result = SQLITE_OK;
    if (to_write > 0) {
      result = System(file)->pMethods->xWrite(System(file), bytes, to_write, offset);
      Record(file, {static_cast<std::size_t>(offset),
                    std::string(static_cast<const char*>(bytes), to_write)});
    }
    return fault ? Fail(file, *fault) : result;
  }
  static int Truncate(sqlite3_file* file, sqlite3_int64 size) {
    if (const auto fault = Ask(file, Kind::kTruncate)) return Fail(file, *fault);
    Record(file, {static_cast<std::size_t>(size), std::nullopt});
    return System(file)->pMethods->xTruncate(System(file), size);
  }
  static int Sync(sqlite3_file* file, int flags) {
    if (const auto fault = Ask(file, Kind::kSync)) return Fail(file, *fault);
    if (Durable* durable = Of(file).durable()) {
      for (const Change& change : durable->unsynced) Apply(change, durable->bytes);
      durable->unsynced.clear();
    }
    // The kernel need not: no test takes the machine's power.
    (void)flags;
    return SQLITE_OK;
  }
  static int FileSize(sqlite3_file* file, sqlite3_int64* size) {
    return System(file)->pMethods->xFileSize(System(file), size);
  }
  static int Lock(sqlite3_file* file, int level) {
    return System(file)->pMethods->xLock(System(file), level);
  }
  static int Unlock(sqlite3_file* file, int level) {
    return System(file)->pMethods->xUnlock(System(file), level);
  }
  static int CheckReservedLock(sqlite3_file* file, int* result) {
    return System(file)->pMethods->xCheckReservedLock(System(file), result);
  }
  static int FileControl(sqlite3_file* file, int operation, void* argument) {
    if (operation == SQLITE_FCNTL_LAST_ERRNO && Of(file).last_errno != 0) {
      *static_cast<int*>(argument) = Of(file).last_errno;
      return SQLITE_OK;
    }
    return System(file)->pMethods->xFileControl(System(file), operation, argument);
  }
  static int SectorSize(sqlite3_file* file) {
    return System(file)->pMethods->xSectorSize(System(file));
  }
  static int DeviceCharacteristics(sqlite3_file* file) {
    return System(file)->pMethods->xDeviceCharacteristics(System(file));
  }

  static int Open(sqlite3_vfs* vfs, const char* path, sqlite3_file* made, int flags, int* out) {
    FaultVfs& self = *static_cast<FaultVfs*>(vfs->pAppData);
    static const sqlite3_io_methods methods = {1,
                                               Close,
                                               Read,
                                               Write,
                                               Truncate,
                                               Sync,
                                               FileSize,
                                               Lock,
                                               Unlock,
                                               CheckReservedLock,
                                               FileControl,
                                               SectorSize,
                                               DeviceCharacteristics};
    File* file = new (made) File{};
    const int result = self.system_->xOpen(self.system_, path, file->system(), flags, out);
    if (result != SQLITE_OK) return result;
    file->base.pMethods = &methods;
    file->vfs = &self;
    if (path == nullptr) return result;
    file->name = new std::string(BaseName(path));
    // What was there before is durable.
    if (!self.files_.contains(*file->name)) {
      self.files_[*file->name].bytes = muster::test::ReadAll(path);
    }
    return result;
  }
  static int Delete(sqlite3_vfs* vfs, const char* path, int sync_directory) {
    FaultVfs& self = *static_cast<FaultVfs*>(vfs->pAppData);
    if (const auto fault = self.Ask(Kind::kDelete, BaseName(path))) return fault->result;
    self.files_.erase(BaseName(path));
    return self.system_->xDelete(self.system_, path, sync_directory);
  }

  static std::optional<Fault> Ask(sqlite3_file* file, Kind kind, std::size_t size = 0) {
    if (Of(file).name == nullptr) return std::nullopt;
    return Of(file).vfs->Ask(kind, *Of(file).name, size);
  }
  static void Record(sqlite3_file* file, Change change) {
    if (Durable* durable = Of(file).durable()) durable->unsynced.push_back(std::move(change));
  }
  static int Fail(sqlite3_file* file, const Fault& fault) {
    if (fault.kill) ::kill(::getpid(), SIGKILL);
    Of(file).last_errno = fault.system_errno;
    return fault.result;
  }
};

FaultVfs::FaultVfs() : system_(sqlite3_vfs_find(nullptr)) {
  vfs_ = *system_;
  vfs_.szOsFile = static_cast<int>(sizeof(File)) + system_->szOsFile;
  vfs_.pNext = nullptr;
  vfs_.zName = kName;
  vfs_.pAppData = this;
  vfs_.xOpen = Methods::Open;
  vfs_.xDelete = Methods::Delete;
  sqlite3_vfs_register(&vfs_, /*makeDflt=*/0);
}

FaultVfs::~FaultVfs() {
  sqlite3_vfs_unregister(&vfs_);
}

std::optional<FaultVfs::Fault> FaultVfs::Ask(Kind kind, const std::string& file, std::size_t size) {
  return before ? before({kind, file, size}) : std::nullopt;
}

void FaultVfs::Apply(const Change& change, std::string& bytes) {
  if (!change.bytes.has_value()) {
    bytes.resize(change.offset);
    return;
  }
  const std::size_t end = change.offset + change.bytes->size();
  if (bytes.size() < end) bytes.resize(end);
  std::copy(change.bytes->begin(), change.bytes->end(),
            bytes.begin() + static_cast<std::ptrdiff_t>(change.offset));
}

void FaultVfs::WritePowerFailure(const std::string& directory, double chance,
                                 std::mt19937& random) const {
  constexpr std::size_t kSector = 512;
  std::bernoulli_distribution is_there(chance);
  for (const auto& [name, durable] : files_) {
    std::string bytes = durable.bytes;
    for (const Change& change : durable.unsynced) {
      if (!change.bytes.has_value()) {
        if (is_there(random)) Apply(change, bytes);
        continue;
      }
      const std::size_t end = change.offset + change.bytes->size();
      for (std::size_t at = change.offset; at < end;) {
        const std::size_t next = std::min(end, (at / kSector + 1) * kSector);
        if (is_there(random)) {
          Apply({at, change.bytes->substr(at - change.offset, next - at)}, bytes);
        }
        at = next;
      }
    }
    std::ofstream(directory + "/" + name, std::ios::binary) << bytes;
  }
}

}  // namespace muster::rendezvous::test
