output "node_pools" {
  description = "Their names in the cluster."
  value       = google_container_node_pool.this[*].name
}
