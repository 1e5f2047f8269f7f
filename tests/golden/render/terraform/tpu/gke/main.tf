# tpu-pretrain: train on tpu-v6e-32 (gcp europe-west4, spot). Written by chipwise from the plan.
# A node pool for the cluster that is there; what runs on it comes from `chipwise render --to kubernetes`.
# Expected: 40 h (35 h to 52 h), $2,481.50, 210.0 kg CO2e.

locals {
  name = "tpu-pretrain"
  labels = {
    chipwise-deployment = "tpu-pretrain"
    owner               = "mara-lindqvist"
    team                = "language"
    project             = "legal-assistant"
    cost_center         = "4711"
  }
}

resource "google_service_account" "nodes" {
  account_id   = "${substr(local.name, 0, 22)}-nodes"
  display_name = "Nodes of ${local.name}"
}

# What every node needs. Rights of the program belong to its own service account (Workload Identity).
resource "google_project_iam_member" "nodes" {
  project = var.project
  role    = "roles/container.defaultNodeServiceAccount"
  member  = "serviceAccount:${google_service_account.nodes.email}"
}

resource "google_container_node_pool" "this" {
  name               = substr(local.name, 0, 39)
  cluster            = var.cluster
  location           = var.region
  node_locations     = var.zones
  initial_node_count = 8

  autoscaling {
    # A slice of several hosts comes and goes as a whole.
    min_node_count = 0
    max_node_count = 8
  }

  management {
    auto_repair  = true
    auto_upgrade = true
  }

  placement_policy {
    type         = "COMPACT"
    tpu_topology = "4x8"
  }

  node_config {
    machine_type    = "ct6e-standard-4t"
    spot            = true
    disk_size_gb    = 200
    disk_type       = "hyperdisk-balanced"
    image_type      = "COS_CONTAINERD"
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
    labels = {
      chipwise-deployment = "tpu-pretrain"
    }
    metadata = {
      disable-legacy-endpoints = "true"
    }

    shielded_instance_config {
      enable_secure_boot          = true
      enable_integrity_monitoring = true
    }

    workload_metadata_config {
      # Pods do not reach the node's credentials.
      mode = "GKE_METADATA"
    }

    gvnic {
      enabled = true
    }
  }
}
