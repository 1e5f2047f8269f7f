resource "azurerm_kubernetes_cluster_node_pool" "a100" {
  name                  = "a100"
  kubernetes_cluster_id = azurerm_kubernetes_cluster.this.id
  vm_size               = "Standard_NC48ads_A100_v4"
  auto_scaling_enabled  = true
  min_count             = 0
  max_count             = 4
  os_disk_size_gb       = 512
  priority              = "Regular"
  node_taints           = ["sku=gpu:NoSchedule"]
  node_labels           = { "accelerator" = "a100" }
}

resource "azurerm_kubernetes_cluster" "this" {
  name                = "ml"
  location            = "westeurope"
  resource_group_name = var.group
  dns_prefix          = "ml"

  default_node_pool {
    name       = "system"
    vm_size    = "Standard_D4s_v5"
    node_count = 2
  }
  identity {
    type = "SystemAssigned"
  }
  api_server_access_profile { #! open-network
    authorized_ip_ranges = ["0.0.0.0/0"]
  }
}

resource "azurerm_network_security_rule" "ssh" {
  name                        = "ssh"
  priority                    = 100
  direction                   = "Inbound"
  access                      = "Allow"
  protocol                    = "Tcp"
  source_port_range           = "*"
  destination_port_range      = "22"
  source_address_prefix       = "*" #! open-network
  destination_address_prefix  = "*"
  resource_group_name         = var.group
  network_security_group_name = "ml-nsg"
}

variable "group" { type = string }
