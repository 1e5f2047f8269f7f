resource "azurerm_kubernetes_cluster" "this" {
  name                = "genai"
  location            = "westeurope"
  resource_group_name = azurerm_resource_group.this.name
  dns_prefix          = "genai"

  default_node_pool {
    name       = "system"
    node_count = 2
    vm_size    = "Standard_D4ds_v5"
  }

  identity {
    type = "SystemAssigned"
  }
}

resource "azurerm_kubernetes_cluster_node_pool" "a100" {
  name                  = "a100"
  kubernetes_cluster_id = azurerm_kubernetes_cluster.this.id
  vm_size               = "Standard_NC48ads_A100_v4"
  auto_scaling_enabled  = true
  min_count             = 4
  max_count             = 2  #! bounds
  os_disk_size_gb       = 64
  priority              = "Spot"
  eviction_policy       = "Delete"
  spot_max_price        = -1
}

resource "azurerm_network_security_rule" "ssh" {
  name                        = "ssh"
  priority                    = 100
  direction                   = "Inbound"
  access                      = "Allow"
  protocol                    = "Tcp"
  source_port_range           = "*"
  destination_port_range      = "22"
  source_address_prefix       = "*"  #! open-network
  destination_address_prefix  = "*"
  resource_group_name         = azurerm_resource_group.this.name
  network_security_group_name = azurerm_network_security_group.this.name
}

resource "azurerm_linux_virtual_machine" "build" {
  name                            = "build"
  resource_group_name             = azurerm_resource_group.this.name
  location                        = "westeurope"
  size                            = "Standard_NC24ads_A100_v4"
  admin_username                  = "azureuser"
  admin_password                  = "Sommer2025!Passwort"  #! plain-secret
  disable_password_authentication = false
  network_interface_ids           = [azurerm_network_interface.this.id]

  os_disk {
    caching              = "ReadWrite"
    storage_account_type = "Premium_LRS"
    disk_size_gb         = 256
  }

  source_image_reference {
    publisher = "Canonical"
    offer     = "ubuntu-24_04-lts"
    sku       = "server"
    version   = "latest"  #! unpinned-ami
  }
}
