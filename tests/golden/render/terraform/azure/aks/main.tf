# embed-api: serve on 2 x Standard_NC24ads_A100_v4 (azure westeurope, spot). Written by chipwise from the plan.
# A node pool for the cluster that is there; what runs on it comes from `chipwise render --to kubernetes`.
# Expected: $1,534 and 55 kg CO2e a month.

resource "azurerm_kubernetes_cluster_node_pool" "this" {
  name                  = "embedapi"
  kubernetes_cluster_id = var.cluster_id
  vm_size               = "Standard_NC24ads_A100_v4"
  vnet_subnet_id        = var.subnet_id
  os_sku                = "Ubuntu"
  os_disk_size_gb       = 200
  auto_scaling_enabled  = true
  min_count             = 2
  max_count             = 13
  # AKS brings the driver; the device plugin comes with `--to kubernetes`.
  gpu_driver      = "Install"
  priority        = "Spot"
  eviction_policy = "Delete"
  # Up to the price on demand: taken away for capacity, never for price.
  spot_max_price = -1
  node_labels = {
    "chipwise.dev/deployment"               = "embed-api"
    "kubernetes.azure.com/scalesetpriority" = "spot"
  }
  # Pods that do not ask for these machines stay away from them.
  node_taints = ["nvidia.com/gpu=present:NoSchedule", "kubernetes.azure.com/scalesetpriority=spot:NoSchedule"]
  tags = {
    chipwise-deployment = "embed-api"
    owner               = "priya.raman"
    team                = "assistants"
    project             = "shop-chat"
  }
}
