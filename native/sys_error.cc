#include "sys_error.h"

#include <uv.h>

#include <array>

namespace evictd {

namespace {

// Longer than any name or text in libuv's table; what does not fit is cut.
constexpr size_t kTextBytesMax = 128;

}  // namespace

std::string ErrorCode(int error_number) {
  std::array<char, kTextBytesMax> name;
  return uv_err_name_r(-error_number, name.data(), name.size());
}

Napi::Error SystemError(Napi::Env env, int error_number, const char* syscall,
                        const std::string& path) {
  std::array<char, kTextBytesMax> text;
  const std::string code = ErrorCode(error_number);
  std::string message = code + ": ";
  message += uv_strerror_r(-error_number, text.data(), text.size());
  message += std::string(", ") + syscall;
  if (!path.empty()) message += " '" + path + "'";

  Napi::Error error = Napi::Error::New(env, message);
  error.Set("code", Napi::String::New(env, code));
  error.Set("errno", Napi::Number::New(env, -error_number));
  error.Set("syscall", Napi::String::New(env, syscall));
  if (!path.empty()) error.Set("path", Napi::String::New(env, path));
  return error;
}

}  // namespace evictd
