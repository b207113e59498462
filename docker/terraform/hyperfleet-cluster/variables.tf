variable "id" {
  description = "The GUResID: the name of this order at the driver. It must not change. This or scope."
  type        = string
  default     = null

  validation {
    condition     = var.id == null || can(regex("^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$", var.id))
    error_message = "id: expected 1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at each end."
  }
}

variable "scope" {
  description = "Texts that name this order among all: organisation, project, environment, resource. The GUResID is their hash."
  type        = list(string)
  default     = null

  validation {
    condition     = var.scope == null ? true : length(var.scope) > 0
    error_message = "scope: expected at least one text."
  }
}

variable "name" {
  description = "The name of the cluster. Made from the id if it is null."
  type        = string
  default     = null

  validation {
    condition     = var.name == null || can(regex("^[a-z0-9][a-z0-9-]{1,51}[a-z0-9]$", var.name))
    error_message = "name: expected 3 to 53 lower-case letters, digits and hyphens, with a letter or digit at each end."
  }
}

variable "spec" {
  description = "The specification of the cluster, as HyperFleet and the adapters know it."
  type        = any
  default     = {}

  validation {
    condition     = can(keys(var.spec))
    error_message = "spec: expected an object."
  }
}

variable "labels" {
  description = "Labels of the cluster: app and env say who ordered it."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "nodepools" {
  description = "The nodepools: a list of objects with name, spec and labels. Their specs may have different members."
  type        = any
  default     = []

  validation {
    condition     = can([for p in var.nodepools : keys(p)]) && !can(keys(var.nodepools))
    error_message = "nodepools: expected a list of objects."
  }
  validation {
    condition = try(alltrue([
      for p in var.nodepools : length(setsubtract(keys(p), ["name", "spec", "labels"])) == 0
    ]), true)
    error_message = "nodepools: expected no members but name, spec and labels."
  }
  validation {
    condition = try(alltrue([
      for p in var.nodepools : can(regex("^[a-z0-9][a-z0-9-]{1,13}[a-z0-9]$", p.name)) if can(p.name)
    ]), true)
    error_message = "nodepools: expected names of 3 to 15 lower-case letters, digits and hyphens, with a letter or digit at each end."
  }
}

variable "type" {
  description = "The resource type: one of the setting driver.types.cluster."
  type        = string
  default     = "hyperfleet-cluster"
  nullable    = false
}

variable "path" {
  description = "The path of cluster resources at the driver: the setting driver.paths.cluster."
  type        = string
  default     = "clusters"
  nullable    = false
}
