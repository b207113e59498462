/*
 * The build includes this header in every file of ours. A function that has no safe use does not
 * compile.
 */
#ifndef HFD_BASE_BANNED_H
#define HFD_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HFD_BANNED_(f) hfd_banned_##f##_use_something_else
#undef strcpy
#define strcpy(...) HFD_BANNED_(strcpy)
#undef strcat
#define strcat(...) HFD_BANNED_(strcat)
#undef sprintf
#define sprintf(...) HFD_BANNED_(sprintf)
#undef vsprintf
#define vsprintf(...) HFD_BANNED_(vsprintf)
#undef strncpy
#define strncpy(...) HFD_BANNED_(strncpy)
#undef strncat
#define strncat(...) HFD_BANNED_(strncat)
#undef strtok
#define strtok(...) HFD_BANNED_(strtok)
#undef gmtime
#define gmtime(...) HFD_BANNED_(gmtime)
#undef localtime
#define localtime(...) HFD_BANNED_(localtime)
#undef atoi
#define atoi(...) HFD_BANNED_(atoi)
#undef atol
#define atol(...) HFD_BANNED_(atol)
#undef alloca
#define alloca(...) HFD_BANNED_(alloca)
#undef rand
#define rand(...) HFD_BANNED_(rand)
#undef system
#define system(...) HFD_BANNED_(system)

#endif
