output "node_pool" {
  description = "Its name there."
  value       = azurerm_kubernetes_cluster_node_pool.this.name
}
