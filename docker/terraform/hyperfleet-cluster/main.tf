# A HyperFleet cluster with its nodepools, ordered from hyperfleet-driver.
#
# The provider's base_url is that of the driver. Polling has no limit here: the driver's deadline
# (settings driver.deadline.*) ends an operation, with a sentence that says what it waited for.

locals {
  id   = var.id != null ? var.id : substr(sha256(jsonencode(var.scope)), 0, 40)
  path = "/${var.path}/${local.id}"

  cluster = merge(
    { spec = var.spec, labels = var.labels },
    var.name == null ? {} : { name = var.name },
  )

  order = {
    type   = var.type
    driver = { values = { cluster = local.cluster, nodepools = var.nodepools } }
  }
}

# The order. It is in the state as soon as the driver has accepted it, so that destroy deletes it
# even if the cluster never becomes ready.
resource "restful_operation" "order" {
  path                 = local.path
  method               = "PUT"
  body                 = local.order
  use_sensitive_output = true
  output_attrs         = ["status"]

  delete_method = "DELETE"
  poll_delete = {
    status_locator    = "code"
    status            = { success = "404", pending = ["202", "503"] }
    default_delay_sec = 1
  }

  lifecycle {
    precondition {
      condition     = (var.id == null) != (var.scope == null)
      error_message = "Expected one of id and scope."
    }
  }
}

# The same order again, until the cluster is ready. After a failure the next apply tries anew.
resource "restful_operation" "ready" {
  path                 = restful_operation.order.path
  method               = "PUT"
  body                 = local.order
  use_sensitive_output = true
  output_attrs         = ["status"]

  poll = {
    status_locator    = "code"
    status            = { success = "200", pending = ["202", "503"] }
    default_delay_sec = 1
  }
}

# What the driver says of it now.
data "restful_resource" "cluster" {
  id                   = local.path
  use_sensitive_output = true
  allow_not_exist      = true
  depends_on           = [restful_operation.order, restful_operation.ready]
}

locals {
  # Values are no secrets; the driver marks those by where they are.
  values  = try(nonsensitive(data.restful_resource.cluster.sensitive_output.resource.values), null)
  secrets = try(data.restful_resource.cluster.sensitive_output.resource.secrets, null)
}

check "exists" {
  assert {
    condition     = local.values != null
    error_message = "The cluster was deleted by others. To order it again: apply with -replace of restful_operation.order and restful_operation.ready."
  }
}
