# The Debian package: ./dev package, or `cpack` in the folder of the build. It is built where it is
# to run, because its dependencies are those of the libraries there.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hyperfleet-driver)
set(CPACK_PACKAGE_HOMEPAGE_URL ${PROJECT_HOMEPAGE_URL})
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Humanitec driver for HyperFleet clusters and nodepools")
set(CPACK_SET_DESTDIR ON) # files outside the prefix: /etc
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ
  GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_BINARY_DIR}/finish.cmake)
configure_file(deb/finish.cmake finish.cmake @ONLY)

set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER
  "hyperfleet-driver maintainers <maintainers@hyperfleet-driver.example>")
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "adduser, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS python3) # hyperfleet-driver-check
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
  "A platform orchestrator orders Kubernetes clusters and nodepools through it:
PUT, GET and DELETE of the Humanitec Driver API 0.9.3. Each order is a
HyperFleet cluster with its nodepools, in an embedded HyperFleet with a
durable store, or in one that runs elsewhere. A built-in adapter makes the
clusters through HyperShift.
.
The package has the server with its systemd unit, the client commands, the
manual, completion for bash, zsh and fish, a Helm chart, alerts, a dashboard,
and modules for OpenTofu. With python3 it also has hyperfleet-driver-check,
which tries any Humanitec driver.")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA)
foreach(file conffiles postinst prerm postrm)
  list(APPEND CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_SOURCE_DIR}/deb/${file})
endforeach()
file(STRINGS deb/changelog CHANGES LIMIT_COUNT 1)
if(NOT CHANGES MATCHES "\\(${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}\\)")
  message(FATAL_ERROR "docker/deb/changelog has no entry for "
    "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
endif()
include(CPack)
