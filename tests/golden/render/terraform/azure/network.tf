# Who may reach the machines: nobody who is not named here.

resource "azurerm_network_security_group" "machines" {
  name                = local.name
  resource_group_name = azurerm_resource_group.this.name
  location            = azurerm_resource_group.this.location
  tags                = local.tags

  dynamic "security_rule" {
    for_each = var.client_range == "" ? [] : [var.client_range]

    content {
      name                       = "clients"
      priority                   = 200
      direction                  = "Inbound"
      access                     = "Allow"
      protocol                   = "Tcp"
      source_port_range          = "*"
      destination_port_range     = "8000"
      source_address_prefix      = security_rule.value
      destination_address_prefix = "*"
    }
  }

  # Azure lets a whole network in by default.
  security_rule {
    name                       = "nobody-else"
    priority                   = 4000
    direction                  = "Inbound"
    access                     = "Deny"
    protocol                   = "*"
    source_port_range          = "*"
    destination_port_range     = "*"
    source_address_prefix      = "*"
    destination_address_prefix = "*"
  }
}
