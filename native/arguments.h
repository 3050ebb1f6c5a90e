#ifndef EVICTD_ARGUMENTS_H_
#define EVICTD_ARGUMENTS_H_

#include <napi.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace evictd {

// Checks of what JavaScript passes. Each returns the value in C++ or throws a TypeError or a
// RangeError with one of Node's codes (ERR_INVALID_ARG_TYPE, ERR_INVALID_ARG_VALUE,
// ERR_OUT_OF_RANGE). `name` is the name of the argument in src/native/types.ts.

Napi::Object RequireObject(Napi::Value value, const char* name);
Napi::Function RequireFunction(Napi::Value value, const char* name);
bool RequireBoolean(Napi::Value value, const char* name);
// A whole number from `minimum` to `maximum`, both included.
int32_t RequireInteger(Napi::Value value, const char* name, int32_t minimum, int32_t maximum);
// A BigInt from 0 to 2^63 - 1: what the kernel parses and compares as a signed 64-bit number.
int64_t RequireByteCount(Napi::Value value, const char* name);
// A string without NUL, which the kernel would take for the end, that starts at the root: a
// relative path would depend on the working directory of the moment.
std::string RequireAbsolutePath(Napi::Value value, const char* name);
// One of `choices`.
std::string RequireChoice(Napi::Value value, const char* name,
                          std::span<const std::string_view> choices);

}  // namespace evictd

#endif  // EVICTD_ARGUMENTS_H_
