/* The rules that hold for every answer: documents, hints, errors and cookies. Thread: main. */
#ifndef HFD_CLIENT_CHECK_ANSWER_H
#define HFD_CLIENT_CHECK_ANSWER_H

#include "handlers/client/check_int.h"

/** Judges an answer by them. */
void hfd_check_answer(struct hfd_check *k, const struct hfd_check_ask *ask,
                      const struct hfd_check_answer *a);

#endif
