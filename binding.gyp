{
  'variables': {
    # Warnings are errors in this project's own builds only: a compiler that is newer than the
    # release must not break an installation.
    'werror%': '<!(node -p "Number(process.env.EVICTD_WERROR === \'1\')")',
    # Set by scripts/sanitize.mjs, which builds in a directory of its own.
    'sanitize%': 0,
  },
  # What both targets have: the language, and the builds for development.
  'target_defaults': {
    # What Node's common.gypi sets, and what is to take its place.
    'cflags_cc!': ['-std=gnu++17', '-std=gnu++20'],
    'cflags_cc': ['-std=c++20', '-Wall', '-Wextra', '-fvisibility=hidden'],
    'configurations': {
      'Release': { 'cflags!': ['-O3'], 'cflags': ['-O2'] },
    },
    'conditions': [
      ['werror == 1', { 'cflags_cc': ['-Werror'] }],
      ['sanitize == 1', {
        'defines': ['EVICTD_SANITIZED=1'],
        'cflags_cc': [
          '-g',
          '-fsanitize=address,undefined',
          '-fno-sanitize-recover=undefined',
          '-fno-omit-frame-pointer',
        ],
        'ldflags': ['-fsanitize=address,undefined'],
      }],
    ],
  },
  'targets': [
    {
      'target_name': 'evictd',
      'conditions': [
        ['OS != "linux"', { 'type': 'none' }, {
          'sources': [
            'native/addon.cc',
            'native/arguments.cc',
            'native/capabilities.cc',
            'native/listener.cc',
            'native/loop_poll.cc',
            'native/memcg_watch.cc',
            'native/pidfd.cc',
            'native/scheduling.cc',
            'native/sys_error.cc',
          ],
          'dependencies': [
            '<!(node -p "require(\'node-addon-api\').targets"):node_addon_api_except_all',
          ],
          'defines': [
            'NAPI_VERSION=9',
            # In a worker that is being terminated no exception can be thrown any more; without
            # this node-addon-api ends the whole process when it tries.
            'NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS',
          ],
          'cflags_cc!': ['-fno-exceptions'],
        }],
      ],
    },
    {
      # The filesystem helper: a program of its own that needs the C library and nothing else.
      'target_name': 'evictd-fs',
      'conditions': [
        ['OS != "linux"', { 'type': 'none' }, {
          'type': 'executable',
          'sources': ['native/filesystem_helper.cc'],
          'ldflags!': ['-rdynamic'],
          'ldflags': ['-Wl,--as-needed'],
        }],
      ],
    },
    {
      # The walk over directories: the same, and the C++ library.
      'target_name': 'evictd-walk',
      'conditions': [
        ['OS != "linux"', { 'type': 'none' }, {
          'type': 'executable',
          'sources': ['native/disk_walk.cc'],
          'ldflags!': ['-rdynamic'],
          'ldflags': ['-Wl,--as-needed'],
        }],
      ],
    },
  ],
}
