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

variable "cluster_guresid" {
  description = "The GUResID of a cluster that this driver made: the output id of the module hyperfleet-cluster. This or cluster_id."
  type        = string
  default     = null
}

variable "cluster_id" {
  description = "HyperFleet's id of the cluster. This or cluster_guresid."
  type        = string
  default     = null
}

variable "name" {
  description = "The name of the nodepool. Made from the id if it is null."
  type        = string
  default     = null

  validation {
    condition     = var.name == null || can(regex("^[a-z0-9][a-z0-9-]{1,13}[a-z0-9]$", var.name))
    error_message = "name: expected 3 to 15 lower-case letters, digits and hyphens, with a letter or digit at each end."
  }
}

variable "spec" {
  description = "The specification of the nodepool, as HyperFleet and the adapters know it."
  type        = any
  default     = {}

  validation {
    condition     = can(keys(var.spec))
    error_message = "spec: expected an object."
  }
}

variable "labels" {
  description = "Labels of the nodepool: app and env say who ordered it."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "type" {
  description = "The resource type: one of the setting driver.types.nodepool."
  type        = string
  default     = "hyperfleet-nodepool"
  nullable    = false
}

variable "path" {
  description = "The path of nodepool resources at the driver: the setting driver.paths.nodepool."
  type        = string
  default     = "nodepools"
  nullable    = false
}
