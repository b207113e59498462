/*
 * The outputs of a cluster for its users: its URL, its version, its kubeconfig. Thread: the
 * adapter's.
 */
#ifndef HFD_HYPERSHIFT_OUTPUTS_H
#define HFD_HYPERSHIFT_OUTPUTS_H

#include "driver/adapters/hypershift/work.h"

/**
 * A step: reads the outputs of a HostedCluster that has published them into work->outputs:
 * {endpoint, version, cluster_type, cluster_data, kubeconfig_secret, secrets {kubeconfig,
 * kubeadmin_password, credentials}}.
 * @return DONE also if there are none yet; else how the step ends
 */
enum hfd_step_end hfd_hs_outputs_read(void *work);

/**
 * Takes cluster and user of the current context out of a kubeconfig, for deployments.
 * @param data         gives {server, certificate-authority-data, ...}, or NULL
 * @param credentials  gives {token} or {client-certificate-data, client-key-data}, or NULL
 */
void hfd_hs_kubeconfig_split(hfd_slice kubeconfig, json_t **data, json_t **credentials);

#endif
