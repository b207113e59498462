/* hyperfleet-driver get, wait and delete: a resource of a driver. Thread: main. */
#include "handlers/cli/client.h"

/* Carries out one step on the resource that is named. */
static enum hfd_exit run(struct hfd_client_command *c, int argc, const char *const *argv,
                         const char *method)
{
    const bool waits = strcmp(c->name, "wait") == 0;
    struct hfd_client_step step = {.request = {.method = method}};
    enum hfd_exit status;

    if (!hfd_client_command_read(c, argc, argv, &status))
        return status;
    step.request.id = c->place;
    step.follow = c->wait || waits;
    if (hfd_client_command_open(c, &status))
        status = hfd_client_command_run(c, &step);
    hfd_client_command_close(c);
    return status;
}

enum hfd_exit hfd_cmd_get(int argc, const char *const *argv)
{
    struct hfd_client_command c = {
        .name = "get", .usage = "get GURESID [FLAGS]", .example = "get 3c0a194814284345 -o yaml"};

    return run(&c, argc, argv, "GET");
}

enum hfd_exit hfd_cmd_wait(int argc, const char *const *argv)
{
    struct hfd_client_command c = {.name = "wait",
                                   .usage = "wait GURESID [FLAGS]",
                                   .example = "wait 3c0a194814284345 --timeout 30m"};

    return run(&c, argc, argv, "GET");
}

enum hfd_exit hfd_cmd_delete(int argc, const char *const *argv)
{
    struct hfd_client_command c = {.name = "delete",
                                   .usage = "delete GURESID [FLAGS]",
                                   .example = "delete 3c0a194814284345 --wait"};

    return run(&c, argc, argv, "DELETE");
}
