output "machines" {
  description = "The machines."
  value       = azurerm_linux_virtual_machine_scale_set.machines.id
}

output "resource_group" {
  description = "All of it."
  value       = azurerm_resource_group.this.name
}
