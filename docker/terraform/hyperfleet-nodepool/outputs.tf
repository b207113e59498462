output "id" {
  description = "The GUResID, once it is ready."
  value       = local.id
  depends_on  = [restful_operation.ready]
}

output "name" {
  description = "The name of the nodepool."
  value       = try(local.values.name, null)
}

output "nodepool_id" {
  description = "HyperFleet's id of the nodepool."
  value       = try(local.values.nodepool_id, null)
}

output "cluster_id" {
  description = "HyperFleet's id of the cluster."
  value       = try(local.values.cluster_id, null)
}

output "generation" {
  description = "HyperFleet's generation of the nodepool."
  value       = try(local.values.generation, null)
}

output "health" {
  description = "Healthy, Progressing or Degraded, or what an adapter says."
  value       = try(local.values.health, null)
}

output "values" {
  description = "All output values."
  value       = local.values
}

output "secrets" {
  description = "All output secrets."
  value       = local.secrets
  sensitive   = true
}
