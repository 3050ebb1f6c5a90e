#include "memcg_watch.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "arguments.h"
#include "check.h"
#include "sys_error.h"

namespace evictd {

namespace {

// Marks the objects of this class: V8 checks the receiver of a method, but not that of a getter.
constexpr napi_type_tag kTypeTag = {0x3a5c1d7f90e24b68, 0x8f1e64c02b7da935};

constexpr const char* kArmed = "armed";

constexpr std::array<std::string_view, 4> kKinds = {"usage", "memsw", "oom", "pressure"};
constexpr std::array<std::string_view, 3> kLevels = {"low", "medium", "critical"};
constexpr std::array<std::string_view, 3> kModes = {"default", "local", "hierarchy"};

// What to write to cgroup.event_control: the control file that is watched, and its argument.
struct MemcgEvent {
  const char* file;
  std::string argument;
};

MemcgEvent RequireMemcgEvent(Napi::Value value) {
  const Napi::Object event = RequireObject(value, "event");
  const std::string kind = RequireChoice(event.Get("kind"), "event.kind", kKinds);
  if (kind == "oom") return {"memory.oom_control", ""};
  if (kind == "pressure") {
    std::string argument = RequireChoice(event.Get("level"), "event.level", kLevels);
    const Napi::Value mode = event.Get("mode");
    if (!mode.IsUndefined()) argument += "," + RequireChoice(mode, "event.mode", kModes);
    return {"memory.pressure_level", argument};
  }
  const char* file =
      kind == "usage" ? "memory.usage_in_bytes" : "memory.memsw.usage_in_bytes";
  return {file, std::to_string(RequireByteCount(event.Get("bytes"), "event.bytes"))};
}

bool RequirePersistent(Napi::Value options) {
  if (options.IsUndefined()) return true;
  const Napi::Value persistent = RequireObject(options, "options").Get("persistent");
  return persistent.IsUndefined() || RequireBoolean(persistent, "options.persistent");
}

UniqueFd OpenIn(Napi::Env env, const UniqueFd& directory, const std::string& directory_path,
                const char* file, int access) {
  UniqueFd fd(openat(directory.get(), file, access | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) throw SystemError(env, errno, "open", directory_path + "/" + file);
  return fd;
}

// Opens all that a registration needs. The control files need not stay open after it: the kernel
// holds the cgroup for as long as the eventfd lives, and drops the registration when that is
// closed.
EventRegistration OpenEvent(Napi::Env env, const std::string& directory_path,
                            const MemcgEvent& event) {
  constexpr const char* kEventControl = "cgroup.event_control";
  // Both files are opened in one held directory, so that they belong to one cgroup even if
  // another takes its name at this moment.
  UniqueFd directory(open(directory_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) throw SystemError(env, errno, "open", directory_path);
  UniqueFd watched = OpenIn(env, directory, directory_path, event.file, O_RDONLY);
  UniqueFd control = OpenIn(env, directory, directory_path, kEventControl, O_WRONLY);
  UniqueFd eventfd_owner(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!eventfd_owner.valid()) throw SystemError(env, errno, "eventfd");

  std::string line = std::to_string(eventfd_owner.get()) + " " + std::to_string(watched.get()) +
                     " " + event.argument;
  return {.event = std::make_shared<UniqueFd>(std::move(eventfd_owner)),
          .watched = std::move(watched),
          .control = std::move(control),
          .line = std::move(line),
          .control_path = directory_path + "/" + kEventControl};
}

void Ignore(const Napi::CallbackInfo&) {}

}  // namespace

Napi::Function MemcgWatch::Define(Napi::Env env, RegistrationQueue* registrations) {
  Napi::PropertyDescriptor active = Napi::PropertyDescriptor::Accessor<IsActive>("active");
  return DefineClass(env, "MemcgWatch",
                     {static_cast<napi_property_descriptor&>(active),
                      InstanceMethod<&MemcgWatch::Close>("close")},
                     registrations);
}

MemcgWatch::Parts MemcgWatch::Open(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const std::string directory = RequireAbsolutePath(info[0], "directory");
  const MemcgEvent event = RequireMemcgEvent(info[1]);
  const Napi::Function function = RequireFunction(info[2], "listener");
  const bool persistent = RequirePersistent(info[3]);
  info.This().As<Napi::Object>().TypeTag(&kTypeTag);

  EventRegistration registration = OpenEvent(env, directory, event);
  std::shared_ptr<UniqueFd> eventfd_owner = registration.event;
  auto listener = std::make_shared<Listener>(function, "evictd.MemcgWatch");
  LoopPoll poll(env, eventfd_owner->get());
  if (!persistent) poll.Unref();
  auto* registrations = static_cast<RegistrationQueue*>(info.Data());
  info.This().As<Napi::Object>().DefineProperty(Napi::PropertyDescriptor::Value(
      kArmed, registrations->Add(std::move(registration)), napi_enumerable));
  return {std::move(eventfd_owner), std::move(listener), std::move(poll)};
}

MemcgWatch::MemcgWatch(const Napi::CallbackInfo& info) : MemcgWatch(info, Open(info)) {}

// Nothing may throw once ObjectWrap's constructor has run: in a worker that is being terminated
// the object could not be unwrapped again, and its finalizer would run on freed memory. Hence
// Open() comes first.
MemcgWatch::MemcgWatch(const Napi::CallbackInfo& info, Parts parts)
    : ObjectWrap(info),
      event_(std::move(parts.event)),
      listener_(std::move(parts.listener)),
      poll_(std::move(parts.poll)) {
  poll_.Deliver(this);
  Ref();
}

Napi::Value MemcgWatch::IsActive(const Napi::CallbackInfo& info) {
  const Napi::Value receiver = info.This();
  if (!receiver.IsObject() || !receiver.As<Napi::Object>().CheckTypeTag(&kTypeTag)) {
    throw Napi::TypeError::New(info.Env(), "Illegal invocation");
  }
  return Napi::Boolean::New(info.Env(), Unwrap(receiver.As<Napi::Object>())->poll_.active());
}

void MemcgWatch::Close(const Napi::CallbackInfo& info) {
  if (event_ == nullptr) return;
  poll_.Close();
  event_.reset();
  listener_.reset();
  Unref();
  // Who has closed a watch need not wait for the end of its registration: a failure of that is
  // then no unhandled rejection. Last, since it throws in a worker that is being terminated.
  const Napi::Value armed = info.This().As<Napi::Object>().Get(kArmed);
  armed.As<Napi::Promise>().Catch(Napi::Function::New<Ignore>(info.Env()));
}

void MemcgWatch::OnReadable() noexcept {
  uint64_t count = 0;
  const ssize_t length = read(event_->get(), &count, sizeof(count));
  // Nothing to read is nothing to tell.
  if (length < 0 && errno == EAGAIN) return;
  Check(length == sizeof(count), "MemcgWatch", "an eventfd is read whole");

  const Napi::HandleScope scope(Env());
  // The two that the listener's close() would free.
  const Napi::Object self = Value();
  const std::shared_ptr<Listener> listener = listener_;
  listener->Call(self, {Napi::BigInt::New(Env(), count)});
}

}  // namespace evictd
