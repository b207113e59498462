/* See stellwerk.h. */
#include "handlers/register/stellwerk.h"

#include "handlers/register/hcl.h"

#define PROVIDER "hyperfleet-driver"

static const char head[] =
    "terraform {\n"
    "  required_providers {\n"
    "    platform-orchestrator = {\n"
    "      source = \"stellwerk-labs/platform-orchestrator\"\n"
    "    }\n"
    "  }\n"
    "}\n"
    "\n"
    "variable \"modules\" {\n"
    "  description = \"Where docker/terraform of hyperfleet-driver lies, as "
    "git::https://git.example/hyperfleet-driver.git//docker/terraform\"\n"
    "  type        = string\n"
    "}\n"
    "\n"
    "variable \"modules_ref\" {\n"
    "  description = \"The tag or commit of the modules.\"\n"
    "  type        = string\n"
    "  default     = \"v" HFD_VERSION "\"\n"
    "}\n"
    "\n"
    "variable \"driver_token\" {\n"
    "  description = \"A token of the driver with the scope driver; null if it asks for none.\"\n"
    "  type        = string\n"
    "  default     = null\n"
    "  sensitive   = true\n"
    "}\n"
    "\n"
    "provider \"platform-orchestrator\" {\n";

static const char scope[] = "      scope = [\"$${context.org_id}\", \"$${context.project_id}\", "
                            "\"$${context.env_id}\", \"$${context.res_type}\",\n"
                            "        \"$${context.res_class}\", \"$${context.res_id}\"]\n"
                            "      labels = { app = \"$${context.project_id}\", env = "
                            "\"$${context.env_id}\", resource = \"$${context.res_id}\" }\n";

static const char cluster_params[] =
    "  module_params = {\n"
    "    name      = { type = \"string\", is_optional = true, description = \"Its name.\" }\n"
    "    spec      = { type = \"any\", is_optional = true, description = \"Its specification.\" }\n"
    "    nodepools = { type = \"any\", is_optional = true, description = \"Its nodepools.\" }\n"
    "  }\n";

static const char nodepool_params[] =
    "  module_params = {\n"
    "    name = { type = \"string\", is_optional = true, description = \"Its name.\" }\n"
    "    spec = { type = \"any\", is_optional = true, description = \"Its specification.\" }\n"
    "  }\n";

static void add_provider(struct hfd_buf *b, const struct hfd_register_config *c)
{
    hfd_slice base = hfd_slice_of(c->target);

    while (base.len > 0 && base.p[base.len - 1] == '/')
        base.len--;
    hfd_buf_lit(b, "\nresource \"platform-orchestrator_provider\" \"hyperfleet_driver\" {\n");
    hfd_hcl_line(b, "id", PROVIDER);
    hfd_hcl_line(b, "description", "The URL of hyperfleet-driver");
    hfd_hcl_line(b, "provider_type", "restful");
    hfd_hcl_line(b, "source", "magodo/restful");
    hfd_hcl_line(b, "version_constraint", ">= 0.25.0");
    hfd_buf_addf(b,
                 "  configuration = jsonencode(merge(\n"
                 "    { base_url = \"%.*s\" },\n"
                 "    var.driver_token == null ? {} : {\n"
                 "      security = { http = { token = { token = var.driver_token } } }\n"
                 "    },\n"
                 "  ))\n}\n",
                 HFD_SLICE_FMT(base));
}

/* The outputs of the modules. A text may be null. */
static const char cluster_outputs[] =
    "  output_schema = jsonencode({\n"
    "    type = \"object\"\n"
    "    properties = {\n"
    "      id         = { type = \"string\", title = \"GUResID\" }\n"
    "      name       = { type = [\"string\", \"null\"], title = \"Name\" }\n"
    "      cluster_id = { type = [\"string\", \"null\"], title = \"HyperFleet's id\" }\n"
    "      generation = { type = [\"integer\", \"null\"], title = \"Generation\" }\n"
    "      health     = { type = [\"string\", \"null\"], title = \"Health\" }\n"
    "      nodepools  = { type = \"array\", title = \"Nodepools\" }\n"
    "      endpoint   = { type = [\"string\", \"null\"], title = \"URL of the API server\" }\n"
    "      values     = { type = [\"object\", \"null\"], title = \"All values\" }\n"
    "      kubeconfig = { type = [\"string\", \"null\"], title = \"Kubeconfig\" }\n"
    "      secrets    = { type = [\"object\", \"null\"], title = \"All secrets\" }\n"
    "    }\n"
    "  })\n";

