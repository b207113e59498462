# Makes a tree that is installed into one of a Debian package: settings in /etc, a copyright file, a
# changelog, compressed texts. CPack runs it before it packs.
set(tree ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
set(source "@CMAKE_CURRENT_SOURCE_DIR@/deb")
set(doc ${tree}/usr/share/doc/hyperfleet-driver)

file(MAKE_DIRECTORY ${tree}/etc/hyperfleet-driver)
file(RENAME ${tree}/usr/share/hyperfleet-driver/hyperfleet-driver.yaml
  ${tree}/etc/hyperfleet-driver/hyperfleet-driver.yaml)
file(REMOVE ${doc}/LICENSE) # the copyright file names Debian's copy
execute_process(COMMAND "@CMAKE_STRIP@" --strip-all -R .comment -R .note
  ${tree}/usr/bin/hyperfleet-driver COMMAND_ERROR_IS_FATAL ANY)
file(MAKE_DIRECTORY ${tree}/usr/share/lintian/overrides)
file(COPY_FILE ${source}/lintian-overrides ${tree}/usr/share/lintian/overrides/hyperfleet-driver)
file(COPY_FILE ${source}/copyright ${doc}/copyright)
file(COPY_FILE ${source}/changelog ${doc}/changelog.Debian)
file(COPY_FILE ${doc}/CHANGELOG.md ${doc}/changelog)
foreach(name changelog changelog.Debian)
  execute_process(COMMAND gzip -9n ${doc}/${name} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND chmod -R u=rwX,go=rX ${tree} COMMAND_ERROR_IS_FATAL ANY)
