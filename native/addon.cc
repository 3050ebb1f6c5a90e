// Registers what src/native/types.ts declares. All state is per environment: this library may be
// loaded by the main thread and by any number of workers at once.
#include <napi.h>

#include <string>

#include "capabilities.h"
#include "memcg_watch.h"
#include "pidfd.h"
#include "registration_queue.h"
#include "scheduling.h"

#ifndef EVICTD_SANITIZED
#define EVICTD_SANITIZED 0
#endif

namespace evictd {

namespace {

struct EnvironmentData {
  explicit EnvironmentData(Napi::Env env)
      : registrations(env),
        memcg_watch(Napi::Persistent(MemcgWatch::Define(env, &registrations))),
        pidfd(Napi::Persistent(Pidfd::Define(env))) {}

  RegistrationQueue registrations;
  Napi::FunctionReference memcg_watch;
  Napi::FunctionReference pidfd;
};

Napi::Value WatchMemcg(const Napi::CallbackInfo& info) {
  const auto* data = info.Env().GetInstanceData<EnvironmentData>();
  return data->memcg_watch.New({info[0], info[1], info[2], info[3]});
}

Napi::Value OpenPidfd(const Napi::CallbackInfo& info) {
  const auto* data = info.Env().GetInstanceData<EnvironmentData>();
  return data->pidfd.New({info[0]});
}

std::string CompilerVersion() {
#ifdef __clang__
  return "clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__);
#else
  return "gcc " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__);
#endif
}

Napi::Object BuildFacts(Napi::Env env) {
  Napi::Object build = Napi::Object::New(env);
  build.Set("napi", Napi::Number::New(env, NAPI_VERSION));
  build.Set("compiler", Napi::String::New(env, CompilerVersion()));
  build.Set("sanitized", Napi::Boolean::New(env, EVICTD_SANITIZED == 1));
  return build;
}

Napi::Object Register(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new EnvironmentData(env));
  exports.Set("watchMemcg", Napi::Function::New<WatchMemcg>(env, "watchMemcg"));
  exports.Set("openPidfd", Napi::Function::New<OpenPidfd>(env, "openPidfd"));
  exports.Set("setRoundRobin", Napi::Function::New<SetRoundRobin>(env, "setRoundRobin"));
  exports.Set("capabilities", Napi::Function::New<Capabilities>(env, "capabilities"));
  exports.Set("build", BuildFacts(env));
  return exports;
}

}  // namespace

NODE_API_MODULE(evictd, Register)

}  // namespace evictd