static const char nodepool_outputs[] =
    "  output_schema = jsonencode({\n"
    "    type = \"object\"\n"
    "    properties = {\n"
    "      id          = { type = \"string\", title = \"GUResID\" }\n"
    "      name        = { type = [\"string\", \"null\"], title = \"Name\" }\n"
    "      nodepool_id = { type = [\"string\", \"null\"], title = \"HyperFleet's id\" }\n"
    "      cluster_id  = { type = [\"string\", \"null\"], title = \"Of its cluster\" }\n"
    "      generation  = { type = [\"integer\", \"null\"], title = \"Generation\" }\n"
    "      health      = { type = [\"string\", \"null\"], title = \"Health\" }\n"
    "      values      = { type = [\"object\", \"null\"], title = \"All values\" }\n"
    "      secrets     = { type = [\"object\", \"null\"], title = \"All secrets\" }\n"
    "    }\n"
    "  })\n";

static void add_kind(struct hfd_buf *b, const struct hfd_register_config *c, bool nodepool)
{
    const struct hfd_register_kind *kind = nodepool ? &c->nodepool : &c->cluster;
    const char *name = nodepool ? "nodepool" : "cluster";

    hfd_buf_addf(b, "\nresource \"platform-orchestrator_resource_type\" \"%s\" {\n", name);
    hfd_hcl_line(b, "id", kind->type);
    hfd_hcl_line(b, "description", nodepool ? "A HyperFleet nodepool" : "A HyperFleet cluster");
    hfd_buf_lit(b, "  is_developer_accessible = true\n");
    hfd_buf_add(b, hfd_slice_of(nodepool ? nodepool_outputs : cluster_outputs));
    hfd_buf_addf(b, "}\n\nresource \"platform-orchestrator_module\" \"%s\" {\n", name);
    hfd_hcl_line(b, "id", kind->type);
    hfd_buf_addf(b,
                 "  resource_type = platform-orchestrator_resource_type.%s.id\n"
                 "  module_source = \"${var.modules}/hyperfleet-%s?ref=${var.modules_ref}\"\n"
                 "  provider_mapping = {\n    restful = "
                 "\"restful.${platform-orchestrator_provider.hyperfleet_driver.id}\"\n  }\n",
                 name, name);
    hfd_buf_add(b, hfd_slice_of(nodepool ? nodepool_params : cluster_params));
    if (nodepool) {
        hfd_buf_lit(b, "  dependencies = {\n    cluster = {\n"
                       "      type = platform-orchestrator_resource_type.cluster.id\n");
        hfd_hcl_line(b, "    class", c->class_name);
        hfd_hcl_line(b, "    id", c->owner);
        hfd_buf_lit(b, "    }\n  }\n");
    }
    hfd_buf_lit(b, "  module_inputs = jsonencode({\n");
    hfd_buf_add(b, hfd_slice_of(scope));
    hfd_hcl_line(b, "    type", kind->type);
    hfd_hcl_line(b, "    path", kind->path);
    if (nodepool)
        hfd_buf_lit(b, "      cluster_guresid = \"$${resources.cluster.outputs.id}\"\n");
    hfd_buf_addf(b,
                 "  })\n}\n\nresource \"platform-orchestrator_module_rule\" \"%s\" {\n"
                 "  module_id = platform-orchestrator_module.%s.id\n",
                 name, name);
    hfd_hcl_line(b, "resource_class", c->class_name);
    hfd_hcl_line(b, "env_type_id", c->env_type);
    hfd_hcl_line(b, "project_id", c->app);
    hfd_buf_lit(b, "}\n");
}

void hfd_register_stellwerk(struct hfd_buf *b, const struct hfd_register_config *c)
{
    hfd_buf_add(b, hfd_slice_of(head));
    hfd_hcl_line(b, "org_id", c->org);
    hfd_buf_lit(b, "}\n");
    add_provider(b, c);
    add_kind(b, c, false);
    add_kind(b, c, true);
}
