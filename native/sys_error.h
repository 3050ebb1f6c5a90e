#ifndef EVICTD_SYS_ERROR_H_
#define EVICTD_SYS_ERROR_H_

#include <napi.h>

#include <string>

namespace evictd {

// "ENOENT" for ENOENT, by libuv's table, so that codes are spelled as in Node's own errors.
std::string ErrorCode(int error_number);

// The Error for a failed system call: code, errno (negative), syscall and, unless it is empty,
// path, with the message that Node would give. It is returned, not thrown, since promises are
// rejected with it too. Call it before anything that may change errno.
Napi::Error SystemError(Napi::Env env, int error_number, const char* syscall,
                        const std::string& path = std::string());

}  // namespace evictd

#endif  // EVICTD_SYS_ERROR_H_
