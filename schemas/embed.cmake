# cmake -DIN=FILE -DNAME=IDENTIFIER -DOUT=FILE -P embed.cmake
# Writes a file's bytes as a C array. Needs CMake only.
file(READ ${IN} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n    " lines "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${lines}")
get_filename_component(file ${IN} NAME)
file(WRITE ${OUT} "/* Made from schemas/${file}. */
#include <stddef.h>

extern const unsigned char ${NAME}[];
extern const size_t ${NAME}_len;

const unsigned char ${NAME}[] = {
    ${bytes}
};
const size_t ${NAME}_len = ${size};
")
