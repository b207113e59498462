output "id" {
  description = "The GUResID, once it is ready."
  value       = local.id
  depends_on  = [restful_operation.ready]
}

output "name" {
  description = "The name of the cluster."
  value       = try(local.values.name, null)
}

output "cluster_id" {
  description = "HyperFleet's id of the cluster."
  value       = try(local.values.cluster_id, null)
}

output "generation" {
  description = "HyperFleet's generation of the cluster."
  value       = try(local.values.generation, null)
}

output "health" {
  description = "Healthy, Progressing or Degraded, or what an adapter says."
  value       = try(local.values.health, null)
}

output "nodepools" {
  description = "The nodepools as the driver lists them."
  value       = try(local.values.nodepools, [])
}

output "endpoint" {
  description = "The URL of the cluster's API server; null unless an adapter or driver.outputs.values gives it."
  value       = try(local.values.endpoint, null)
}

output "values" {
  description = "All output values."
  value       = local.values
}

output "kubeconfig" {
  description = "The kubeconfig of the cluster; null unless an adapter or driver.outputs.secrets gives it."
  value       = try(local.secrets.kubeconfig, null)
  sensitive   = true
}

output "secrets" {
  description = "All output secrets."
  value       = local.secrets
  sensitive   = true
}
