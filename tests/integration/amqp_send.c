/*
 * Sends events by the sender for RabbitMQ. Each line of the input is a JSON array of events; one
 * line of output says what became of them.
 *
 *   amqp_send URL CLUSTER-EXCHANGE NODEPOOL-EXCHANGE [PASSWORD-FILE [CA-FILE]]
 */
#include "driver/base/jsonx.h"
#include "driver/events/amqp.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static hfd_slice text_in(const json_t *event, const char *key)
{
    const json_t *v = json_object_get(event, key);

    return (hfd_slice){json_string_value(v), json_string_length(v)};
}

static int send_line(const struct hfd_sender *sender, const char *line)
{
    json_t *list = json_loads(line, 0, NULL), *sent = json_array(), *answer;
    const size_t count = json_array_size(list);
    struct hfd_outgoing *events = calloc(count + 1, sizeof(*events));
    struct hfd_err err = {0};
    int64_t begun_us;
    hfd_rc rc;
    int failed;

    if (!json_is_array(list) || events == NULL)
        return 1;
    for (size_t i = 0; i < count; i++) {
        const json_t *e = json_array_get(list, i);

        events[i] = (struct hfd_outgoing){.id = text_in(e, "id"),
                                          .subject = text_in(e, "subject"),
                                          .body = text_in(e, "body"),
                                          .kind = hfd_slice_is(text_in(e, "kind"), "NodePool")
                                                      ? HFD_KIND_NODEPOOL
                                                      : HFD_KIND_CLUSTER,
                                          .sent = true};
    }
    begun_us = hfd_clock_mono_us(&hfd_clock_system);
    rc = sender->send(sender->ctx, events, count, &err);
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(sent, json_boolean(events[i].sent));
    answer =
        json_pack("{s:s, s:s, s:o, s:I}", "rc", hfd_rc_name(rc), "words", err.msg, "sent", sent,
                  "ms", (json_int_t)(hfd_clock_mono_us(&hfd_clock_system) - begun_us) / 1000);
    failed = json_dumpf(answer, stdout, JSON_COMPACT);
    failed |= putchar('\n') == EOF || fflush(stdout) != 0;
    json_decref(answer);
    json_decref(list);
    free(events);
    return failed;
}

int main(int argc, char **argv)
{
    struct hfd_amqp_place place = {.password_file = argc > 4 && argv[4][0] != '\0' ? argv[4] : NULL,
                                   .ca_file = argc > 5 ? argv[5] : NULL};
    struct hfd_sender sender;
    struct hfd_err err;
    char *line = NULL;
    size_t size = 0;
    int failed = 0;

    (void)signal(SIGPIPE, SIG_IGN);
    if (argc < 4 || hfd_amqp_url_parse(hfd_slice_of(argv[1]), &place.url, &err) != HFD_OK)
        return 2;
    place.exchanges[HFD_KIND_CLUSTER] = hfd_slice_of(argv[2]);
    place.exchanges[HFD_KIND_NODEPOOL] = hfd_slice_of(argv[3]);
    if (hfd_amqp_open(&place, &sender, &err) != HFD_OK)
        return 1;
    while (failed == 0 && getline(&line, &size, stdin) > 0)
        failed = send_line(&sender, line);
    free(line);
    sender.close(sender.ctx);
    return failed;
}
