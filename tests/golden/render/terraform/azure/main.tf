# embed-api: serve on 2 x Standard_NC24ads_A100_v4 (azure westeurope, spot). Written by chipwise from the plan.
# Plain machines that run the container by themselves; the directory aks/ has the same as a node pool.
# Expected: $1,534 and 55 kg CO2e a month.

locals {
  name = "embed-api"
  tags = {
    chipwise-deployment = "embed-api"
    owner               = "priya.raman"
    team                = "assistants"
    project             = "shop-chat"
  }
  # What start.sh reads.
  settings = {
    IMAGE    = var.image
    NAME     = local.name
    IDENTITY = azurerm_user_assigned_identity.machines.client_id
    VAULT    = var.key_vault.name
  }
  start = join("\n", concat(
    ["#!/bin/bash"],
    [for name, value in local.settings : "${name}='${replace(value, "'", "'\\''")}'"],
    [file("${path.module}/start.sh")],
  ))
}

# All of it in one group: one place to see what it costs, and to delete.
resource "azurerm_resource_group" "this" {
  name     = local.name
  location = var.location
  tags     = local.tags
}

resource "azurerm_linux_virtual_machine_scale_set" "machines" {
  name                = local.name
  resource_group_name = azurerm_resource_group.this.name
  location            = azurerm_resource_group.this.location
  tags                = local.tags
  sku                 = "Standard_NC24ads_A100_v4"
  instances           = 2
  # New machines take the new model; replace the others one by one.
  upgrade_mode = "Manual"
  # Machines with accelerators are expensive: no more than asked for.
  overprovision                   = false
  admin_username                  = "chipwise"
  disable_password_authentication = true
  custom_data                     = base64encode(local.start)
  # Local disks too. The subscription must have the feature EncryptionAtHost.
  encryption_at_host_enabled = true
  priority                   = "Spot"
  # What is on its disk stays for the time when there is room again.
  eviction_policy = "Deallocate"
  # Up to the price on demand: taken away for capacity, never for price.
  max_bid_price = -1

  admin_ssh_key {
    username   = "chipwise"
    public_key = var.ssh_public_key
  }

  source_image_reference {
    publisher = var.boot_image.publisher
    offer     = var.boot_image.offer
    sku       = var.boot_image.sku
    version   = var.boot_image.version
  }

  os_disk {
    storage_account_type = "Premium_LRS"
    caching              = "ReadWrite"
    disk_size_gb         = 120
  }

  identity {
    type         = "UserAssigned"
    identity_ids = [azurerm_user_assigned_identity.machines.id]
  }

  boot_diagnostics {}

  network_interface {
    name                          = "internal"
    primary                       = true
    enable_accelerated_networking = true
    network_security_group_id     = azurerm_network_security_group.machines.id

    ip_configuration {
      name                                   = "internal"
      primary                                = true
      subnet_id                              = var.subnet_id
      load_balancer_backend_address_pool_ids = var.backend_pool_ids
    }
  }

  # Repairs machines whose program no longer answers.
  extension {
    name                 = "health"
    publisher            = "Microsoft.ManagedServices"
    type                 = "ApplicationHealthLinux"
    type_handler_version = "1.0"
    settings             = jsonencode({ protocol = "http", port = 8000, requestPath = "/health" })
  }

  automatic_instance_repair {
    enabled      = true
    grace_period = "PT30M"
  }

  spot_restore {
    # Tries to get back what was taken away.
    enabled = true
    timeout = "PT1H"
  }

  lifecycle {
    # Scaling changes it; apply must not.
    ignore_changes = [instances]
  }
}
