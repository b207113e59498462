# cmake -DDIR=<folder of NNNN_name.sql> -DOUT=<file.c> -P embed.cmake Writes the migrations as C
# arrays, in their order. The numbers run 0001, 0002, ... without a gap, as the schema version
# counts them. With -DMORE=<folder> further ones follow, in the order of their names: tests make a
# newer program so.
set(FIRST_MARKED 20) # from here on a file says if it expands or contracts
file(GLOB FILES ${DIR}/*.sql)
list(SORT FILES)
if(MORE)
  file(GLOB more ${MORE}/*.sql)
  list(SORT more)
  list(APPEND FILES ${more})
endif()
set(expected 0)
set(arrays "")
set(table "")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME_WE)
  math(EXPR expected "${expected} + 1")
  get_filename_component(folder ${file} DIRECTORY)
  if(folder STREQUAL DIR)
    if(NOT name MATCHES "^([0-9][0-9][0-9][0-9])_[a-z0-9_]+$")
      message(FATAL_ERROR "${file}: a migration is called NNNN_name.sql")
    endif()
    math(EXPR number "1${CMAKE_MATCH_1} - 10000") # leading zeros
    if(NOT number EQUAL expected)
      message(FATAL_ERROR "${file}: the next number is ${expected}")
    endif()
  endif()
  set(number ${expected})
  set(contracts false)
  file(STRINGS ${file} marks REGEX "^-- (expands|contracts):")
  if(marks MATCHES "^-- contracts:")
    set(contracts true)
  elseif(NOT marks AND NOT number LESS FIRST_MARKED)
    message(FATAL_ERROR "${file}: the first line says \"-- expands: WHAT\" if programs of the "
      "version before can go on beside it, else \"-- contracts: WHAT\" (README.md)")
  endif()
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  string(APPEND arrays "static const char sql_${number}[] = {\n${hex}0};\n\n")
  if(name MATCHES "_filled$") # the program gives rows their checksums
    string(APPEND table "    {\"${name}\", sql_${number}, hfd_rows_fill, ${contracts}},\n")
  else()
    string(APPEND table "    {\"${name}\", sql_${number}, NULL, ${contracts}},\n")
  endif()
endforeach()
if(expected EQUAL 0)
  message(FATAL_ERROR "no migrations in ${DIR}")
endif()
file(WRITE ${OUT} "/* Made by store/migrations/embed.cmake: change the .sql files instead. */
#include \"store/migrate.h\"
#include \"store/row_walk.h\"

${arrays}const struct hfd_migration hfd_migrations[] = {
${table}};
const size_t hfd_migrations_count = sizeof(hfd_migrations) / sizeof(hfd_migrations[0]);
")
