/*
 * Calls that no file of ours makes: unbounded string copies and hidden static state. Included by
 * the compiler's command line (-include), so forgetting it is not possible.
 */
#ifndef NPG_LIB_BANNED_H
#define NPG_LIB_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#undef sprintf
#undef vsprintf
#undef strcpy
#undef strcat
#pragma GCC poison strcpy strcat sprintf vsprintf strtok gets tmpnam mktemp atoi atol asctime ctime

#endif
