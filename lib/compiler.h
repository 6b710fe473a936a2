/* Compiler attributes, the only place they are spelled. */
#ifndef NPG_LIB_COMPILER_H
#define NPG_LIB_COMPILER_H

#define NPG_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define NPG_MUST_CHECK        __attribute__((warn_unused_result))
#define NPG_NORETURN          __attribute__((noreturn))
#define NPG_UNUSED            __attribute__((unused))
#define NPG_EXPORT            __attribute__((visibility("default")))
#define NPG_NOINLINE          __attribute__((noinline))
#define NPG_CONSTRUCTOR       __attribute__((constructor))
#define NPG_LIKELY(x)         __builtin_expect(!!(x), 1)
#define NPG_UNLIKELY(x)       __builtin_expect(!!(x), 0)
#define NPG_ARRAY_SIZE(a)     (sizeof(a) / sizeof((a)[0]))

#endif
