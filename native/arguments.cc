#include "arguments.h"

#include <algorithm>
#include <cmath>

namespace evictd {

namespace {

template <typename ErrorType>
[[noreturn]] void ThrowCoded(Napi::Env env, const char* code, const std::string& message) {
  ErrorType error = ErrorType::New(env, message);
  error.Set("code", Napi::String::New(env, code));
  throw error;
}

[[noreturn]] void ThrowWrongType(Napi::Env env, const char* name, const char* type) {
  ThrowCoded<Napi::TypeError>(env, "ERR_INVALID_ARG_TYPE",
                              std::string("\"") + name + "\" must be " + type);
}

[[noreturn]] void ThrowWrongValue(Napi::Env env, const char* name, const std::string& expected) {
  ThrowCoded<Napi::TypeError>(env, "ERR_INVALID_ARG_VALUE",
                              std::string("\"") + name + "\" must be " + expected);
}

[[noreturn]] void ThrowOutOfRange(Napi::Env env, const char* name, const std::string& range) {
  ThrowCoded<Napi::RangeError>(env, "ERR_OUT_OF_RANGE",
                               std::string("\"") + name + "\" must be " + range);
}

std::string RequireString(Napi::Value value, const char* name) {
  if (!value.IsString()) ThrowWrongType(value.Env(), name, "a string");
  return value.As<Napi::String>().Utf8Value();
}

}  // namespace

Napi::Object RequireObject(Napi::Value value, const char* name) {
  if (!value.IsObject()) ThrowWrongType(value.Env(), name, "an object");
  return value.As<Napi::Object>();
}

Napi::Function RequireFunction(Napi::Value value, const char* name) {
  if (!value.IsFunction()) ThrowWrongType(value.Env(), name, "a function");
  return value.As<Napi::Function>();
}

bool RequireBoolean(Napi::Value value, const char* name) {
  if (!value.IsBoolean()) ThrowWrongType(value.Env(), name, "a boolean");
  return value.As<Napi::Boolean>().Value();
}

int32_t RequireInteger(Napi::Value value, const char* name, int32_t minimum, int32_t maximum) {
  if (!value.IsNumber()) ThrowWrongType(value.Env(), name, "a number");
  const double number = value.As<Napi::Number>().DoubleValue();
  // NaN fails the first comparison, infinities one of the other two.
  if (std::trunc(number) != number || number < minimum || number > maximum) {
    const std::string range = std::to_string(minimum) + " to " + std::to_string(maximum);
    ThrowOutOfRange(value.Env(), name, "an integer from " + range);
  }
  return static_cast<int32_t>(number);
}

int64_t RequireByteCount(Napi::Value value, const char* name) {
  if (!value.IsBigInt()) ThrowWrongType(value.Env(), name, "a bigint");
  bool lossless = false;
  const int64_t bytes = value.As<Napi::BigInt>().Int64Value(&lossless);
  if (!lossless || bytes < 0) ThrowOutOfRange(value.Env(), name, "from 0 to 2^63 - 1");
  return bytes;
}

std::string RequireAbsolutePath(Napi::Value value, const char* name) {
  std::string path = RequireString(value, name);
  if (!path.starts_with('/') || path.find('\0') != std::string::npos) {
    ThrowWrongValue(value.Env(), name, "an absolute path without NUL");
  }
  return path;
}

std::string RequireChoice(Napi::Value value, const char* name,
                          std::span<const std::string_view> choices) {
  std::string choice = RequireString(value, name);
  if (std::find(choices.begin(), choices.end(), choice) != choices.end()) return choice;
  std::string expected = "one of";
  for (std::string_view allowed : choices) expected += " '" + std::string(allowed) + "'";
  ThrowWrongValue(value.Env(), name, expected);
}

}  // namespace evictd
